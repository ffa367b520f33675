//! Diagnostics for unsupported YAML features: problem and fix, for authors of rules files.

use super::document_tree::{MAX_NESTING, YamlNode, YamlValue};
use crate::diagnostic::{
    BAD_ALIAS, DUPLICATE_KEY, Diagnostic, EMPTY_FILE, SEVERAL_DOCUMENTS, SourceId, Span, YAML_FEATURE,
    YAML_LIMIT,
};

/// After this many problems, the rest of a file is not read.
pub(super) const MAX_PROBLEMS: usize = 100;

pub(super) fn empty_file(source: SourceId, text: &str) -> Diagnostic {
    let message = if text.trim().is_empty() { "the file is empty" } else { "the file contains no rules" };
    Diagnostic::new(&EMPTY_FILE, Span::new(source, 0, 0), message)
        .with_help("write `policies: []` for a file without policies, or remove the file")
}

pub(super) fn second_document(at: Span) -> Diagnostic {
    Diagnostic::new(&SEVERAL_DOCUMENTS, at, "a second document begins here; a rules file has only one")
        .with_help("move the second document to another file, or remove this line")
}

pub(super) fn duplicate_key(key: &str, at: Span, first: Span) -> Diagnostic {
    Diagnostic::new(&DUPLICATE_KEY, at, format!("duplicate key `{key}`"))
        .with_label(first, "first defined here")
        .with_help("remove one of the two")
}

pub(super) fn merge_key(at: Span) -> Diagnostic {
    Diagnostic::new(&YAML_FEATURE, at, "merge keys (`<<`) are not supported")
        .with_help("write the keys out, or use an alias for a whole value")
}

/// A list or a mapping as a key; `before` is the file up to it.
pub(super) fn collection_as_key(node: &YamlNode, before: &str) -> Diagnostic {
    if before.ends_with('{') && matches!(node.value, YamlValue::Mapping(_)) {
        let span = Span::new(node.span.source, node.span.start() - 1, node.span.end());
        return Diagnostic::new(
            &YAML_FEATURE,
            span,
            "unquoted, `{{` begins a mapping whose key is a mapping",
        )
        .with_help("quote the string that contains the template: `\"{{ … }}\"`");
    }
    Diagnostic::new(&YAML_FEATURE, node.span, format!("{} can't be a key", node.type_name()))
        .with_help("keys must be strings: quote it if it is one")
}

/// `1`, `true` or nothing as a key.
pub(super) fn scalar_as_key(node: &YamlNode, written: &str) -> Diagnostic {
    if written.is_empty() {
        return Diagnostic::new(&YAML_FEATURE, node.span, "the key before `:` is missing")
            .with_help("write the key, or quote the `:` if it belongs to a string");
    }
    let kind = if matches!(node.value, YamlValue::Null) { "null" } else { node.type_name() };
    Diagnostic::new(&YAML_FEATURE, node.span, format!("the key `{written}` is {kind}, not a string"))
        .with_help(format!("quote it: `\"{written}\"`"))
}

pub(super) fn tag(at: Span, tag: &str) -> Diagnostic {
    let help = match tag {
        "!!str" => "quote the value to make it a string",
        _ => "remove the tag, or quote the value if the `!` belongs to it",
    };
    Diagnostic::new(&YAML_FEATURE, at, format!("tags such as `{tag}` are not supported")).with_help(help)
}

pub(super) fn directive(at: Span) -> Diagnostic {
    Diagnostic::new(&YAML_FEATURE, at, "directives are not supported")
        .with_help("remove this line; rules files are YAML 1.2")
}

pub(super) fn not_finite(at: Span, written: &str) -> Diagnostic {
    Diagnostic::new(&YAML_FEATURE, at, format!("`{written}` is not a number that a policy can hold"))
        .with_help("write a finite number, or quote it if it is a string")
}

/// `0777` is 511 in YAML 1.1, 777 in YAML 1.2, and a string to many people.
pub(super) fn leading_zero(at: Span, written: &str) -> Diagnostic {
    let sign = if written.starts_with('-') { "-" } else { "" };
    let digits = written.trim_start_matches(['-', '+']).trim_start_matches('0');
    let decimal = if digits.starts_with(|c: char| c.is_ascii_digit()) {
        digits.to_owned()
    } else {
        format!("0{digits}")
    };
    let help = format!(
        "quote it if it is a string such as a file mode or a code: `\"{written}\"`; the decimal number is `{sign}{decimal}`"
    );
    Diagnostic::new(
        &YAML_FEATURE,
        at,
        format!("`{written}` has a leading zero: it could be an octal number, a decimal number or a string"),
    )
    .with_help(help)
}

pub(super) fn foreign_number(at: Span, written: &str) -> Diagnostic {
    let message = format!("`{written}` looks like a number but is not one in YAML 1.2");
    let help = match written.contains('_') {
        true => format!("write it without `_`, or quote it if it is a string: `\"{written}\"`"),
        false => format!("write a decimal number, or quote it if it is a string: `\"{written}\"`"),
    };
    Diagnostic::new(&YAML_FEATURE, at, message).with_help(help)
}

pub(super) fn number_too_long(at: Span) -> Diagnostic {
    Diagnostic::new(&YAML_FEATURE, at, "this number is longer than 128 bits")
        .with_help("write it as a decimal number, or quote it if it is a string")
}

pub(super) fn unknown_alias(at: Span, name: &str) -> Diagnostic {
    Diagnostic::new(&BAD_ALIAS, at, format!("`*{name}` refers to an anchor that does not exist")).with_help(
        format!("quote it if it is a string: `\"*{name}\"`; an alias needs the anchor `&{name}` above it"),
    )
}

pub(super) fn alias_inside_itself(at: Span, written: &str) -> Diagnostic {
    Diagnostic::new(&BAD_ALIAS, at, format!("`{written}` is inside the value that it refers to"))
        .with_help("a value can't contain itself: write out the value")
}

pub(super) fn too_deep(at: Span) -> Diagnostic {
    let message = format!("lists and mappings are nested deeper than {MAX_NESTING} levels");
    Diagnostic::new(&YAML_LIMIT, at, message)
        .with_help("no policy needs this depth: check brackets and indentation")
}

pub(super) fn too_many_values(at: Span) -> Diagnostic {
    Diagnostic::new(&YAML_LIMIT, at, "the bundle has more than 1,000,000 values")
        .with_help("no hand-written bundle is that large: check the path")
}

pub(super) fn too_much_copied(at: Span) -> Diagnostic {
    Diagnostic::new(&YAML_LIMIT, at, "the anchors and aliases of this file expand to too much data")
        .with_help("write out the values instead")
}

pub(super) fn too_many_problems(at: Span) -> Diagnostic {
    Diagnostic::new(
        &YAML_LIMIT,
        at,
        format!("parsing stops here, after {MAX_PROBLEMS} problems in this file"),
    )
    .with_help("fix the reported problems, then check again")
}
