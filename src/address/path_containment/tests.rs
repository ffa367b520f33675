use super::*;
use proptest::prelude::*;

#[test]
fn decides_plain_paths_only() {
    let data = Directory::parse("/srv/data/", None).unwrap();
    for (path, expected) in [
        ("/srv/data", Some(true)),
        ("/srv/data/", Some(true)),
        ("/srv/data/a/b.txt", Some(true)),
        ("//srv/data/a", None),
        ("/srv///data//a", Some(true)),
        ("/srv/./data/./a", Some(true)),
        ("/srv/data/x/../a", Some(true)),
        ("/../../srv/data/a", Some(true)),
        ("/etc/../srv/data/a", Some(true)),
        ("/srv/data/..hidden", Some(true)),
        ("/srv/data/100%/a:b", Some(true)),
        ("/srv/data/José", Some(true)),
        ("/srv/database", Some(false)),
        ("/srv/data/..", Some(false)),
        ("/srv/data/../secret", Some(false)),
        ("/srv/data/a/../../secret", Some(false)),
        ("/srv/data/../data2/a", Some(false)),
        ("/srv/DATA/a", None),
        ("/srv/data/DATA", Some(true)),
        ("/srv/datá", Some(false)),
        ("/srv", Some(false)),
        ("/srv/報告/a", Some(false)),
        ("/srv/data/報告（最終）", Some(true)),
        ("/srv/ｄata/a", None),
        ("/", Some(false)),
        ("", None),
        ("srv/data/a", None),
        ("./a", None),
        ("../srv/data", None),
        ("~/a", None),
        ("~root/a", None),
        (" /srv/data/a", None),
        ("/srv/data/a ", None),
        ("/srv/data/a\n", None),
        ("/srv/data/\0/../../etc", None),
        ("/srv/data/%2e%2e/etc", None),
        ("/srv/data/%2E./etc", None),
        ("/srv/data/..%2fetc", None),
        ("/srv/data/%252e%252e/etc", None),
        ("/srv/data/%u002e%u002e/etc", None),
        ("/srv/data/%c0%ae%c0%ae/etc", None),
        ("/srv/data/..\\..\\etc", None),
        ("C:/srv/data", None),
        ("C:\\srv\\data", None),
        ("file:///srv/data/a", None),
        ("file:/srv/data/a", None),
        ("https://x/srv/data", None),
        ("/srv/data/\u{ff0f}etc", None),
        ("/srv/data/..\u{2215}etc", None),
        ("/srv/data/\u{2024}\u{2024}/etc", None),
        ("/srv/data/\u{2025}/etc", None),
        ("/srv/data/\u{ff0e}\u{ff0e}/etc", None),
        ("/srv/data/.\u{200b}./etc", None),
        ("/srv/data/.../etc", None),
        ("/srv/data/.. /etc", None),
        ("/srv/data/a\u{202e}txt", None),
        ("/srv/data/\u{fffd}", None),
    ] {
        assert_eq!(data.contains(path).ok(), expected, "{path:?}");
    }
}

/// Every spelling that a shell, Windows or a URL decoder turns into another path.
#[test]
fn paths_that_some_program_expands_are_undecided() {
    let directories = [
        Directory::parse("/srv/data", None).unwrap(),
        Directory::parse(".", Some("/srv/data")).unwrap(),
        Directory::parse("/etc", Some("/srv/data")).unwrap(),
    ];
    for part in [
        "$HOME",
        "${HOME}",
        "$(pwd)",
        "`pwd`",
        "$X/..",
        "$1",
        "${IFS}",
        "$env:TEMP",
        "$'..'",
        "%USERPROFILE%",
        "%TEMP:~0,3%",
        "%1",
        "%~dp0",
        "%*",
        "!TEMP!",
        "~",
        "~user",
        "~+",
        "PROGRA~1",
        "*",
        "?",
        ".?",
        ".*",
        "[.].",
        "{.,.}.",
        "{a,..}",
        "@(..)|x",
        "..;",
        "..;a",
        "\"..\"",
        "\"",
        "'..'",
        ".'.'",
        ".''.",
        "^.^.",
        ".^.",
        "..+",
        "+..",
        ".. ",
        "a ..",
        " ..",
        "..%2f",
        "%2e%2e",
        "%252e",
        "<x",
        ">x",
        "|x",
        "a;b",
        "..\\",
        "a\\..",
        "＄HOME",
        "＊",
        "？",
        "｀",
        "［a］",
        "｛a｝",
        "；",
        "．．",
        "…",
        "~1",
        "#/..",
        "#a/../..",
    ] {
        for path in [
            format!("/srv/data/{part}/x"),
            format!("/{part}/x"),
            format!("{part}/x"),
            format!("a/{part}/x"),
            format!("/srv/data/{part}"),
        ] {
            for directory in &directories {
                assert!(directory.contains(&path).is_err(), "{path:?} {directory:?}");
            }
        }
    }
    for path in [
        "=ls",
        "#x",
        "//host/share",
        "/et(c)/passwd",
        "/ETC/passwd",
        "/e'tc'/passwd",
        "/et^c/passwd",
        "/etc /x",
        "/etc&/x",
    ] {
        assert!(directories[2].contains(path).is_err(), "{path:?}");
    }
    // Names that people use.
    for name in [
        "a.txt",
        "a b.txt",
        "Bob's file.txt",
        "(group)",
        "Copy (2).txt",
        "R&D",
        "C#",
        "100%",
        "a+b",
        "c++",
        "x=1",
        "a,b",
        "@types",
        "a@b",
        "-v",
        "file~",
        "Hi!.txt",
        "a:b",
        "..hidden",
        "a..b",
        "報告（最終）",
        "x^2",
        "José",
    ] {
        assert_eq!(directories[0].contains(&format!("/srv/data/{name}/x")), Ok(true), "{name:?}");
    }
}

#[test]
fn the_root_contains_every_absolute_path() {
    let root = Directory::parse("/", None).unwrap();
    assert_eq!((root.contains("/a/../.."), root.contains("/etc/passwd")), (Ok(true), Ok(true)));
    assert!(root.contains("a").is_err());
}

#[test]
fn relative_paths_start_from_the_base() {
    let work = Directory::parse("out", Some("/home/agent")).unwrap();
    for (path, expected) in [
        ("out/a", Some(true)),
        ("./out", Some(true)),
        ("/home/agent/out/a", Some(true)),
        ("a", Some(false)),
        (".", Some(false)),
        ("out/../../secret", Some(false)),
        ("../../../../home/agent/out", Some(true)),
        ("~/out", None),
        ("out\\..", None),
        ("out/%2e%2e", None),
        ("file:out", None),
        ("c:out", None),
    ] {
        assert_eq!(work.contains(path).ok(), expected, "{path:?}");
    }
}

#[test]
fn different_encodings_of_one_name_are_undecided() {
    let directory = Directory::parse("/srv/daté", None).unwrap();
    assert_eq!(directory.contains("/srv/daté/a"), Ok(true));
    assert!(directory.contains("/srv/date\u{301}/a").is_err());
    assert_eq!(directory.contains("/srv/date/a"), Ok(false));
}

#[test]
fn rejects_operands_that_are_not_plain_absolute_directories() {
    for (text, base) in [
        ("srv", None),
        ("", None),
        ("~", None),
        ("C:/x", None),
        ("/a\\b", None),
        ("/a\0", None),
        ("file:///a", None),
        ("/%61", None),
        ("/a", Some("b")),
        ("/$HOME", None),
        ("//host/share", None),
        ("/a*", None),
        ("a", Some("~")),
    ] {
        assert!(Directory::parse(text, base).is_err(), "{text:?} {base:?}");
    }
}

/// Walks a directory tree as a kernel does, without symlinks.
fn reference(path: &str) -> Vec<&str> {
    let mut components = Vec::new();
    for step in path.split('/').filter(|step| !step.is_empty() && *step != ".") {
        if step == ".." {
            components.truncate(components.len().saturating_sub(1));
        } else {
            components.push(step);
        }
    }
    components
}

proptest! {
    #[test]
    fn agrees_with_a_walk_through_the_tree(path in "(/|/a|/b|/\\.\\.|/\\.|/\\.\\.\\.|a|b|/ab|\\.\\.|%2e|~| |\\\\){0,12}") {
        let directory = Directory::parse("/a/b", None).unwrap();
        if let Ok(inside) = directory.contains(&path) {
            prop_assert_eq!(inside, reference(&path).starts_with(&["a", "b"]), "{}", path);
        }
    }

    #[test]
    fn never_panics(text in "\\PC*|[./~%:a\\\\\u{0}-\u{20}]*", base in "\\PC*") {
        let _ = Directory::parse(&text, Some(&base));
        let directory = Directory::parse("/a", Some("/b")).unwrap();
        let _ = directory.contains(&text);
    }
}
