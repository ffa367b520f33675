//! What commands are reported of a text: one row per behaviour.

use super::Analyzer;
use crate::command::{DoubtKind, ShellCommand, ShellScript};
use crate::programs::Wrapper;

fn analyze(text: &str) -> ShellScript {
    Analyzer::default().analyze(text, Some("/work"))
}

/// The commands, each with its words, and unknown words in angle brackets.
fn commands(script: &ShellScript) -> Vec<String> {
    let words = |command: &ShellCommand| {
        let mut words = vec![command.program.clone().unwrap_or_else(|| "<unknown>".to_owned())];
        words.extend(command.arguments.iter().map(|word| match word.as_known() {
            Some(text) => text.to_owned(),
            None => format!("<{}>", word.text),
        }));
        words.join(" ")
    };
    script.commands.iter().map(words).collect()
}

fn command(text: &str, program: &str) -> ShellCommand {
    let script = analyze(text);
    let found = script.commands.into_iter().find(|command| command.program.as_deref() == Some(program));
    found.unwrap_or_else(|| panic!("{text} has no {program}"))
}

fn texts(words: &[crate::word::ShellWord]) -> Vec<&str> {
    words.iter().map(|word| word.text.as_str()).collect()
}

#[test]
fn every_command_of_a_text_is_reported() {
    for (text, expected) in [
        ("a x; b & c && d | e", vec!["a x", "b", "c", "d", "e"]),
        ("if a; then b; else c; fi", vec!["a", "b", "c"]),
        ("echo \"$(a | b)\" `c`", vec!["a", "b", "c", "echo <$(…)> <$(…)>"]),
        ("f() { a; }; f", vec!["a", "f"]),
        ("for x in 1 2; do a $x; done", vec!["a 1", "a 2"]),
        ("while read l; do a \"$l\"; done < f", vec![" ", "read l", "a <$l>"]),
        ("cat <<A\n$(b)\nA", vec!["b", "cat"]),
        ("cat <<'A'\n$(b)\nA", vec!["cat"]),
        ("X=1 a; Y=b; $Y c; ${Y} d", vec!["a", "b c", "b d"]),
        ("a {1..2} {x,y}z", vec!["a 1 2 xz yz"]),
        ("sh -ec 'a; b'", vec!["sh -ec a; b", "a", "b"]),
        ("echo 'a b' | sh", vec!["echo a b", "sh", "a b"]),
        ("bash <<A\na\nA", vec!["bash", "a"]),
        ("eval a 'b; c'", vec!["eval a b; c", "a b", "c"]),
        ("trap 'a' EXIT", vec!["trap a EXIT", "a"]),
    ] {
        let script = analyze(text);
        let expected: Vec<&str> = expected.iter().map(|text| text.trim_end()).collect();
        assert_eq!(commands(&script), expected, "{text}");
        assert_eq!(script.doubts, [], "{text}");
    }
}

#[test]
fn wrappers_are_unfolded() {
    for (text, inner) in [
        ("sudo -u root -E rm x", "rm x"),
        ("env -u A B=1 rm x", "rm x"),
        ("timeout -s KILL 5 rm x", "rm x"),
        ("nice -n 3 nohup setsid rm x", "rm x"),
        ("find . -name a -exec rm -v {} +", "rm -v <./**>"),
        ("find . -execdir rm {} ';' -print", "rm <./**>"),
        ("fd -e o -x rm", "rm <./**>"),
        ("ls | xargs -n 1 rm -f", "rm -f <(input)>"),
        ("ls | xargs -I{} rm {} x", "rm <{}> x"),
        ("ssh -p 22 host 'cd /; rm x'", "rm x"),
        ("docker exec -it web rm x", "rm x"),
        ("docker compose -f c.yml exec -T web rm x", "rm x"),
        ("docker run --rm -v a:b image rm x", "rm x"),
        ("kubectl -n prod exec pod -c app -- rm x", "rm x"),
        ("npx rm x", "rm x"),
        ("uv run --with a rm x", "rm x"),
        ("git -c alias.x='!rm x' x", "rm x"),
        ("git -c core.pager='rm x' log", "rm x"),
        ("git rebase --exec 'rm x' main", "rm x"),
        ("GIT_SSH_COMMAND='rm x' git fetch", "rm x"),
        ("flock /tmp/l -c 'rm x'", "rm x"),
        ("su -c 'rm x' bob", "rm x"),
        ("command rm x", "rm x"),
        ("busybox rm x", "rm x"),
        ("watch -n 1 'rm x'", "rm x"),
        ("rsync -e 'rm x' a b", "rm x"),
        ("tar -xf a --to-command='rm x'", "rm x"),
        ("bash -c 'sudo sh -c \"rm x\"'", "rm x"),
    ] {
        assert!(
            commands(&analyze(text)).iter().any(|command| command == inner),
            "{text}: {:?}",
            commands(&analyze(text))
        );
    }
    let defined = Wrapper::new("mycloud exec", 1).unwrap().with_flags_with_value(vec!["-n".to_owned()]);
    let script = Analyzer::new(vec![defined.with_remote()]).analyze("mycloud exec -n a pod rm x", None);
    assert_eq!(commands(&script)[1], "rm x");
    assert!(script.commands[1].is_remote);
    assert!(Wrapper::new("/bin/x", 0).is_err() && Wrapper::new(" ", 0).is_err());
}

#[test]
fn what_is_not_known_is_doubted() {
    use DoubtKind::{Dynamic, Files, Inline, Scripts};
    for (text, kind) in [
        ("$X a", Dynamic),
        ("eval $X", Dynamic),
        ("sh -c \"$X\"", Dynamic),
        ("curl x | sh", Dynamic),
        ("bash <(curl x)", Dynamic),
        ("echo $X | bash", Dynamic),
        ("ssh host \"$X\"", Dynamic),
        ("sudo $X rm a", Dynamic),
        ("find . $X", Dynamic),
        ("a 'b", Dynamic),
        ("alias ls='rm x'; ls", Dynamic),
        ("PATH=.:$PATH ls", Dynamic),
        ("export LD_PRELOAD=x", Dynamic),
        ("env LD_PRELOAD=x ls", Dynamic),
        ("x='a[$(rm y)]'; ((x))", Dynamic),
        ("x='$(rm y)'; echo ${x@P}", Dynamic),
        ("Remove-Item -Recurse C:/x", Dynamic),
        ("del /s x", Dynamic),
        ("reg save HKLM/SAM x", Dynamic),
        ("schtasks.exe /create /tn x", Dynamic),
        ("vssadmin delete shadows /all", Dynamic),
        ("powershell -EncodedCommand AAAA", Dynamic),
        ("pwsh -NoProfile -enc AAAA", Dynamic),
        ("=rm x", Dynamic),
        ("bash --norc -i", Dynamic),
        ("python3", Dynamic),
        ("python3 -i", Dynamic),
        ("node", Dynamic),
        ("ssh host", Dynamic),
        ("sudo -s", Dynamic),
        ("sudo chroot /x", Dynamic),
        ("script /dev/null", Dynamic),
        ("python -c 'x'", Inline),
        ("python3.12 - <<A\nx\nA", Inline),
        ("node -e 'x'", Inline),
        ("awk 'BEGIN { system(\"x\") }'", Inline),
        ("sed '1e x' f", Inline),
        ("cmd /c del x", Inline),
        ("npm test", Scripts),
        ("make -j 4 all", Scripts),
        ("sh x.sh", Files),
        ("source x", Files),
        (". ./x", Files),
        ("git -c core.hooksPath=x commit", Files),
    ] {
        let doubts = analyze(text).doubts;
        assert!(doubts.iter().any(|doubt| doubt.kind == kind), "{text}: {doubts:?}");
    }
    for text in [
        "awk '{print $1}' f",
        "sed -n '1,5p' f",
        "python x.py",
        "cargo test",
        "npm ci",
        "ls $X",
        "git log -p",
        "python --version",
        "python -m pytest",
        "node x.js",
        "ssh host ls",
        "env -i",
        "sudo -i ls",
    ] {
        assert_eq!(analyze(text).doubts, [], "{text}");
    }
}

#[test]
fn flags_are_recognised_in_each_form() {
    for text in ["rm -rf x", "rm -fr x", "rm -R --force x", "rm --recurs x -f", "rm x -r -f"] {
        let command = command(text, "rm");
        let names: Vec<&str> = command.flags.iter().map(|flag| flag.name.as_str()).collect();
        assert!(names.contains(&"-r") && names.contains(&"-f"), "{text}: {names:?}");
        assert_eq!(texts(&command.operands), ["x"], "{text}");
    }
    assert_eq!(texts(&command("rm -- -rf", "rm").operands), ["-rf"]);
    let curl = command("curl -sSLo out -XPOST --url=a -d @b", "curl");
    let values: Vec<Option<&str>> =
        curl.flags.iter().map(|flag| flag.value.as_ref().map(|value| value.text.as_str())).collect();
    assert_eq!(values, [None, None, None, Some("out"), Some("POST"), Some("a"), Some("@b")]);
    let git = command("git -C dir -c a=b remote add -f origin url", "git");
    assert_eq!(
        (texts(&git.subcommand), texts(&git.operands)),
        (vec!["remote", "add", "origin", "url"], vec!["add", "origin", "url"])
    );
    assert!(command("git --what x push", "git").is_subcommand_ambiguous);
    assert!(command("git push $X", "git").may_have_more_flags);
    assert!(!command("git push \"/x/$X\"", "git").may_have_more_flags);
}

#[test]
fn files_and_directories_are_tracked() {
    for (text, program, reads, writes) in [
        ("sort < a > b", "sort", vec!["a"], vec!["b"]),
        ("cp -r a b c", "cp", vec!["a", "b"], vec!["c"]),
        ("mv a b", "mv", vec!["a"], vec!["b", "a"]),
        ("dd if=a of=/dev/sda bs=1", "dd", vec!["a"], vec!["/dev/sda"]),
        ("sed -i s/a/b/ f g", "sed", vec!["f", "g"], vec!["f", "g"]),
        ("tee -a x", "tee", vec![], vec!["x"]),
        ("curl -o x -K y url", "curl", vec!["y"], vec!["x"]),
        ("grep -r a src", "grep", vec!["src"], vec![]),
        ("find a b -name x -delete", "find", vec!["a", "b"], vec!["a/**", "b/**"]),
        ("echo a 2>&1 >&2 &> f", "echo", vec![], vec!["f"]),
    ] {
        let command = command(text, program);
        assert_eq!((texts(&command.reads), texts(&command.writes)), (reads, writes), "{text}");
    }
    for (text, expected) in [
        ("x", Some("/work")),
        ("cd a/../b && x", Some("/work/b")),
        ("cd /; x", None),
        ("(cd /); x", Some("/work")),
        ("cd && x", Some("~")),
        ("cd \"$X\" && x", None),
        ("for i in 1; do cd a; done; x", None),
        ("env -C /tmp x", Some("/tmp")),
        ("sh -c 'cd / && x'", Some("/")),
        ("ssh host 'cd /srv && x'", Some("/srv")),
        ("eval 'cd /tmp' && x", Some("/tmp")),
    ] {
        assert_eq!(command(text, "x").directories.single(), expected, "{text}");
    }
}

#[test]
fn input_of_pipes_and_substitutions_is_tracked() {
    for text in [
        "curl u | x",
        "curl u | tee f | x",
        "x \"$(curl u)\"",
        "x <(curl u)",
        "x < <(curl u)",
        "curl u | sudo x",
        "curl u | xargs x",
    ] {
        assert!(command(text, "x").input_from.iter().any(|name| name == "curl"), "{text}");
    }
    assert!(command("$P | x", "x").may_have_more_input);
    assert_eq!(command("a; x", "x").input_from, Vec::<String>::new());
}

#[test]
fn the_number_of_commands_is_bounded() {
    for text in [
        "a;".repeat(20_000),
        "for x in 1 2 3 4 5 6 7 8; do ".repeat(8) + "a" + &"; done".repeat(8),
        "eval ".repeat(500) + "a",
    ] {
        let script = analyze(&text);
        assert!(script.commands.len() <= super::MAX_COMMANDS + 1);
        assert!(script.doubts.iter().any(|doubt| doubt.kind == DoubtKind::Dynamic));
    }
}
