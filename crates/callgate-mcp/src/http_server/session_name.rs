//! The session names that clients choose: header or `_meta` of a request → name of the caller's session.

use std::str::FromStr;

use axum::http::HeaderMap;
use thiserror::Error;

use crate::jsonrpc::JsonRpcMessage;
use callgate::json::Value;
use callgate_http::{HeaderError, single_value};

/// The maximum length of a session name that a client chooses, in bytes.
const MAX_SESSION_NAME_LENGTH: usize = 256;

/// Where requests name the caller's session that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionNameSource {
    /// In a header.
    Header(String),
    /// In a member of `_meta`.
    Meta(String),
}

/// The reason why the session name of a request is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum SessionNameError {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error("`{0}` in `_meta` must be a string")]
    NotString(String),
    #[error("the session name is too long")]
    TooLong,
}

impl FromStr for SessionNameSource {
    type Err = String;

    /// Parses `header:NAME` or `meta:KEY`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_ascii_lowercase())),
            Some(("meta", key)) if !key.is_empty() => Ok(Self::Meta(key.to_owned())),
            _ => Err(format!(
                "`{text}` is not a valid location of a session name: write `header:NAME` or `meta:KEY`"
            )),
        }
    }
}

impl SessionNameSource {
    /// The session name of a request.
    ///
    /// # Errors
    /// The name is too long or not a string.
    pub(super) fn read(
        &self,
        headers: &HeaderMap,
        message: &JsonRpcMessage,
    ) -> Result<Option<String>, SessionNameError> {
        let name = match self {
            Self::Header(name) => single_value(headers, name)?.map(str::to_owned),
            Self::Meta(key) => match message.meta(key) {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(text.clone()),
                Some(_) => return Err(SessionNameError::NotString(key.clone())),
            },
        };
        match name {
            Some(name) if name.len() > MAX_SESSION_NAME_LENGTH => Err(SessionNameError::TooLong),
            name => Ok(name),
        }
    }
}
