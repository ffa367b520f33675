//! The version of an agent, by its own program.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::Finding;

/// How long the agent's program may take to print its version.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The version of an agent, by its program, beside that with which its hooks were tested.
pub(super) fn examine(title: &str, (program, tested): (&str, &str)) -> Finding {
    let Some(version) = version(program) else {
        return Finding::Noted(format!(
            "the version of {title} is unknown: `{program} --version` does not run; tested with {tested}"
        ));
    };
    match version.split(|c: char| !c.is_ascii_digit() && c != '.').any(|word| word == tested) {
        true => Finding::Passed(format!("{title} {tested}, with which the hooks were tested")),
        false => {
            Finding::Noted(format!("the version is `{version}`; the hooks were tested with {title} {tested}"))
        }
    }
}

/// The first line that a program prints as its version.
fn version(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait().ok()? {
            Some(status) => break status,
            None if start.elapsed() > TIMEOUT => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut printed = Vec::new();
    child.stdout?.take(1000).read_to_end(&mut printed).ok()?;
    let text = String::from_utf8(printed).ok()?;
    let line = text.lines().next().map(str::trim).filter(|line| !line.is_empty())?;
    status.success().then(|| line.chars().take(100).collect())
}
