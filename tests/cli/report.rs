//! `callgate report`: what it counts in logs, and what it makes of logs that are incomplete or hostile.

use std::fs;

use super::TestDir;

const RULES: &str = r#"
policies:
  - { id: no-rm, match: rm, deny: {} }
  - { id: watch-pay, match: pay, mode: shadow, deny: {} }
  - { id: never-used, match: absent, deny: {} }
  - { id: ask-above, match: { tool: pay, where: [ { path: $.input.amount, gt: 100 } ] }, approval: {} }
"#;

const CALLS: &str = r#"{"tool":"rm","input":{"path":"/"},"context":{"principal":"ann"}}
{"tool":"pay","input":{"amount":10},"context":{"principal":"ann"}}
{"tool":"pay","input":{"amount":1000},"context":{"principal":"<b>bob\u001b[31m"}}
{"tool":"read","input":{}}
"#;

fn dir_with_log() -> TestDir {
    let dir = TestDir::new(&[("rules.yaml", RULES), ("calls.jsonl", CALLS)]);
    let arguments =
        ["run", "--policies", "rules.yaml", "--log", "log.jsonl", "--log-content", "redacted", "calls.jsonl"];
    assert_eq!(dir.run(&arguments).code, Some(0));
    dir
}

#[test]
fn policies_in_shadow_mode_are_listed_with_whom_they_would_have_stopped() {
    let dir = dir_with_log();
    let report = dir.run(&["report", "--policies", "rules.yaml", "log.jsonl"]);
    assert_eq!(report.code, Some(0), "{}", report.stderr);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/report");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "[time]");
    settings.bind(|| insta::assert_snapshot!("text", report.stdout));
    let document = dir.run(&["report", "--format", "json", "log.jsonl"]).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let watch = &document["policies"][2];
    assert_eq!((&watch["id"], &watch["shadow"]["deny"]), (&"watch-pay".into(), &2.into()), "{document:#}");
    assert_eq!(watch["examples"][0]["input"]["amount"], 10);
}

#[test]
fn the_page_has_no_markup_of_logs_and_loads_nothing() {
    let dir = dir_with_log();
    let page = dir.run(&["report", "--format", "html", "log.jsonl"]).stdout;
    assert!(page.contains(r"\u003cb\u003ebob"), "{page}");
    assert!(
        !page.contains("<b>")
            && !page.contains('\u{1b}')
            && !page.contains("<script")
            && !page.contains("http://")
    );
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn an_approved_call_is_one_call_with_its_last_outcome() {
    let line = |time: u32, event: &str, more: &str| {
        format!(
            "{{\"version\":1,\"event\":\"{event}\",\"time\":\"2026-01-01T00:00:{time:02}Z\",\"session\":\"s\",\"id\":\"c\",\"tool\":\"pay\",{more}}}\n"
        )
    };
    let log = [
        line(0, "approval_requested", r#""approval_id":"a""#),
        line(
            0,
            "call_completed",
            r#""outcome":"suspended","reason":{"code":"approval_required"},"duration_us":1"#,
        ),
        line(30, "approval_answered", r#""approval_id":"a","approved":true,"code":"approved""#),
        line(31, "call_completed", r#""outcome":"executed","reason":{"code":"approved"},"duration_us":1"#),
    ];
    let dir = TestDir::new(&[("log.jsonl", &log.concat())]);
    let report = dir.run(&["report", "log.jsonl"]);
    assert!(report.stdout.starts_with("1 call from"), "{}", report.stdout);
    assert!(!report.stdout.contains("suspended"), "{}", report.stdout);
    assert!(
        report.stdout.contains("1 approved, 0 denied, 0 expired; answered after 30 s"),
        "{}",
        report.stdout
    );
}

#[test]
fn damaged_lines_are_reported_and_the_rest_is_counted() {
    let dir = dir_with_log();
    let text = fs::read_to_string(dir.0.path().join("log.jsonl")).unwrap();
    let cut = text.trim_end().len() - 10;
    fs::write(dir.0.path().join("cut.jsonl"), text.get(..cut).unwrap()).unwrap();
    let report = dir.run(&["report", "cut.jsonl"]);
    assert_eq!(report.code, Some(0), "the end of a log that is being written is no error");
    assert!(report.stderr.contains("the last line is incomplete"), "{}", report.stderr);
    assert!(report.stdout.starts_with("3 calls"), "{}", report.stdout);
    let opened = text.lines().next().unwrap();
    let bad = format!("nonsense\n{text}{{\"version\":9,\"event\":\"x\"}}\n[]\n{opened}\n");
    fs::write(dir.0.path().join("bad.jsonl"), bad).unwrap();
    let report = dir.run(&["report", "bad.jsonl"]);
    assert_eq!(report.code, Some(2));
    assert!(
        report.stderr.contains("bad.jsonl:1: not a complete line")
            && report.stderr.contains("newer Callgate"),
        "{}",
        report.stderr
    );
    assert!(report.stdout.starts_with("4 calls"), "{}", report.stdout);
    assert_eq!(dir.run(&["report", "--since", "nonsense", "log.jsonl"]).code, Some(2));
    assert!(dir.run(&["report", "--until", "1d", "log.jsonl"]).stdout.starts_with("no events"));
}

fn page(log: &str, more: &[&str]) -> String {
    let dir = TestDir::new(&[("log.jsonl", log), ("rules.yaml", RULES)]);
    let ended = dir.run(&[&["report", "--format", "html", "log.jsonl"], more].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended.stdout
}

fn call_line(time: &str, policy: &str, verdict: &str) -> String {
    let line = serde_json::json!({
        "version": 1, "event": "call_completed", "time": time, "session": "s", "id": time, "tool": policy, "outcome": "denied",
        "principal": policy, "reason": { "code": "denied" }, "duration_us": 1, "input": { "a": policy },
        "policies": [{ "id": policy, "kind": "deny", "phase": "gate", "verdict": verdict, "shadow": verdict == "deny" }],
    });
    format!("{line}\n")
}

#[test]
fn the_page_says_what_is_missing() {
    assert!(page("", &[]).contains("The logs contain no events of this period."));
    let opened =
        r#"{"version":1,"event":"log_opened","time":"2026-01-01T00:00:00Z","callgate":"0.1.0","process":1}"#;
    assert!(page(opened, &[]).contains("The logs contain no calls of this period."));
    let calls = page(&call_line("2026-01-01T00:00:00Z", "p", "pass"), &["--policies", "rules.yaml"]);
    for text in [
        "No policy in shadow mode would have stopped a call.",
        "No enforced policy stopped a call.",
        "never-used",
    ] {
        assert!(calls.contains(text), "{text}\n{calls}");
    }
}

/// Names of logs are text wherever they appear: tools, principals, policies, arguments, events.
#[test]
fn names_of_a_hostile_log_are_text_of_the_page() {
    let hostile = "</style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}&lt;";
    let mut log = call_line("2026-01-01T00:00:00Z", hostile, "deny");
    log += &call_line("2026-01-01T00:00:01Z", hostile, "deny").replace("call_completed", "<b>event");
    let page = page(&log, &[]);
    let body = page.split_once("</style>").unwrap().1;
    assert!(!body.contains("<script") && !body.contains("<img") && !body.contains("<b>"), "{page}");
    assert!(!body.contains('\u{202e}') && body.contains("&amp;lt;"), "{page}");
    // No attribute contains text of a log.
    assert!(!regex::Regex::new("=\"[^\"]*alert").unwrap().is_match(body), "{page}");
}

#[test]
fn thousands_of_policies_are_counted_and_the_page_stays_small() {
    let log: String = (0..3_000)
        .map(|number| {
            call_line(
                &format!("2026-01-01T{:02}:00:{:02}Z", number / 60 % 24, number % 60),
                &format!("p{number}"),
                "deny",
            )
        })
        .collect();
    let dir = TestDir::new(&[("log.jsonl", &log)]);
    let document = dir.run(&["report", "--format", "json", "log.jsonl"]).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["policies"].as_array().unwrap().len(), 3_000);
    let page = page(&log, &[]);
    assert!(page.contains("and 2,900 more") && page.len() < 200_000, "{}", page.len());
}

/// A few events of a wrong clock do not make the plot useless, and are mentioned.
#[test]
fn calls_of_a_wrong_clock_do_not_stretch_the_plot() {
    let log: String = (0..400)
        .map(|number| {
            call_line(&format!("2026-03-{:02}T{:02}:00:00Z", number % 28 + 1, number % 24), "p", "pass")
        })
        .collect();
    let jumped = format!(
        "{}{log}{}",
        call_line("1970-01-01T00:00:00Z", "p", "pass"),
        call_line("2199-01-01T00:00:00Z", "p", "pass")
    );
    let (plain, jumped) = (page(&log, &[]), page(&jumped, &[]));
    let columns = |page: &str| page.matches("<g><title>").count();
    assert_eq!(columns(&plain), columns(&jumped));
    assert!(jumped.contains("2 calls at far other times are not shown"), "{jumped}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_is_reported() {
    let dir = dir_with_log();
    for arguments in [
        &["report", "--format", "html", "log.jsonl"][..],
        &["suggest", "log.jsonl"],
        &["backtest", "--policies", "rules.yaml", "log.jsonl"],
        &["diff", "rules.yaml", "rules.yaml"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended = dir.command(arguments).stdout(full).output().unwrap();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            ended.status.code() == Some(2) && message.contains("can't write to stdout"),
            "{arguments:?}: {message}"
        );
    }
}
