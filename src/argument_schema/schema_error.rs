//! Errors of schemas, and violations of them by arguments.

/// The message of a build without the schema library.
const UNSUPPORTED: &str = "this build of Callgate can't check JSON Schemas: it needs `features = [\"json-schema\"]` of the \
                           dependency `callgate`";

/// A schema that can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// The problem and the fix, with the path in the schema.
    pub message: String,
    /// JSON pointer to the problem, if known; empty for the schema as a whole.
    pub pointer: Option<String>,
}

impl SchemaError {
    pub(super) fn at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { message: message.into(), pointer: Some(pointer.into()) }
    }

    #[cfg(not(feature = "json-schema"))]
    pub(super) fn unsupported() -> Self {
        Self::at("", UNSUPPORTED)
    }

    /// Whether no schema can be used, because Callgate was built without the feature `json-schema`.
    pub fn is_unsupported(&self) -> bool {
        self.message == UNSUPPORTED
    }

    /// The problem, for the author of the schema.
    pub fn problem(&self) -> String {
        if self.is_unsupported() { self.message.clone() } else { format!("invalid JSON Schema: {self}") }
    }

    /// The fix, for the author of the schema.
    pub fn help(&self) -> &'static str {
        if self.is_unsupported() {
            "add the feature to the program that loads these rules: `cargo add callgate --features json-schema`"
        } else if self.message.contains("`$ref`") {
            "a `$ref` must name a part of the same schema, such as `#/$defs/NAME`"
        } else if self.message.contains("pattern") {
            "correct the pattern; the syntax is that of the Rust `regex` crate"
        } else {
            "the keywords are those of JSON Schema; `type` is one of null, boolean, integer, number, string, array, object"
        }
    }
}

/// One problem of an instance, described for the model that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the instance; empty for the instance as a whole.
    pub pointer: String,
    /// The problem and the fix, with values truncated and escaped.
    pub message: String,
    /// The probable intention as a self-contained instruction: ``use `order_id` instead of `ordr_id` ``.
    pub suggestion: Option<String>,
}

/// Joins the problems into one message.
pub fn summarize(violations: &[Violation]) -> String {
    violations.iter().map(|violation| violation.message.as_str()).collect::<Vec<_>>().join("; ")
}
