//! Where a call belongs in a distributed trace (W3C Trace Context): `traceparent` ↔ [`TraceParent`].

use std::fmt;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::ToolCall;
use crate::seal::random_hex;

/// The longest `traceparent` of a request; one of the present version has 55 bytes.
const MAX_PARENT_BYTES: usize = 256;
/// The longest `tracestate` of a request; the standard asks for 512 bytes at least.
const MAX_STATE_BYTES: usize = 1_024;
/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// What traces show of a call beside its parent. For observers: policies do not see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTrace {
    /// The `tracestate` that came with the parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The span of the call itself, as a `traceparent`. A host sets it that names it to the tool, so that the tool's spans are children of
    /// this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// The MCP session that the call belongs to, or a name that stands for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp_session: Option<String>,
}

/// The trace that a request names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestTrace {
    /// Its `traceparent`.
    pub parent: Option<String>,
    /// Its `tracestate`.
    pub state: Option<String>,
}

impl ToolCall {
    /// Sets the trace that the request of the call names. A text that is too long is dropped, and so is a `tracestate` without a valid
    /// `traceparent`.
    pub fn set_request_trace(&mut self, parent: Option<&str>, state: Option<&str>) {
        let parent = parent.filter(|text| text.len() <= MAX_PARENT_BYTES);
        let state = state.filter(|text| text.len() <= MAX_STATE_BYTES);
        let is_valid = parent.and_then(TraceParent::parse).is_some();
        self.trace_parent = parent.map(str::to_owned);
        let trace = state
            .filter(|_| is_valid)
            .map(|state| CallTrace { state: Some(state.to_owned()), ..CallTrace::default() });
        self.trace = trace.map(Box::new);
    }
}

/// A span, as the header `traceparent` names it.
///
/// The flag `sampled` is not part of it: a client must not decide whether its calls are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The id of the span.
    pub span_id: [u8; 8],
}

impl TraceParent {
    /// Reads a `traceparent`. Returns `None` if it is malformed, as the standard requires: a call then begins a trace of its own.
    ///
    /// ```
    /// use callgate::call::TraceParent;
    ///
    /// let parent = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").expect("well-formed");
    /// let child = parent.new_child().expect("random numbers");
    /// assert_eq!((child.trace_id, TraceParent::parse(&child.to_string())), (parent.trace_id, Some(child)));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let (version, trace_id, span_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_whole = match version {
            "00" => rest.is_empty(),
            "ff" => false,
            // A later version may have more parts.
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        if !is_whole {
            return None;
        }
        decode::<1>(version)?;
        decode::<1>(flags)?;
        let span = Self { trace_id: decode(trace_id)?, span_id: decode(span_id)? };
        (span.trace_id != [0; 16] && span.span_id != [0; 8]).then_some(span)
    }

    /// The first span of a new trace. Returns `None` if the operating system has no random numbers.
    pub fn new_root() -> Option<Self> {
        Self { trace_id: random()?, span_id: random()? }.into()
    }

    /// A new span below this one. Returns `None` if the operating system has no random numbers.
    pub fn new_child(&self) -> Option<Self> {
        Self { trace_id: self.trace_id, span_id: random()? }.into()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-01", HEXLOWER.encode(&self.trace_id), HEXLOWER.encode(&self.span_id))
    }
}

/// Lower-case digits only, as the standard requires.
fn decode<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// Random bytes, not all zero.
fn random<const BYTES: usize>() -> Option<[u8; BYTES]> {
    let bytes = decode(&random_hex::<BYTES>().ok()?)?;
    bytes.iter().any(|byte| *byte != 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    #[test]
    fn reads_well_formed_ones() {
        for text in [
            format!("00-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-00"),
            format!("cc-{TRACE}-{SPAN}-01-what-comes-later"),
        ] {
            let span = TraceParent::parse(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(span.to_string(), format!("00-{TRACE}-{SPAN}-01"), "{text}");
        }
    }

    #[test]
    fn state_without_a_valid_parent_is_dropped() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let (long_parent, long_state) =
            (format!("cc-{TRACE}-{SPAN}-01-{parent}").repeat(9), "a=1,".repeat(300));
        for (parent, state, expected) in [
            (Some(parent.as_str()), Some("vendor=1"), Some("vendor=1")),
            (Some(&parent), None, None),
            (Some(&parent), Some(&*long_state), None),
            (Some("00-nonsense"), Some("vendor=1"), None),
            (Some(&*long_parent), Some("vendor=1"), None),
            (None, Some("vendor=1"), None),
        ] {
            let mut call = ToolCall::new("c", "t", crate::json::json!({}));
            call.set_request_trace(parent, state);
            let found = call.trace.as_deref().and_then(|trace| trace.state.as_deref());
            assert_eq!(found, expected, "{parent:?} {state:?}");
            assert_eq!(call.trace_parent.as_deref(), parent.filter(|text| text.len() <= MAX_PARENT_BYTES));
        }
    }

    #[test]
    fn ignores_malformed_ones() {
        let (none, no_span) = ("0".repeat(32), "0".repeat(16));
        for text in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}-01 "),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("cc-{TRACE}-{SPAN}-01x"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{none}-{SPAN}-01"),
            format!("00-{TRACE}-{no_span}-01"),
            format!("00_{TRACE}_{SPAN}_01"),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-{SPAN}-{TRACE}-01"),
            format!("0\u{e9}-{TRACE}-{SPAN}-1"),
            "0".repeat(1 << 20),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text:.80}");
        }
    }
}
