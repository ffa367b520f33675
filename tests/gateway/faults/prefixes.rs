//! Ambiguous tool prefixes of servers.

use callgate::diagnostic::render;
use callgate_mcp::Config;

/// The diagnostics of a gateway file with these servers.
fn diagnostics(servers: &[(&str, Option<&str>)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.yaml");
    let servers = servers.iter().map(|(name, prefix)| {
        let prefix = prefix.map(|prefix| format!(", prefix: {prefix}")).unwrap_or_default();
        format!("  - {{ name: {name}, command: [server]{prefix} }}\n")
    });
    std::fs::write(&file, format!("callgate: 1\nservers:\n{}", servers.collect::<String>())).unwrap();
    match Config::read(&file, |_| None) {
        Ok(_) => String::new(),
        Err(error) => render::text(&error.diagnostics, &error.sources, false),
    }
}

#[test]
fn rejects_prefixes_that_begin_with_one_another() {
    for (servers, wrong, place) in [
        ([("a", Some("x_")), ("b", Some("x_y_"))], "`x_y_` begins with the prefix of `a`, `x_`", "4:43"),
        ([("a", Some("x_y_")), ("b", Some("x_"))], "the prefix of `a`, `x_y_`, begins with `x_`", "4:43"),
        ([("a", Some("x_")), ("b", Some("x_"))], "`x_` is also the prefix of `a`", "4:43"),
        ([("a", None), ("a__b", None)], "`a__b__` begins with the prefix of `a`, `a__`", "4:13"),
        ([("a", None), ("b", Some("a__"))], "`a__` is also the prefix of `a`", "4:43"),
        ([("a", Some("b__")), ("b", None)], "`b__` is also the prefix of `a`", "4:13"),
    ] {
        let text = diagnostics(&servers);
        assert!(text.contains(&format!("error[CG207]: {wrong}")), "{servers:?}: {text}");
        assert!(text.contains(&format!("gateway.yaml:{place}")), "{servers:?}: {text}");
        assert!(text.contains("help: ") && text.contains("`prefix`"), "{servers:?}: {text}");
        assert_eq!(text.matches("error[").count(), 1, "{servers:?}: {text}");
    }
}

#[test]
fn accepts_unambiguous_prefixes() {
    assert_eq!(diagnostics(&[("a", None), ("ab", None), ("a_b", None)]), "");
    assert_eq!(diagnostics(&[("a", Some("x_y_")), ("b", Some("x_z_")), ("c", Some("y_"))]), "");
    // A single server has no prefix.
    assert_eq!(diagnostics(&[("a", None)]), "");
    let twice = diagnostics(&[("a", None), ("a", None)]);
    assert_eq!(twice.matches("error[").count(), 1, "reported once: {twice}");
}
