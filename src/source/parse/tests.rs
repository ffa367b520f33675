use super::*;
use crate::diagnostic::SourceMap;

fn tree(text: &str) -> YamlNode {
    let mut diagnostics = Diagnostics::default();
    let source = SourceMap::default().add("a.yaml", text);
    let root = parse(source, text, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    root.unwrap()
}

fn collect<'t>(node: &YamlNode, text: &'t str, texts: &mut Vec<&'t str>) {
    texts.push(text.get(node.span.start()..node.span.end()).unwrap());
    for entry in node.entries().unwrap_or_default() {
        texts.push(text.get(entry.key_span.start()..entry.key_span.end()).unwrap());
        collect(&entry.value, text, texts);
    }
    node.items().unwrap_or_default().iter().for_each(|item| collect(item, text, texts));
}

#[test]
fn every_key_and_value_has_its_exact_span() {
    for (text, expected) in [
        ("a: é # c\n\n# end\n", vec!["a: é", "a", "é"]),
        ("a:\n- 1\n-  x y\n\n", vec!["a:\n- 1\n-  x y", "a", "- 1\n-  x y", "1", "x y"]),
        ("- - 1\n  - -2\n", vec!["- - 1\n  - -2", "- 1\n  - -2", "1", "-2"]),
        ("{ 'k': [], \"l\": {} } # c", vec!["{ 'k': [], \"l\": {} }", "'k'", "[]", "\"l\"", "{}"]),
        ("a: |\n  x\n  y\n\n# c\nb:\n", vec!["a: |\n  x\n  y\n\n# c\nb:", "a", "x\n  y", "b", ""]),
        ("a: &x 1\nb: *x\r\n", vec!["a: &x 1\nb: *x", "a", "1", "b", "*x"]),
    ] {
        let mut texts = Vec::new();
        collect(&tree(text), text, &mut texts);
        assert_eq!(texts, expected, "{text}");
    }
}

#[test]
fn a_missing_value_has_a_span_after_the_colon() {
    let root = tree("a:\n\n\nb : # c\n");
    let starts: Vec<_> = root.entries().unwrap().iter().map(|entry| entry.value.span.start()).collect();
    assert_eq!(starts, [2, 8]);
}

#[test]
fn strings_record_their_notation() {
    let text = "- a b\n- a\n  b\n- 'a'\n- \"a\"\n- |\n  a\n- >\n  a\n";
    let styles: Vec<_> = tree(text)
        .items()
        .unwrap()
        .iter()
        .map(|item| match &item.value {
            YamlValue::String(text) => text.style,
            other => panic!("{other:?}"),
        })
        .collect();
    use StringStyle::{Folded, Literal, Plain, Quoted};
    assert_eq!(styles, [Plain, Quoted, Quoted, Quoted, Literal, Folded]);
}

#[test]
fn quoted_scalars_are_strings() {
    let value = tree("['1', \"true\", 1.50, no, {\"1\": ~, '<<': x}]").to_json();
    assert_eq!(value.to_string(), r#"["1","true",1.50,"no",{"1":null,"<<":"x"}]"#);
}

#[test]
fn returns_a_tree_despite_minor_problems() {
    for (text, expected) in [
        ("a: 1\na: 2\n", Some(r#"{"a":1}"#)),
        ("a: !t 1\n", Some(r#"{"a":1}"#)),
        ("1: a\nb: 2\n", Some(r#"{"b":2}"#)),
        ("a: 1\n---\nb: 2\n", Some(r#"{"a":1}"#)),
        ("a: *b\n", None),
        ("a: &a { <<: *a }\n", None),
        ("a: .inf\n", None),
        ("a: [\n", None),
        ("", None),
    ] {
        let mut diagnostics = Diagnostics::default();
        let source = SourceMap::default().add("a.yaml", text);
        let found = parse(source, text, &mut diagnostics).map(|root| root.to_json().to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
        assert!(diagnostics.has_errors(), "{text}");
    }
}
