//! The helper: a process that keeps rules and state open, so that hook processes need not load them for each event.
//!
//! The first hook process decides its event itself and starts the helper; later ones send it their events over a Unix socket. The helper opens
//! rules and state again where their files have changed, and ends after [`IDLE_TIME`] without events, or with its socket. It serves one
//! program, one set of arguments and one environment: [`HelperSocket::find`] derives the socket's name from them.

mod client;
mod helper_socket;
mod server;

use std::time::Duration;

pub(super) use client::{HelperReply, ask, start};
pub(super) use helper_socket::HelperSocket;
pub(super) use server::serve;

use callgate::json::{self, json};
use callgate_hooks::Answer;

/// The helper ends after this time without events.
const IDLE_TIME: Duration = Duration::from_secs(15 * 60);

/// The longest line before the event of a request: its environment.
const MAX_HEADER: u64 = 64 << 10;

fn answer_text(answer: &Answer) -> String {
    json!({ "stdout": answer.stdout, "stderr": answer.stderr, "status": answer.status }).to_string()
}

/// Reads an answer. `None` if it is cut off, or not one.
fn parse_answer(text: &str) -> Option<Answer> {
    let answer = json::parse(text).ok()?;
    let string = |name: &str| Some(answer.get(name)?.as_str()?.to_owned());
    let status = u8::try_from(answer.get("status")?.as_i64()?).ok()?;
    Some(Answer { stdout: string("stdout")?, stderr: string("stderr")?, status })
}
