//! Which texts are accepted, and that hostile ones end soon.

use super::parse;

#[test]
fn texts_of_bash_are_accepted() {
    for text in [
        "",
        " # only a comment",
        "a; b & c && d || e | f |& g",
        "{ a; } > x 2>&1; ( b ) < y; ! c",
        "if a; then b; elif c; then d; else e; fi",
        "for x in a b; do c; done; for x; do c; done; for ((i=0; i<3; i++)); do c; done",
        "while a; do b; done < f | c; until a; do b; done",
        "case $x in (a|b) c ;; *) d ;& e) f ;;& esac",
        "f() { a; }; function g { b; }; function h() (c)",
        "[[ $x =~ ^(a|b)$ && -n \"$y\" ]] && (( x + 1 > 2 ))",
        "a=1 b+=2 c[0]=3 d=(x y) e $((1 + 2)) ${x:-y} ${#x} ${x//a/b} ${!x} ${x[@]:1:2}",
        "cat <<A <<-'B'\nx $(y)\nA\n\tz\n\tB\nend",
        "a <<< \"b\" <(c) >(d) $'\\n' $\"e\"",
        "a \\\n  b | \n c",
        "echo `a \\`b\\`` \"`c \\\"d\\\"`\"",
        "((a); b)",
        "echo $((a); (b))",
        "time -p a; export A=1 B=(1 2)",
        "echo a#b {a,b} {a b} }",
    ] {
        assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
    }
}

#[test]
fn invalid_and_unknown_texts_are_errors() {
    for text in [
        "a 'b",
        "a \"b",
        "a `b",
        "a $(b",
        "a ${b",
        "a |",
        "a && ",
        "&& a",
        "a ;; b",
        "( a",
        "a )",
        "{ a",
        "if a; then b",
        "for x in a; b",
        "case x in a b esac",
        "a > ",
        "f() a",
        "a(b)",
        "echo @(a|b)",
        "echo *(.)",
        "echo $[1+2]",
        "echo ${ ls; }",
        "coproc a",
        "repeat 3 a",
        "a\0b",
        "echo \\",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    assert!(parse(&"a".repeat(64 * 1024 + 1)).is_err());
}

/// Each of these makes a parser that tries again at each level, or recurses without bound, hang or overflow its stack.
#[test]
fn hostile_texts_are_errors() {
    for (part, count) in [
        ("(", 30_000),
        ("$(", 30_000),
        ("((", 30_000),
        ("$((a ", 12_000),
        ("{ ", 30_000),
        ("if ", 20_000),
        ("\"$(", 20_000),
        ("${a:-", 12_000),
        ("f(){ ", 12_000),
        ("case x in ", 6_000),
        ("[[ ", 20_000),
        ("! ", 30_000),
        ("x=(", 20_000),
        ("a[$((", 12_000),
        ("a && ", 12_000),
    ] {
        assert!(parse(&part.repeat(count)).is_err(), "{part}");
    }
}
