//! Reads a test file: document tree → cases.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::case::TestFile;
use crate::case_reader;
use crate::test_file_reader::TestFileReader;
use crate::test_schema::test_file_record;
use callgate::diagnostic::{
    DUPLICATE_CASE, Diagnostic, Diagnostics, EMPTY_VALUE, INVALID_TOOLS, SourceMap, Span,
};
use callgate::policy;
use callgate::rules_schema::Shape;
use callgate::safe_text::{escape_controls, truncate};
use callgate::script::Names;
use callgate::source::{LoadedFile, YamlNode};
use callgate::tools::{self, ToolCatalog, ToolDescriptor};

/// The default start of a case's clock.
pub(super) const DEFAULT_CLOCK_START: &str = "2026-01-01T12:00:00Z";

/// The result of reading one test file.
pub(super) struct ParsedTestFile {
    pub(super) file: TestFile,
    /// The ids of the policies that it names, with their spans.
    pub(super) policy_references: Vec<(Span, String)>,
    /// The files that it refers to, including unreadable ones.
    pub(super) referenced_files: Vec<PathBuf>,
}

/// Reads one test file.
pub(super) fn read(
    file: &LoadedFile,
    names: &Arc<Names>,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> ParsedTestFile {
    Shape::Record(test_file_record()).check(&file.root, "a test file", diagnostics);
    policy::check_version(&file.root, diagnostics);
    let mut reader = TestFileReader::new(diagnostics, sources);
    reader.reader.names = Arc::clone(names);
    let root = &file.root;
    let noon = DEFAULT_CLOCK_START.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    reader.clock = root.get("clock").and_then(|node| reader.read_timestamp(node)).unwrap_or(noon);
    reader.context = root.get("context").map(|node| reader.read_mapping(node, "context")).unwrap_or_default();
    reader.task = root.get("task").and_then(|node| reader.read_task(node)).unwrap_or_default();
    reader.stubs = case_reader::read_stubs(root.get("stubs"), &mut reader);
    let tools = root.get("tools").map(|node| read_tools(node, &mut reader)).unwrap_or_default();
    let tools = (!tools.is_empty()).then(|| Arc::new(ToolCatalog::new(tools)));
    let nodes = root.get("cases").and_then(YamlNode::items).unwrap_or_default();
    check_case_names(nodes, &mut reader);
    let cases = nodes.iter().flat_map(|node| case_reader::read(node, &mut reader)).map(Arc::new).collect();
    let name = reader.reader.source_name(file.source);
    ParsedTestFile {
        file: TestFile { name, tools, cases },
        referenced_files: reader.reader.referenced_paths,
        policy_references: reader.policy_references,
    }
}

fn check_case_names(nodes: &[YamlNode], reader: &mut TestFileReader<'_>) {
    let mut first: HashMap<&str, Span> = HashMap::new();
    for node in nodes.iter().filter_map(|case| case.get("name")) {
        let Some(name) = node.as_str() else { continue };
        if name.trim().is_empty() {
            reader.report(
                Diagnostic::new(&EMPTY_VALUE, node.span, "`name` is empty")
                    .with_help("describe what is expected, as in `a refund above 100 requires approval`"),
            );
        } else if let Some(span) = first.get(name) {
            let displayed = truncate(&escape_controls(name));
            reader.report(
                Diagnostic::new(&DUPLICATE_CASE, node.span, format!("duplicate case name `{displayed}`"))
                    .with_label(*span, "first used here")
                    .with_help("rename one of the two, or make them `rows:` of one case"),
            );
        } else {
            first.insert(name, node.span);
        }
    }
}

fn read_tools(node: &YamlNode, reader: &mut TestFileReader<'_>) -> Vec<ToolDescriptor> {
    let (tools, spans) = match node.items() {
        Some(items) => (
            items.iter().filter_map(read_inline_tool).collect(),
            items.iter().map(|item| item.span).collect(),
        ),
        None => (read_tools_file(node, reader).unwrap_or_default(), Vec::new()),
    };
    let mut known: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    for (index, tool) in tools.iter().enumerate() {
        let Some(first) = known.insert((&tool.name, tool.server.as_deref()), index) else { continue };
        let message = format!("duplicate tool `{}`", truncate(&escape_controls(&tool.name)));
        let diagnostic =
            Diagnostic::new(&INVALID_TOOLS, spans.get(index).copied().unwrap_or(node.span), message);
        let diagnostic = match spans.get(first) {
            Some(span) => diagnostic.with_label(*span, "first defined here"),
            None => diagnostic,
        };
        reader.report(diagnostic.with_help("remove one of the two, or add `server` to tell them apart"));
    }
    tools
}

/// Reads a tool written inline. The check of its shape reports what is wrong with it.
fn read_inline_tool(node: &YamlNode) -> Option<ToolDescriptor> {
    let text = |key| node.get(key).and_then(YamlNode::as_str).map(str::to_owned);
    Some(ToolDescriptor {
        name: text("name")?,
        description: text("description"),
        input_schema: node.get("input_schema").map(YamlNode::to_json),
        output_schema: node.get("output_schema").map(YamlNode::to_json),
        annotations: node.get("annotations").map(YamlNode::to_json),
        server: text("server"),
        once: node.get("once").and_then(YamlNode::as_bool) == Some(true),
        idempotent: node.get("idempotent").and_then(YamlNode::as_bool) == Some(true),
    })
}

fn read_tools_file(node: &YamlNode, reader: &mut TestFileReader<'_>) -> Option<Vec<ToolDescriptor>> {
    let (source, text) = reader.reader.read_referenced_file(node, ".json")?;
    match tools::parse_list(&text) {
        Ok(tools) => Some(tools),
        Err(error) => {
            let message =
                format!("`{}` is not a valid tools file: {error}", reader.reader.source_name(source));
            reader.report(
                Diagnostic::new(&INVALID_TOOLS, node.span, message)
                    .with_help("correct that file: it must hold a JSON array of tools, as for `--tools`"),
            );
            None
        }
    }
}
