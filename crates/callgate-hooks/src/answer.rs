//! A decision for an agent, and the answer in its protocol.

use callgate::json::Value;

/// What an agent is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Go on as without the hook.
    Proceed,
    /// Run the tool with this input, in the agent's form.
    Rewrite(Value),
    /// Ask the user.
    Ask {
        /// The question.
        reason: String,
        /// The input with which the tool is to run, if a policy changed it.
        input: Option<Value>,
    },
    /// Do not go on.
    Deny(String),
    /// Show the model this in place of the tool's result.
    ReplaceResult(Value),
}

/// What a hook process returns to its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The text for stdout.
    pub stdout: String,
    /// The text for stderr.
    pub stderr: String,
    /// The exit status.
    pub status: u8,
}

impl Answer {
    /// Nothing on stdout, and status 0.
    pub(crate) fn silent() -> Self {
        Self::default()
    }

    /// A JSON document, and status 0.
    pub(crate) fn document(document: &Value) -> Self {
        Self { stdout: document.to_string(), ..Self::default() }
    }

    /// A JSON document that blocks, with the status and the reason on stderr that block where the document is not read.
    pub(crate) fn blocking(document: &Value, reason: &str) -> Self {
        Self { stdout: document.to_string(), ..Self::blocked(reason) }
    }

    /// Status 2 with the reason on stderr.
    pub(crate) fn blocked(reason: &str) -> Self {
        Self { stdout: String::new(), stderr: reason.to_owned(), status: 2 }
    }
}

/// A result as text for a model.
pub(crate) fn result_text(result: &Value) -> String {
    match result {
        Value::String(text) => text.as_str().to_owned(),
        other => other.to_string(),
    }
}
