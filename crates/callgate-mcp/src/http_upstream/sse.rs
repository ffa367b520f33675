//! Incremental parser of server-sent events (SSE).

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Its data, lines joined. Empty for an event that has only an id or a retry delay.
    pub(super) data: Vec<u8>,
    /// Its id, if it has one.
    pub(super) id: Option<String>,
    /// Its type; optional for messages.
    pub(super) kind: Option<String>,
    /// The reconnection delay, in milliseconds.
    pub(super) retry: Option<u64>,
}

/// The error of an event above the size limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventSizeError;

/// Parses events.
#[derive(Debug)]
pub(super) struct SseParser {
    /// The maximum size of an event, in bytes.
    limit: usize,
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last byte was a carriage return, which a line feed may follow as part of the same line end.
    after_return: bool,
    is_first_line: bool,
}

impl SseParser {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            event: SseEvent::default(),
            has_data: false,
            after_return: false,
            is_first_line: true,
        }
    }

    /// Feeds bytes; returns the events that are now complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventSizeError> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match part.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (part, None),
            };
            if self.line.len() + self.event.data.len() + text.len() > self.limit {
                return Err(EventSizeError);
            }
            let belongs_to_return = self.after_return && text.is_empty() && end == Some(b'\n');
            self.after_return = end == Some(b'\r');
            if belongs_to_return {
                continue;
            }
            self.line.extend_from_slice(text);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                self.process_line(&line, &mut events);
            }
        }
        Ok(events)
    }

    fn process_line(&mut self, line: &[u8], events: &mut Vec<SseEvent>) {
        let mark = [0xef, 0xbb, 0xbf];
        let line = match std::mem::take(&mut self.is_first_line) {
            true => line.strip_prefix(&mark).unwrap_or(line),
            false => line,
        };
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            let has_data = std::mem::take(&mut self.has_data);
            if has_data || event.id.is_some() || event.retry.is_some() {
                events.push(event);
            }
            return;
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let field = parts.next().unwrap_or_default();
        let value = parts.next().unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.has_data = true;
                self.event.data.extend_from_slice(value);
            }
            b"event" => self.event.kind = Some(text()),
            // An id must be a valid header value, because `Last-Event-ID` sends it back.
            b"id" if value.iter().all(|byte| (b' '..=b'~').contains(byte)) => self.event.id = Some(text()),
            b"retry" => self.event.retry = text().parse().ok().or(self.event.retry),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: &str) -> SseEvent {
        SseEvent { data: data.as_bytes().to_vec(), ..SseEvent::default() }
    }

    #[test]
    fn parses_the_same_events_in_chunks_of_any_size() {
        let stream = "\u{feff}: hello\r\ndata: {\"a\":\r\ndata:1}\r\n\r\nevent: message\nid: 7\nretry: 250\ndata: \u{e9}\n\n\
            id: 8\rdata\r\r: end\n\n";
        let expected = [
            event("{\"a\":\n1}"),
            SseEvent {
                kind: Some("message".into()),
                id: Some("7".into()),
                retry: Some(250),
                ..event("\u{e9}")
            },
            SseEvent { id: Some("8".into()), ..event("") },
        ];
        for size in 1..stream.len() {
            let mut parser = SseParser::new(1000);
            let events: Vec<SseEvent> =
                stream.as_bytes().chunks(size).flat_map(|bytes| parser.feed(bytes).unwrap()).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn rejects_an_event_above_the_size_limit() {
        let mut parser = SseParser::new(20);
        assert_eq!(parser.feed(b"data: 0123456789\n"), Ok(vec![]));
        assert_eq!(parser.feed(b"data: 0123456789\n"), Err(EventSizeError));
    }
}
