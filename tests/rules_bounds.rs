//! Denial of service by rules files: hostile bundles are rejected or checked within bounds of time and memory.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use callgate::policy;

/// Runs `callgate check` on a bundle. Returns the exit code, the output, and the peak memory in KiB. The process is killed after
/// minutes of CPU time.
fn run_check(directory: &Path) -> (Option<i64>, String, u64) {
    const MEASURED: &str = "
import json, resource, subprocess, sys
def bounded():
    resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
ran = subprocess.run(sys.argv[1:], capture_output=True, preexec_fn=bounded)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
def ends(written):
    text = written.decode('utf-8', 'replace')
    return text if len(text) < 20000 else text[:10000] + text[-10000:]
print(json.dumps([ran.returncode, ends(ran.stdout), ends(ran.stderr), len(ran.stdout), peak]))
";
    let binary = env!("CARGO_BIN_EXE_callgate");
    let ran = Command::new("python3")
        .args(["-c", MEASURED, binary, "check"])
        .arg(directory)
        .output()
        .expect("python3 is needed to measure memory");
    let told = callgate::json::parse_bytes(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&ran.stderr)));
    let length = told[3].as_u64().unwrap();
    assert!(length < 8 << 20, "{length} bytes were written");
    let text = format!("{}{}", told[1].as_str().unwrap(), told[2].as_str().unwrap());
    (told[0].as_i64(), text, told[4].as_u64().unwrap())
}

/// The memory limit for hostile bundles, in KiB. An unoptimised build stays below it, too.
const MOST_MEMORY: u64 = 200 << 10;

fn policies(count: usize, mut policy: impl FnMut(usize) -> String) -> String {
    let mut text = "policies:\n".to_owned();
    for number in 0..count {
        writeln!(text, "  - {}", policy(number)).unwrap();
    }
    text
}

fn hostile_bundles() -> Vec<(&'static str, String, &'static str)> {
    let one = |policy: String| format!("policies:\n  - {policy}\n");
    let nested = |open: &str, close: &str| format!("{}1{}", open.repeat(20_000), close.repeat(20_000));
    let regex = |number: usize| format!("{{ id: p{number}, match: '/\\w{{400}}x{number}/', deny: {{}} }}");
    let matches = |regex: &str| {
        one(format!(
            "{{ id: p, match: {{ tool: t, where: {{ path: $.input.a, matches: '{regex}' }} }}, deny: {{}} }}"
        ))
    };
    let path = |path: &str| {
        one(format!(
            "{{ id: p, match: {{ tool: t, where: [ {{ path: \"{path}\", eq: 1 }} ] }}, deny: {{}} }}"
        ))
    };
    vec![
        (
            "20,000 policies with one id",
            policies(20_000, |_| "{ id: p, match: t, deny: {} }".into()),
            "CG008",
        ),
        (
            "20,000 unknown keys",
            policies(20_000, |n| format!("{{ id: p{n}, match: t, dney{n}: {{}} }}")),
            "CG008",
        ),
        ("a 4 MB regex", matches(&"(a|b)".repeat(800_000)), "CG205"),
        ("a huge alternation", matches(&"ab|".repeat(100_000)), "CG205"),
        (
            "a name pattern of 4 MB",
            one(format!("{{ id: p, match: '/{}/', deny: {{}} }}", "(a|b)".repeat(800_000))),
            "CG307",
        ),
        ("10,000 large regexes", policies(10_000, regex), "in total"),
        (
            "10,000 schemas with one large regex",
            policies(10_000, |n| {
                format!(
                    "{{ id: p{n}, match: t, validate: {{ schema: {{ properties: {{ a: {{ pattern: '^\\w{{200}}$' }} }} }} }} }}"
                )
            }),
            "takes too much memory",
        ),
        (
            "5,000 long globs",
            policies(5_000, |n| format!("{{ id: p{n}, match: '*{}{n}*', deny: {{}} }}", "a*".repeat(300))),
            "",
        ),
        ("a key of 4 MB", one(format!("{{ id: p, match: t, {}: {{}} }}", "k".repeat(4 << 20))), "CG1"),
        (
            "a huge template",
            one(format!(
                "{{ id: p, match: t, deny: {{ message: '{}' }} }}",
                "{{ input.a }} ".repeat(300_000)
            )),
            "CG205",
        ),
        ("a huge path", path(&format!("$.input{}", ".a".repeat(1_000_000))), "longer than 4096"),
        ("a path of brackets", path(&format!("$.input[?{}]", nested("(", ")"))), "CG3"),
        (
            "a huge expression",
            one(format!(
                "{{ id: p, match: {{ tool: t, where: {{ expr: '{}' }} }}, deny: {{}} }}",
                nested("(", ")")
            )),
            "CG3",
        ),
        (
            "a huge script",
            one(format!("{{ id: p, match: t, around: {{ script: '{}' }} }}", "next(input);".repeat(300_000))),
            "CG3",
        ),
        ("nested sequences", format!("policies: {}", "[".repeat(20_000)), "CG106"),
        (
            "an alias bomb",
            {
                let lines = (1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1));
                format!("a0: &a0 [x, x, x, x]\n{}policies: []\n", lines.collect::<String>())
            },
            "CG106",
        ),
        ("many values", format!("policies: [{}]", "a,".repeat(3_000_000)), "CG106"),
        (
            "one line of 7 MB",
            format!("policies: [ {} ]", "{ id: p, match: t, deny: {} }, ".repeat(230_000)),
            "CG",
        ),
        (
            "a deep schema",
            one(format!(
                "{{ id: p, match: t, validate: {{ schema: {} }} }}",
                "{ properties: { a: ".repeat(5_000)
            )),
            "CG106",
        ),
        (
            "a wide schema",
            one(format!(
                "{{ id: p, match: t, validate: {{ schema: {{ anyOf: [{}] }} }} }}",
                "{ type: string, pattern: '^\\w{200}$' },".repeat(50_000)
            )),
            "",
        ),
    ]
}

#[test]
fn hostile_bundles_are_checked_within_bounds() {
    let mut wrong = Vec::new();
    for (name, text, said) in hostile_bundles() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("rules.yaml"), text).unwrap();
        let (code, told, peak) = run_check(directory.path());
        eprintln!("{name}: exit {code:?}, {} MiB", peak >> 10);
        if !matches!(code, Some(0 | 1)) || !told.contains(said) || peak >= MOST_MEMORY {
            let told: String = told.chars().take(1000).collect();
            wrong.push(format!("{name}: exit {code:?}, {peak} KiB, not {said}: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn too_large_files_are_not_read_completely() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rules.yaml"), "# ".repeat(50 << 20)).unwrap();
    fs::write(directory.path().join("line.yaml"), format!("policies: [{}", "a".repeat(50 << 20))).unwrap();
    let (code, told, peak) = run_check(directory.path());
    assert_eq!((code, told.matches("CG004").count()), (Some(1), 2), "{told}");
    assert!(peak < MOST_MEMORY, "{peak} KiB");
}

/// 10,000 policies as people write them load.
#[test]
fn ten_thousand_policies_load_within_bounds() {
    let text = policies(10_000, |number| {
        let tool = match number % 10 {
            0..7 => format!("tool_{number}"),
            7 | 8 => format!("'group_{number}_*'"),
            _ => format!("'/^admin_{number}_(read|write)$/'"),
        };
        format!(
            "{{ id: p{number}, match: {{ tool: {tool}, where: [ {{ path: $.input.amount, gt: {number} }} ] }}, \
             deny: {{ message: 'Not {{{{ input.amount }}}}' }} }}"
        )
    });
    let built = policy::build_texts([("rules.yaml", text.as_str())]);
    let said = callgate::diagnostic::render::text(&built.diagnostics, &built.sources, false);
    assert_eq!(built.policies.map(|chains| chains.policies().len()), Some(10_000), "{said}");
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rules.yaml"), text).unwrap();
    let (code, told, peak) = run_check(directory.path());
    eprintln!("10,000 policies: {} MiB", peak >> 10);
    assert_eq!(code, Some(0), "{told}");
    assert!(peak < 2 * MOST_MEMORY, "{peak} KiB");
}
