//! Dialects: the message formats of the providers, and the members of their messages and requests.

use crate::json::MAX_DEPTH;

/// The message format of a provider or a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI Chat Completions and compatible APIs.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `contents`.
    Gemini,
    /// The model messages of Vercel's AI SDK.
    AiSdk,
}

/// Why a document can't be read as a history, or a name is not a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DialectError {
    /// The document is neither an array of messages nor a request with one.
    #[error(
        "a `{dialect}` history must be an array of messages, or an object with an array `{member}`; this is {found}"
    )]
    Shape {
        /// The expected dialect.
        dialect: Dialect,
        /// The member that holds the messages of a request.
        member: &'static str,
        /// The type of the document instead.
        found: String,
    },
    /// The document is nested too deeply.
    #[error("the history is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// No dialect has this name.
    #[error("unknown dialect `{name}`; use one of {}", Dialect::ALL.map(|known| format!("`{known}`")).join(", "))]
    UnknownName {
        /// The name.
        name: String,
    },
}

impl Dialect {
    /// Every dialect; the tests of all dialects iterate over it.
    pub const ALL: [Self; 5] =
        [Self::OpenaiChat, Self::OpenaiResponses, Self::Anthropic, Self::Gemini, Self::AiSdk];

    /// The name of the dialect.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::AiSdk => "ai-sdk",
        }
    }

    /// The dialect with this name.
    ///
    /// ```
    /// use callgate::message::Dialect;
    /// assert_eq!(Dialect::from_name("anthropic"), Ok(Dialect::Anthropic));
    /// let error = Dialect::from_name("claude").unwrap_err().to_string();
    /// assert!(error.contains("unknown dialect `claude`"), "{error}");
    /// ```
    pub fn from_name(name: &str) -> Result<Self, DialectError> {
        let named = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        named.ok_or_else(|| DialectError::UnknownName { name: name.to_owned() })
    }

    /// The member of a request that holds the messages.
    pub(super) fn messages_key(self) -> &'static str {
        match self {
            Self::OpenaiChat | Self::Anthropic | Self::AiSdk => "messages",
            Self::OpenaiResponses => "input",
            Self::Gemini => "contents",
        }
    }

    /// The members of a request that may hold the system prompt; the first one is written.
    pub(super) fn system_keys(self) -> &'static [&'static str] {
        match self {
            Self::OpenaiChat => &[],
            Self::OpenaiResponses => &["instructions"],
            Self::Anthropic | Self::AiSdk => &["system"],
            Self::Gemini => &["systemInstruction", "system_instruction"],
        }
    }

    /// Whether the system prompt is a member of the request, beside the messages.
    pub(super) fn has_separate_system(self) -> bool {
        match self {
            Self::Anthropic | Self::Gemini => true,
            Self::OpenaiChat | Self::OpenaiResponses | Self::AiSdk => false,
        }
    }

    /// The member of a message that holds its content.
    pub(super) fn content_key(self) -> &'static str {
        match self {
            Self::Gemini => "parts",
            Self::OpenaiChat | Self::OpenaiResponses | Self::Anthropic | Self::AiSdk => "content",
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
