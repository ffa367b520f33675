use callgate::diagnostic::*;
use callgate::source::*;
fn show(n: &Node, text: &str, ind: usize) {
    println!("{:ind$}{} {:?} {:?}", "", n.type_name(), text.get(n.span.start..n.span.end).unwrap(), (n.span.start,n.span.end));
    if let NodeValue::String(t)=&n.value { println!("{:ind$}  {:?}", "", t); }
    for e in n.entries().unwrap_or(&[]) { println!("{:ind$} key {:?} {:?}", "", e.key, text.get(e.key_span.start..e.key_span.end)); show(&e.value, text, ind+3); }
    for e in n.items().unwrap_or(&[]) { show(e, text, ind+3); }
}
#[test]
fn probe() {
    for text in [
        "a: 1\nb:\n  - x # c\n  - y\n\n# comment\nc:\n\nd: {e: [f, g], h: }\n",
        "s: |\n  one\n   two\n\n  three\n\n# c\nt: >-\n  fold\n  ed\nu: plain\n   multi\nv: 'it''s'\nw: \"a\\nb\"\n",
        "- &a x\n- *a\n- &m {k: v}\n- *m\n- &z\n- ? k\n  : v\n",
        "\u{feff}a: é\r\nb: 2\r\n",
        "- k: v\n  l:\n  - 1\n  - 2\n-\n- ''\n",
    ] {
        let mut map = SourceMap::default();
        let id = map.add("x.yaml", text);
        let mut d = Diagnostics::default();
        println!("=====\n{text}");
        if let Some(n) = parse(id, text, &mut d) { show(&n, text, 0); }
        for x in d.iter() { println!("{:?} {} {:?}", map.locate(x.span.unwrap()).map(|l|(l.line,l.column,l.end_line,l.end_column)), x.message, x.help); }
    }
    for text in ["a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "\ta: 1\n", "a:\n  - x\n\t- y\n","a: [1,\n\t2]\n", "a: [1, 2\nb: 3\n", "a: [1,2}\n", "a: ]\n", "a: \"x\nb: 3\n", "a: 'x\n", "m: foo: bar\n", "m: {{ x }} to {{ y }}\n", "m: {{ x }}\n", "m: *\n", "m: *x\n","m: @x\n", "m: `x`\n", "m: %x\n", "%YAML 1.2\n---\na: 1\n", "m: !foo!bar x\n", "m: !env x\n", "a: 1\n b: 2\n", "a:\n  b: 1\n c: 2\n", "- a\nb: 1\n", "a: 1\n- b\n", "a\nb: 1\n", "a: {b: 1, c\n", "a: {b: 1 c: 2}\n", "a: \"\\d\"\n", "a: 'x' y\n", "a: \"x\" y\n", "a: |x\n  foo\n", "a: |\n    foo\n  bar\n", "a: >\n\tfoo\n", "a: b\u{1}c\n", "a: 1\n---\nb: 2\n", "a: 1\n...\nb: 2\n", "a: & x\n", "-a: 1\n- b\n", "a:b\n", "a:\n  x\n  y: 1\n", "a: - b\n", "a: 1\na: 2\n", "? a\n", "a: [b: c: d]\n","policies\n", "a: {b: c\n}\n", "match: tool: x\n", "a: b #c\n  d\n", "a: \"b\"#c\n", "x: [a\n  b: c\n", "key: [\n]\n", "a: \"x\\ud800\"\n", "<<: *a\n", "a: ,b\n", "a: ?\n", "? [x]: 1\n","a: -,\n"] {
        let mut map = SourceMap::default();
        let id = map.add("x.yaml", text);
        let mut d = Diagnostics::default();
        println!("== {text:?}");
        let n = parse(id, text, &mut d);
        println!("  -> {:?}", n.map(|n| n.to_json().to_string()));
        for x in d.iter() { println!("  {:?} {} {:?}", map.locate(x.span.unwrap()).map(|l|(l.line,l.column,l.end_line,l.end_column)), x.message, x.help); }
    }
}
