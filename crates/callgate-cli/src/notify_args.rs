//! `--notify`: where messages about approval requests are sent.

use std::path::PathBuf;

use callgate::Keys;
use callgate_server::{NotificationFile, NotificationTasks, Notifier};
use tokio::runtime::Runtime;

use super::exit::ExitStatus;
use super::output::{print_diagnostics, print_warning};

/// Notification options.
#[derive(clap::Args)]
pub(super) struct NotifyArgs {
    /// Send messages about approval requests to the webhooks and chat products in this file; see docs/server.md
    #[arg(long, value_name = "FILE")]
    notify: Option<PathBuf>,
}

impl NotifyArgs {
    /// Reads the file, and reports what is wrong with it.
    ///
    /// # Errors
    /// It is invalid; the problems have been reported.
    pub(super) fn read(&self) -> Result<Option<NotificationFile>, ExitStatus> {
        let file =
            self.notify.as_deref().map(|path| NotificationFile::open(path, |name| std::env::var(name).ok()));
        file.transpose().map_err(|error| {
            print_diagnostics(&error.diagnostics, &error.sources);
            ExitStatus::Failure
        })
    }
}

/// Starts sending the messages of a file, with links that are sealed with these keys.
pub(super) fn start(file: NotificationFile, keys: Keys, runtime: &Runtime) -> (Notifier, NotificationTasks) {
    let _context = runtime.enter();
    Notifier::start(file, keys, |text| print_warning(text))
}
