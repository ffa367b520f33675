//! The gateway options that `callgate install` passes to each `callgate proxy`. They are checked at install time, because clients don't
//! show the gateway's errors.

use std::path::{Path, PathBuf};

use clap::ArgGroup;

use crate::exit::{CommandError, ExitStatus};
use crate::json_inputs::read_context;
use crate::pins::read_lock;
use crate::rules_args;

/// The options for `callgate proxy`; paths are made absolute.
#[derive(clap::Args)]
// Without policies and pins, a gateway allows every call.
#[command(group = ArgGroup::new("before").args(["policies", "pins"]).required(true).multiple(true))]
pub(super) struct GatewayArgs {
    /// Rules files, or directories to search for them
    #[arg(long, value_name = "PATH", num_args = 1..)]
    policies: Vec<PathBuf>,
    /// A JSON object, the context of every call
    #[arg(long, value_name = "FILE")]
    context: Option<PathBuf>,
    /// The state store for approvals, limits and session state: `file:PATH` or `memory:`
    #[arg(long, value_name = "URL")]
    state: Option<String>,
    /// Show and run only tools that match this lock file; see `callgate pins`
    #[arg(long, value_name = "FILE")]
    pins: Option<PathBuf>,
    /// Require a signature of the lock file by one of the public keys in FILE
    #[arg(long, value_name = "FILE", requires = "pins")]
    pins_signed_by: Option<PathBuf>,
}

impl GatewayArgs {
    /// The options as command line arguments. If the rules have errors, reports them and returns the exit status.
    pub(super) fn options(&self) -> Result<Result<Vec<String>, ExitStatus>, CommandError> {
        let mut words = Vec::new();
        if !self.policies.is_empty() {
            if let Err(exit) = rules_args::load_or_allow_all(&self.policies) {
                return Ok(Err(exit));
            }
            words.push("--policies".to_owned());
            for path in &self.policies {
                words.push(absolute_path(path)?);
            }
        }
        if let Some(path) = &self.context {
            read_context(path)?;
            words.extend(["--context".to_owned(), absolute_path(path)?]);
        }
        if let Some(url) = &self.state {
            let url = match url.strip_prefix("file:") {
                Some(path) if !path.is_empty() => format!("file:{}", absolute_path(Path::new(path))?),
                _ if url == "memory:" => url.clone(),
                _ => {
                    return Err(CommandError::new(format!(
                        "`{url}` is not a state store; use `file:PATH` or `memory:`"
                    )));
                }
            };
            words.extend(["--state".to_owned(), url]);
        }
        if let Some(path) = &self.pins {
            read_lock(path, self.pins_signed_by.as_deref())?;
            words.extend(["--pins".to_owned(), absolute_path(path)?]);
        }
        if let Some(path) = &self.pins_signed_by {
            words.extend(["--pins-signed-by".to_owned(), absolute_path(path)?]);
        }
        Ok(Ok(words))
    }
}

/// The options for one server.
pub(super) fn server_options(name: &str, options: &[String]) -> Vec<String> {
    // A name that begins with a dash would be parsed as an option.
    let mut words = match name.starts_with('-') {
        true => vec![format!("--name={name}")],
        false => vec!["--name".to_owned(), name.to_owned()],
    };
    words.extend_from_slice(options);
    words
}

/// A path as a string, for a client's config file.
pub(super) fn path_to_string(path: &Path) -> Result<String, CommandError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| CommandError::new(format!("the path `{}` is not UTF-8", path.display())))
}

fn absolute_path(path: &Path) -> Result<String, CommandError> {
    let path = std::path::absolute(path).map_err(|error| {
        CommandError::new(format!("`{}` can't be made absolute: {error}", path.display()))
    })?;
    path_to_string(&path)
}
