//! Cline's hooks, which are files: installed, checked by `callgate doctor`, and removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::test_dir;

const INSTALL: [&str; 5] = ["install", "cline", "--hooks", "--policies", "rules.yaml"];
const DOCTOR: [&str; 4] = ["doctor", "cline", "--canary", "git push --force"];

#[test]
fn installed_files_bite_and_doctor_reports_when_they_do_not() {
    let dir = test_dir();
    let hooks = dir.0.path().join("Documents/Cline/Hooks");
    assert_eq!(dir.run_at_home(&DOCTOR).code, Some(1), "nothing is installed");
    let dry = dir.run_at_home(&[&INSTALL[..], &["--dry-run"]].concat());
    assert!(dry.stdout.contains("callgate-hook") && !hooks.exists(), "{}", dry.transcript());
    let installed = dir.run_at_home(&INSTALL);
    assert_eq!(installed.code, Some(0), "{}", installed.transcript());
    let again = dir.run_at_home(&INSTALL);
    assert!(again.stdout.contains("already installed"), "{}", again.transcript());
    let healthy = dir.run_at_home(&DOCTOR);
    assert_eq!(healthy.code, Some(0), "{}", healthy.transcript());
    assert!(healthy.stdout.contains("force pushes are not allowed"), "{}", healthy.transcript());
    let permitted = dir.run_at_home(&["doctor", "cline", "--canary", "ls"]);
    assert!(
        permitted.code == Some(1) && permitted.stdout.contains("do not deny"),
        "{}",
        permitted.transcript()
    );

    let before = hooks.join("PreToolUse");
    let text = fs::read_to_string(&before).unwrap();
    let mode = |mode| fs::set_permissions(&before, fs::Permissions::from_mode(mode)).unwrap();
    let is_failed = |reason: &str| {
        let examined = dir.run_at_home(&DOCTOR);
        assert!(
            examined.code == Some(1) && examined.stdout.contains(reason),
            "{reason}: {}",
            examined.transcript()
        );
    };
    mode(0o777);
    is_failed("other users can write");
    mode(0o644);
    is_failed("is not executable");
    assert_eq!(dir.run_at_home(&INSTALL).code, Some(0));
    fs::write(&before, text.replace(env!("CARGO_BIN_EXE_callgate"), "/missing/callgate")).unwrap();
    is_failed("every call is denied");
    fs::remove_file(hooks.join("PostToolUse")).unwrap();
    is_failed("has no `PostToolUse`");
    fs::remove_file(&before).unwrap();
    is_failed("has no `PreToolUse`");

    let uninstalled = dir.run_at_home(&["uninstall", "cline", "--hooks"]);
    assert_eq!(uninstalled.code, Some(0), "{}", uninstalled.transcript());
    assert_eq!(fs::read_dir(&hooks).unwrap().count(), 0);
}

#[test]
fn a_hook_of_the_user_is_never_replaced_or_removed() {
    let dir = test_dir();
    let hooks = dir.0.path().join(".clinerules/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let own = hooks.join("PostToolUse");
    fs::write(&own, "#!/bin/sh\necho mine\n").unwrap();
    let arguments = |command: &'static str| [command, "cline", "--hooks", "--scope", "project"];
    let refused = dir.run_at_home(&[&arguments("install")[..], &["--policies", "rules.yaml"]].concat());
    assert!(
        refused.code == Some(2) && refused.stderr.contains("hook of your own"),
        "{}",
        refused.transcript()
    );
    assert!(!hooks.join("PreToolUse").exists(), "{}", refused.transcript());
    assert_eq!(dir.run_at_home(&arguments("uninstall")).code, Some(0));
    assert_eq!(fs::read_to_string(&own).unwrap(), "#!/bin/sh\necho mine\n");
}

#[test]
fn doctor_runs_no_file_of_a_project_that_nobody_trusts() {
    let dir = test_dir();
    let project: PathBuf = dir.0.path().join(".clinerules/hooks");
    fs::create_dir_all(&project).unwrap();
    for event in ["PreToolUse", "PostToolUse", "UserPromptSubmit"] {
        let file = project.join(event);
        fs::write(
            &file,
            "#!/bin/sh\n: callgate-hook; touch pwned; echo '{\"cancel\":true,\"errorMessage\":\"Denied\"}'\n",
        )
        .unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let examined = dir.run_at_home(&["doctor", "cline"]);
    assert!(examined.code == Some(1) && examined.stdout.contains("--project"), "{}", examined.transcript());
    assert!(!dir.0.path().join("pwned").exists());
    assert_eq!(dir.run_at_home(&["doctor", "cline", "--project"]).code, Some(0));
    assert!(dir.0.path().join("pwned").exists());
}
