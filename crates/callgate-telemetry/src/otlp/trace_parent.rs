//! `traceparent` (W3C Trace Context): text → the span that a call belongs to.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;

/// Reads a `traceparent`. Returns `None` if it is malformed, as the standard requires: the call then begins a trace of its own.
///
/// The flag `sampled` is ignored: a client must not decide whether its calls are traced.
pub(super) fn parse(text: &str) -> Option<SpanContext> {
    let (known, rest) = text.split_at_checked(LENGTH)?;
    let mut parts = known.split('-');
    let (version, trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_whole = match version {
        "00" => rest.is_empty(),
        "ff" => false,
        // A later version may have more parts.
        _ => rest.is_empty() || rest.starts_with('-'),
    };
    let has_lengths = (version.len(), trace_id.len(), span_id.len(), flags.len()) == (2, 32, 16, 2);
    let is_hexadecimal = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_whole || !has_lengths || ![version, trace_id, span_id, flags].into_iter().all(is_hexadecimal) {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace_id).ok()?,
        SpanId::from_hex(span_id).ok()?,
        TraceFlags::SAMPLED,
        true,
        TraceState::default(),
    );
    context.is_valid().then_some(context)
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
            let context = parse(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                (context.trace_id().to_string(), context.span_id().to_string()),
                (TRACE.into(), SPAN.into())
            );
            assert!(context.is_sampled() && context.is_remote(), "{text}");
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
            assert_eq!(parse(&text), None, "{text:.80}");
        }
    }
}
