//! Follows the list of servers in a configuration file: a changed list → replaced servers, or a warning.

use std::time::Duration;

use super::exit::{CommandError, ExitStatus};
use super::output::{print_diagnostics, print_note, print_warning};
use super::server_args::ConfigFile;
use callgate_mcp::Config;

/// How often the configuration file is read.
const INTERVAL: Duration = Duration::from_secs(1);

/// Why servers can't be used. Errors of rules have been reported.
pub(super) enum ServersError {
    Reported(ExitStatus),
    Command(CommandError),
}

impl From<CommandError> for ServersError {
    fn from(error: CommandError) -> Self {
        Self::Command(error)
    }
}

/// What has servers that can be replaced while it runs.
pub(super) trait FollowServers {
    /// Checks that nothing has changed that takes effect with a restart only.
    ///
    /// # Errors
    /// What has.
    fn check(&self, present: &Config, next: &Config) -> Result<(), String>;

    /// Replaces the servers. If this fails, they stay as they are.
    fn replace(&mut self, present: &Config, next: &Config) -> Result<(), ServersError>;
}

/// Keeps servers as a configuration file lists them; never returns. A file with errors, or with other changes than those of servers, is
/// rejected as a whole.
pub(super) async fn follow(file: &ConfigFile, mut present: Config, follower: &mut impl FollowServers) {
    let mut contents = file.contents().await;
    loop {
        tokio::time::sleep(INTERVAL).await;
        let now = file.contents().await;
        if now == contents {
            continue;
        }
        contents = now;
        let next = match file.read() {
            Ok(next) => next,
            Err(error) => {
                print_diagnostics(&error.diagnostics, &error.sources);
                reject(file, "fix the file");
                continue;
            }
        };
        if let Err(why) = follower.check(&present, &next) {
            print_warning(why);
            reject(file, "undo the change, or restart Callgate");
            continue;
        }
        if next.servers == present.servers {
            continue;
        }
        match follower.replace(&present, &next) {
            Ok(()) => {
                print_note(format!("servers reloaded: {}", describe_change(&present, &next)));
                present = next;
            }
            Err(ServersError::Reported(_)) => reject(file, "fix the rules"),
            Err(ServersError::Command(error)) => {
                if let CommandError::Message(message) = error {
                    print_warning(message);
                }
                reject(file, "fix the file");
            }
        }
    }
}

fn reject(file: &ConfigFile, help: &str) {
    print_warning(format!(
        "the changed configuration `{file}` is rejected, and the servers stay as they were; {help}"
    ));
}

/// Checks that nothing but servers has changed.
pub(super) fn check_other_keys(present: &Config, next: &Config) -> Result<(), String> {
    let changed = [
        ("policies", present.policies != next.policies),
        ("candidate", present.candidate != next.candidate),
        ("context", present.context != next.context),
        ("pins", present.pins != next.pins),
        ("pins_signed_by", present.pins_signed_by != next.pins_signed_by),
        ("state", present.state != next.state),
        ("log", present.log != next.log),
    ];
    match changed.iter().find(|(_, is_changed)| *is_changed) {
        Some((key, _)) => Err(format!("`{key}` of the configuration changes with a restart only")),
        None => Ok(()),
    }
}

/// The added, changed and removed servers.
fn describe_change(present: &Config, next: &Config) -> String {
    let find = |config: &'_ Config, name: &str| config.servers.iter().position(|server| server.name == name);
    let named = |word: &str, names: Vec<&str>| match names.is_empty() {
        true => None,
        false => Some(format!("{word} {}", names.join(", "))),
    };
    let (mut added, mut changed) = (Vec::new(), Vec::new());
    for server in &next.servers {
        match find(present, &server.name).and_then(|index| present.servers.get(index)) {
            None => added.push(server.name.as_str()),
            Some(before) if before != server => changed.push(server.name.as_str()),
            Some(_) => {}
        }
    }
    let removed = present.servers.iter().filter(|server| find(next, &server.name).is_none());
    let removed = removed.map(|server| server.name.as_str()).collect();
    let parts = [named("added", added), named("changed", changed), named("removed", removed)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "another order".to_owned() } else { parts.join("; ") }
}
