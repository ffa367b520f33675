//! Servers whose tools could not be told apart by their names.

use callgate::diagnostic::render;
use callgate::mcp::Config;

/// What is told of a file with these servers.
fn told(servers: &[(&str, Option<&str>)]) -> String {
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
fn prefixes_of_which_one_begins_another_are_refused() {
    for (servers, wrong, place) in [
        ([("a", Some("x_")), ("b", Some("x_y_"))], "`x_y_` begins with the prefix of `a`, `x_`", "4:43"),
        ([("a", Some("x_y_")), ("b", Some("x_"))], "the prefix of `a`, `x_y_`, begins with `x_`", "4:43"),
        ([("a", Some("x_")), ("b", Some("x_"))], "`x_` is the prefix of `a`, too", "4:43"),
        ([("a", None), ("a__b", None)], "`a__b__` begins with the prefix of `a`, `a__`", "4:13"),
        ([("a", None), ("b", Some("a__"))], "`a__` is the prefix of `a`, too", "4:43"),
        ([("a", Some("b__")), ("b", None)], "`b__` is the prefix of `a`, too", "4:13"),
    ] {
        let told = told(&servers);
        assert!(told.contains(&format!("error[CG207]: {wrong}")), "{servers:?}: {told}");
        assert!(told.contains(&format!("gateway.yaml:{place}")), "{servers:?}: {told}");
        assert!(told.contains("help: ") && told.contains("`prefix`"), "{servers:?}: {told}");
        assert_eq!(told.matches("error[").count(), 1, "{servers:?}: {told}");
    }
}

#[test]
fn prefixes_that_tell_servers_apart_are_taken() {
    assert_eq!(told(&[("a", None), ("ab", None), ("a_b", None)]), "");
    assert_eq!(told(&[("a", Some("x_y_")), ("b", Some("x_z_")), ("c", Some("y_"))]), "");
    // It has no prefix.
    assert_eq!(told(&[("a", None)]), "");
    let twice = told(&[("a", None), ("a", None)]);
    assert_eq!(twice.matches("error[").count(), 1, "told once: {twice}");
}
