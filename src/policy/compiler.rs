//! Compiler from rules files to a [`Bundle`]: typed policies with compiled patterns, paths and scripts. Every problem is reported with
//! its location.

use std::path::PathBuf;
use std::sync::Arc;

use super::compiled_files::{self, CompiledFile, CompiledFiles, MAX_PATTERNS, Reused};
use super::defaults::{self, Defaults};
use super::definitions::{self, DeclaredTools, Definitions};
use super::policy_ids;
use super::reload_settings;
use super::rules_shape::{POLICY_RECORD, rules_record};
use super::{Mode, Policy, ReloadSettings};
use crate::call::Root;
use crate::diagnostic::{
    CONFLICTING_KEYS, Diagnostic, Diagnostics, KIND_COUNT, MISSING_KEY, MISSING_MATCHER, OUT_OF_RANGE,
    SourceFile, SourceMap, UNSUPPORTED_VERSION, WRONG_TYPE,
};
use crate::json::{self, Digest, Value, json};
use crate::matcher::Matcher;
use crate::middleware::{KINDS, KindDefinition, PolicyKind, Validate};
use crate::principal::PrincipalComparison;
use crate::regex_compiler;
use crate::rules_schema::{self, PolicyReader, Shape, SharedParts, insert_constants};
use crate::script::Names;
use crate::source::{LoadedFile, MappingEntry, YamlNode};
use crate::tool_result::ResultFormats;

/// The contents of all rules files of a load.
#[derive(Debug)]
pub struct Bundle {
    /// The policies, in the order of files and then of positions.
    pub policies: Vec<Arc<Policy>>,
    /// Settings for all policies.
    pub defaults: Defaults,
    /// Conditions for replacing the bundle.
    pub reload: ReloadSettings,
    /// The names that the bundle defines.
    pub names: Arc<Names>,
    /// How the texts that tools return are read.
    pub results: ResultFormats,
    /// The known tools.
    pub tools: DeclaredTools,
    /// Digest of all rules and of the files that they reference.
    pub revision: Digest,
    /// The files that policies reference, such as schemas and scripts, including those that could not be read.
    pub referenced_files: Vec<PathBuf>,
    /// The rules files.
    pub files: CompiledFiles,
}

/// Compiles files of a bundle, or of a layer that uses the names of a bundle; what is `reused` is taken over. Problems are
/// reported to `diagnostics`; the result has every policy that could be compiled.
pub fn compile(
    files: &[LoadedFile],
    reused: &Reused,
    inherited: &Names,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Bundle {
    let file_names = compiled_files::names_of(sources);
    for file in files {
        Shape::Record(rules_record()).check(&file.root, "a rules file", diagnostics);
        check_version(&file.root, diagnostics);
        check_has_content(&file.root, diagnostics);
    }
    let defaults = defaults::read(files, diagnostics);
    let reload = reload_settings::read(files, diagnostics);
    let Definitions { names, results, tools, mut referenced_files } =
        definitions::compile(files, inherited, defaults, sources, diagnostics);
    let is_same = |known: &Arc<Names>| known.content_digest() == names.content_digest();
    let names = reused.names.clone().filter(is_same).unwrap_or(names);
    let definitions_regex_bytes = regex_compiler::used_of_budget();
    policy_ids::check(files.iter().flat_map(policy_nodes), diagnostics);
    let (mut pattern_count, mut shared) = (0, SharedParts::default());
    let mut compiled = reused.files.clone();
    for file in files {
        let (patterns, references) = (pattern_count, referenced_files.len());
        let regex_bytes = regex_compiler::used_of_budget();
        let read = |node| {
            let mut reader = PolicyReader::new(diagnostics, sources);
            reader.names = Arc::clone(&names);
            reader.absent_matches = defaults.absent_matches;
            reader.principals = defaults.principals;
            reader.shared = std::mem::take(&mut shared);
            let inserted = insert_constants(node, &Shape::Record(&POLICY_RECORD), &mut reader);
            let policy = read_policy(inserted.as_ref().unwrap_or(node), &mut reader);
            referenced_files.append(&mut reader.referenced_paths);
            shared = std::mem::take(&mut reader.shared);
            pattern_count += policy.as_ref().map_or(0, |policy| policy.matcher.tools.len());
            if pattern_count > MAX_PATTERNS {
                let message = format!("the policies of a bundle have at most {MAX_PATTERNS} tool patterns");
                reader.report(
                    Diagnostic::new(&OUT_OF_RANGE, node.span, message)
                        .with_help("use globs such as `get_*`, and groups with fewer patterns"),
                );
                return None;
            }
            policy.map(Arc::new)
        };
        let policies = policy_nodes(file).iter().filter_map(read).collect();
        let text = sources.get(file.source).map_or("", SourceFile::text);
        compiled.push(Arc::new(CompiledFile {
            source: file.source,
            content: Digest::compute(text.as_bytes()),
            other_keys: file.root.canonical_text(Some("policies")).into(),
            has_definitions: has_definitions(&file.root),
            has_references: referenced_files.len() > references,
            policies,
            nodes: file.nodes,
            pattern_count: pattern_count - patterns,
            regex_bytes: regex_compiler::used_of_budget() - regex_bytes,
        }));
    }
    compiled.sort_by_key(|file| file.source);
    policy_ids::attach(files.iter().flat_map(policy_nodes), diagnostics);
    let policies: Vec<Arc<Policy>> = compiled.iter().flat_map(|file| &file.policies).cloned().collect();
    let revision = compute_revision(&compiled, &policies, &names);
    let revision = match tools.digests.as_slice() {
        [] => revision,
        digests => json::digest(&json!([
            revision.to_string(),
            digests.iter().map(ToString::to_string).collect::<Vec<_>>()
        ])),
    };
    let files = CompiledFiles { names: file_names, files: compiled.into(), definitions_regex_bytes };
    Bundle { policies, defaults, reload, names, results, tools, revision, referenced_files, files }
}

fn policy_nodes(file: &LoadedFile) -> &[YamlNode] {
    file.root.get("policies").and_then(YamlNode::items).unwrap_or_default()
}

/// Whether a file has anything that policies of other files may depend on.
fn has_definitions(root: &YamlNode) -> bool {
    let is_own = |key: &str| ["policies", "callgate"].contains(&key);
    root.entries().is_none_or(|entries| !entries.iter().all(|entry| is_own(&entry.key)))
}

/// Reports a file that has neither policies nor definitions.
fn check_has_content(root: &YamlNode, diagnostics: &mut Diagnostics) {
    let definitions = [definitions::GROUPS, definitions::DATA, definitions::LETS, definitions::FUNCTIONS];
    let keys = definitions.map(|section| section.name);
    let keys =
        keys.into_iter().chain(["policies", "defaults", definitions::RESULTS.name, definitions::TOOLS.name]);
    let has_content = keys.into_iter().any(|key| root.get(key).is_some());
    if has_content || root.entries().is_none() || rules_record().has_misspelling_of(root, "policies") {
        return;
    }
    diagnostics.push(
        Diagnostic::new(&MISSING_KEY, rules_schema::head_span(root), "`policies` is missing in a rules file")
            .with_help("add `policies:` (the policies; write `[]` for none)"),
    );
}

/// Reports a file with an unsupported format version.
pub fn check_version(root: &YamlNode, diagnostics: &mut Diagnostics) {
    let Some(version) = root.get("callgate") else { return };
    if version.as_number().is_some_and(|number| number.as_u64() != Some(1)) {
        diagnostics.push(
            Diagnostic::new(
                &UNSUPPORTED_VERSION,
                version.span,
                "this version of Callgate reads format version 1",
            )
            .with_help("write `callgate: 1`"),
        );
    }
}

fn read_policy(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Policy> {
    let before = reader.problem_count();
    let policy = read_policy_parts(node, reader);
    if policy.is_none()
        && reader.problem_count() == before
        && node.entries().is_some()
        && !reader.has_errors()
    {
        reader.report(Diagnostic::new(&WRONG_TYPE, node.span, "invalid policy"));
    }
    policy
}

fn read_policy_parts(node: &YamlNode, reader: &mut PolicyReader<'_>) -> Option<Policy> {
    let (kind_node, entry) = find_kind(node, reader)?;
    reader.polarity = entry.polarity;
    reader.after_tool = (entry.reads_result)(&kind_node.value);
    reader.at_start = entry.name == "fact" && !reader.after_tool;
    reader.of_run = entry.applies_to_run;
    let matcher = node.get("match").map(|node| match entry.applies_to_run {
        true => Matcher::read_for_run(node, entry.name, reader),
        false => Matcher::read(node, reader),
    });
    let condition_reads = std::mem::take(&mut reader.roots_read);
    let kind = entry
        .shape
        .accepts_type_of(&kind_node.value)
        .then(|| (entry.read)(&kind_node.value, reader))
        .flatten();
    let action_reads_session = reader.roots_read.contains(&Root::Session);
    let reads_result = condition_reads.iter().chain(&reader.roots_read).any(|root| *root == Root::Result);
    let [argument_reads, template_arguments] = [&mut reader.arguments, &mut reader.named_arguments]
        .map(|names| reader.shared.argument_names(std::mem::take(names)));
    let referenced_texts = std::mem::take(&mut reader.referenced_files);
    let named = std::mem::take(&mut reader.definitions);
    let definitions: Vec<_> =
        reader.names.digests_of(&named).map(|(name, digest)| (name.clone(), digest)).collect();
    let context_reads = std::mem::take(&mut reader.context_reads);
    if matcher.is_none() && entry.needs_matcher && !POLICY_RECORD.has_misspelling_of(node, "match") {
        reader.report(
            Diagnostic::new(
                &MISSING_MATCHER,
                kind_node.key_span,
                format!("a `{}` policy needs `match`", entry.name),
            )
            .with_help("add `match:`; `match: \"*\"` matches every tool"),
        );
    }
    if matcher.as_ref().is_some_and(|matcher| matcher.is_for_methods) {
        check_method_kind(kind_node, kind.as_ref(), reader);
    }
    let mode = match node.get("mode").and_then(YamlNode::as_str) {
        Some("shadow") => Mode::Shadow,
        Some("off") => Mode::Off,
        _ => Mode::Enforce,
    };
    let (matcher, kind) = (matcher.unwrap_or_default(), kind?);
    let of_run_alone = |root: &Root| matches!(root, Root::Context | Root::Session | Root::Task | Root::Now);
    // A `halt` whose conditions read no call stops the run at any point.
    let halts_run = matches!(&kind, PolicyKind::Halt(halt) if halt.script.is_none())
        && matcher.tools.is_empty()
        && matcher.servers.is_empty()
        && matcher.condition.is_some()
        && condition_reads.iter().all(of_run_alone);
    let source_text = node.canonical_text(Some("description"));
    Some(Policy {
        behaviour_digest: {
            let mut parts = vec![json!(referenced_texts)];
            if reader.principals == PrincipalComparison::Exact {
                parts.push(json!(reader.principals));
            }
            let named = definitions.iter();
            parts
                .extend(named.map(|(name, digest)| json!([name.section(), name.name(), digest.to_string()])));
            digest_with(&source_text, &parts)
        },
        source_text: source_text.into_boxed_str(),
        applies_to_run: kind.applies_to_run() || halts_run,
        id: node.get("id")?.as_str()?.to_owned(),
        description: node.get("description").and_then(YamlNode::as_str).map(str::to_owned),
        mode,
        priority: node
            .get("priority")
            .and_then(YamlNode::as_number)
            .and_then(json::Number::as_i64)
            .unwrap_or(0),
        matcher,
        kind,
        argument_reads,
        template_arguments,
        span: node.span,
        definitions,
        context_reads,
        condition_reads_session: condition_reads.contains(&Root::Session),
        action_reads_session,
        reads_result,
    })
}

/// Reports a kind that can't act on requests by methods.
fn check_method_kind(node: &MappingEntry, kind: Option<&PolicyKind>, reader: &mut PolicyReader<'_>) {
    let (message, help) = match kind {
        Some(PolicyKind::Recover(_)) => (
            "`recover` can't be used with `method`: the result of a request is not a message for a model",
            "use `respond` with the result that the request should have",
        ),
        Some(PolicyKind::Validate(Validate { schema: None })) => {
            ("a request by a method has no tool with a schema", "write a JSON Schema, or `arguments:`")
        }
        _ => return,
    };
    reader.report(Diagnostic::new(&CONFLICTING_KEYS, node.key_span, message).with_help(help));
}

/// Returns the entry of the policy's kind key, and reports a missing or a second one.
fn find_kind<'a>(
    node: &'a YamlNode,
    reader: &mut PolicyReader<'_>,
) -> Option<(&'a MappingEntry, &'static KindDefinition)> {
    let mut kinds = node
        .entries()?
        .iter()
        .filter_map(|entry| KINDS.into_iter().find(|kind| kind.name == entry.key).map(|kind| (entry, kind)));
    let Some(first) = kinds.next() else {
        if node.entries()?.is_empty()
            || KINDS.iter().any(|kind| POLICY_RECORD.has_misspelling_of(node, kind.name))
        {
            return None;
        }
        reader.report(
            Diagnostic::new(&KIND_COUNT, rules_schema::head_span(node), "this policy has no kind")
                .with_help(format!("add one of {}", KINDS.map(|kind| format!("`{}`", kind.name)).join(", "))),
        );
        return None;
    };
    for (second, _) in kinds {
        reader.report(
            Diagnostic::new(
                &KIND_COUNT,
                second.key_span,
                format!("this policy has two kinds, `{}` and `{}`", first.0.key, second.key),
            )
            .with_label(first.0.key_span, "first kind")
            .with_help("a policy has exactly one kind; split it into two policies"),
        );
    }
    Some(first)
}

/// Returns the digest of the rules files, descriptions included, and of the files that policies and definitions reference.
fn compute_revision(files: &[Arc<CompiledFile>], policies: &[Arc<Policy>], names: &Names) -> Digest {
    // The digests of the policies have everything of them but their descriptions.
    let others: Vec<&str> = files.iter().map(|file| &*file.other_keys).collect();
    let others = format!("[{}]", others.join(","));
    let behaviours: Vec<String> = policies.iter().map(|policy| policy.behaviour_digest.to_string()).collect();
    let descriptions: Vec<_> = policies.iter().map(|policy| policy.description.as_deref()).collect();
    let mut parts = vec![json!(behaviours), json!(descriptions)];
    parts.extend(names.content_digest().map(|definitions| json!(definitions.to_string())));
    digest_with(&others, &parts)
}

/// The digest of an array: of the value with this canonical text, and others.
fn digest_with(canonical: &str, others: &[Value]) -> Digest {
    let mut text = format!("[{canonical}");
    for other in others {
        text.push(',');
        text.push_str(&json::canonical_text(other));
    }
    text.push(']');
    Digest::compute(text.as_bytes())
}
