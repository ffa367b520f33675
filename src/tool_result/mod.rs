//! `$.result`: one view of what a tool returned, whether that is a value, a text or an MCP result. Output + [`ResultFormat`] →
//! [`ToolResult`].
//!
//! Policies that read `$.result` decide the same for structured content, for JSON text and for plain values.

mod formats;
mod mcp_result;
mod replacement;
mod texts;

pub use formats::ResultFormats;
pub use replacement::replace;
pub use texts::{YamlText, rewrite_texts};

use mcp_result::McpContent;

use crate::call::{ResultProblem, ResultView};
use crate::diagnostic::{Diagnostics, SourceMap};
use crate::json::{self, Value};
use crate::source;
use crate::work_limit;

/// The longest text that is parsed, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// How a text that a tool returned is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ResultFormat {
    /// As JSON if it begins with `{` or `[` and is valid JSON; as a string otherwise.
    #[default]
    Auto,
    /// As JSON. A text that is not JSON cannot be read.
    Json,
    /// As YAML. A text that is not YAML cannot be read.
    Yaml,
    /// As a string, whatever it contains.
    Text,
}

impl ResultFormat {
    /// The format with this name in rules.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            "text" => Self::Text,
            _ => return None,
        })
    }
}

/// What is known of the results of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultDeclaration {
    /// How texts are read.
    pub format: ResultFormat,
    /// Whether the tool says that structured content wraps a value: `{"result": VALUE}`.
    pub is_wrapped: bool,
}

impl From<ResultFormat> for ResultDeclaration {
    fn from(format: ResultFormat) -> Self {
        Self { format, is_wrapped: false }
    }
}

/// What `$.result` is for an output.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    /// The output has no content that could be read, such as an MCP result with an image only.
    Absent,
    /// The output itself.
    Output,
    /// The structured content of the output.
    StructuredContent,
    /// The value that the structured content of the output wraps.
    WrappedContent,
    /// A value that a text contains, or the texts of several parts.
    Parsed(Value),
    /// The output cannot be read as declared.
    Unreadable(ResultProblem),
}

impl ToolResult {
    /// Reads an output.
    pub fn from_output(output: &Value, declaration: impl Into<ResultDeclaration>) -> Self {
        let ResultDeclaration { format, is_wrapped } = declaration.into();
        match McpContent::from_output(output, is_wrapped) {
            Some(McpContent::Structured(content, texts)) => match contradicts(&texts, content, format) {
                true => Self::Unreadable(ResultProblem::DifferentTexts),
                false => Self::StructuredContent,
            },
            Some(McpContent::Wrapped(value, texts)) => match value.as_str() {
                _ if contradicts(&texts, value, format) => Self::Unreadable(ResultProblem::DifferentTexts),
                Some(text) => Self::from_text(text, format).unwrap_or(Self::WrappedContent),
                None => Self::WrappedContent,
            },
            Some(McpContent::Text(text)) => {
                Self::from_text(text, format).unwrap_or_else(|| Self::Parsed(text.into()))
            }
            Some(McpContent::Texts(texts)) => Self::Parsed(texts.into_iter().map(Value::from).collect()),
            Some(McpContent::Other) => Self::Absent,
            Some(McpContent::Unreadable) => Self::Unreadable(ResultProblem::UnknownParts),
            None => output.as_str().and_then(|text| Self::from_text(text, format)).unwrap_or(Self::Output),
        }
    }

    /// Reads a text. Returns `None` if it stays a string.
    fn from_text(text: &str, format: ResultFormat) -> Option<Self> {
        match format {
            ResultFormat::Text => return None,
            // Some programs write a byte order mark first.
            ResultFormat::Auto if !text.trim_start_matches(is_leading).starts_with(['{', '[']) => {
                return None;
            }
            _ => {}
        }
        if text.len() > MAX_BYTES {
            return Some(Self::Unreadable(ResultProblem::TooLong));
        }
        if work_limit::spend_for(text.len(), 4).is_err() {
            return Some(Self::Unreadable(ResultProblem::TooMuchWork));
        }
        let parsed = match format {
            ResultFormat::Yaml => parse_yaml(text).ok_or(ResultProblem::NotYaml),
            // A reader that takes the first of two equal keys sees another result than one that takes the last.
            _ => {
                json::parse(text.trim_start_matches(is_leading)).map_err(|error| match error.is_ambiguous() {
                    true => ResultProblem::AmbiguousJson,
                    false => ResultProblem::NotJson,
                })
            }
        };
        match parsed {
            Ok(value) => Some(Self::Parsed(value)),
            Err(ResultProblem::NotJson) if format == ResultFormat::Auto => None,
            Err(problem) => Some(Self::Unreadable(problem)),
        }
    }

    /// The whole structured content of the output that it was read from. Returns `None` if it was read from something else.
    pub fn structured_content<'a>(&self, output: &'a Value) -> Option<&'a Value> {
        match (self, McpContent::from_output(output, false)?) {
            (Self::Absent | Self::Output | Self::Unreadable(_), _) => None,
            (_, McpContent::Structured(..) | McpContent::Wrapped(..)) => {
                output.get(mcp_result::STRUCTURED_CONTENT)
            }
            _ => None,
        }
    }

    /// The result as policies read it, for the output that it was read from.
    pub fn view<'a>(&'a self, output: &'a Value) -> ResultView<'a> {
        match self {
            Self::Absent => ResultView::Absent,
            Self::Output => ResultView::Value(output),
            Self::StructuredContent => {
                output.get(mcp_result::STRUCTURED_CONTENT).map_or(ResultView::Absent, ResultView::Value)
            }
            Self::WrappedContent => output
                .get(mcp_result::STRUCTURED_CONTENT)
                .and_then(|content| content.get(mcp_result::WRAPPED))
                .map_or(ResultView::Absent, ResultView::Value),
            Self::Parsed(value) => ResultView::Value(value),
            Self::Unreadable(problem) => ResultView::Unreadable(*problem),
        }
    }
}

/// Whether the texts beside structured content are data that differ from it: then policies would read another result than a model that reads
/// the texts. Text that is no data, such as a summary, contradicts nothing unless the result is declared to be data.
fn contradicts(texts: &[&str], content: &Value, format: ResultFormat) -> bool {
    if texts.is_empty() || mcp_result::repeats(texts, content) {
        return false;
    }
    let is_data = |text: &&str| match format {
        ResultFormat::Json | ResultFormat::Yaml => true,
        ResultFormat::Auto | ResultFormat::Text => {
            text.trim_start_matches(is_leading).starts_with(['{', '['])
                && !json::parse(text.trim_start_matches(is_leading)).is_err_and(|error| !error.is_ambiguous())
        }
    };
    let is_same_yaml = || match (texts, format) {
        ([text], ResultFormat::Yaml) => parse_yaml(text).as_ref() == Some(content),
        _ => false,
    };
    texts.iter().any(is_data) && !is_same_yaml()
}

fn is_leading(c: char) -> bool {
    c.is_whitespace() || c == '\u{feff}'
}

/// Parses YAML as rules are parsed: every ambiguous text is refused.
fn parse_yaml(text: &str) -> Option<Value> {
    let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
    let root = source::parse(sources.add("result", ""), text, &mut diagnostics)?;
    diagnostics.is_empty().then(|| root.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn read(output: Value, format: ResultFormat) -> Result<Option<Value>, ResultProblem> {
        let result = ToolResult::from_output(&output, format);
        match result.view(&output) {
            ResultView::Absent => Ok(None),
            ResultView::Value(value) => Ok(Some(value.clone())),
            ResultView::Unreadable(problem) => Err(problem),
        }
    }

    #[test]
    fn every_form_of_a_result_is_the_same_value() {
        let order = json!({"id": 7, "items": [{"price": 1.5}]});
        let text = r#" {"id": 7, "items": [{"price": 1.5}]}"#;
        let part = json!({"type": "text", "text": text});
        for output in [
            order.clone(),
            text.into(),
            json!({"content": [part]}),
            json!({"content": [part], "isError": false, "_meta": {"a": 1}}),
            json!({"content": [{"type": "text", "text": "An order."}], "structuredContent": order}),
            json!({"content": [part], "structuredContent": order}),
            json!({"content": [part], "structuredContent": {"result": text}}),
            json!({"content": [part], "structuredContent": {"result": order}}),
            json!({"content": [], "structuredContent": {"result": text}, "_meta": {"fastmcp": {"wrap_result": true}}}),
            json!({"structuredContent": order}),
            json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}, part]}),
        ] {
            assert_eq!(read(output.clone(), ResultFormat::Auto), Ok(Some(order.clone())), "{output}");
        }
    }

    #[test]
    fn texts_stay_strings_unless_they_are_json() {
        for text in ["007", "done", "", "{not json", "\"quoted\"", "true", "[1, 2"] {
            assert_eq!(read(text.into(), ResultFormat::Auto), Ok(Some(text.into())), "{text}");
        }
        assert_eq!(read("[1]".into(), ResultFormat::Text), Ok(Some("[1]".into())));
        assert_eq!(read("007".into(), ResultFormat::Json), Err(ResultProblem::NotJson));
        assert_eq!(read("7".into(), ResultFormat::Json), Ok(Some(json!(7))));
    }

    #[test]
    fn ambiguous_texts_cannot_be_read() {
        let duplicate = r#"{"status": "paid", "status": "open"}"#;
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for format in [ResultFormat::Auto, ResultFormat::Json] {
            assert_eq!(read(duplicate.into(), format), Err(ResultProblem::AmbiguousJson));
            assert_eq!(read(deep.as_str().into(), format), Err(ResultProblem::AmbiguousJson));
        }
        for text in ["a: 1\na: 2", "a: [", "- 010"] {
            assert_eq!(read(text.into(), ResultFormat::Yaml), Err(ResultProblem::NotYaml), "{text}");
        }
    }

    #[test]
    fn yaml_is_read_where_it_is_declared() {
        let text = "- id: '12'\n  amount: 12.50\n  note: |\n    two\n    lines\n";
        let expected = json!([{"id": "12", "amount": 12.5, "note": "two\nlines\n"}]);
        assert_eq!(read(text.into(), ResultFormat::Yaml), Ok(Some(expected)));
        assert_eq!(read(text.into(), ResultFormat::Auto), Ok(Some(text.into())));
    }

    #[test]
    fn other_objects_with_a_content_member_are_values() {
        for output in [
            json!({"content": "a page"}),
            json!({"content": [{"text": "no type"}]}),
            json!({"content": [], "title": "a page"}),
            json!({"structuredContent": [1]}),
            json!({"content": "a page", "structuredContent": {"a": 1}}),
        ] {
            assert_eq!(read(output.clone(), ResultFormat::Auto), Ok(Some(output)));
        }
        assert_eq!(read(json!({"content": []}), ResultFormat::Auto), Ok(None));
    }

    #[test]
    fn null_members_and_the_type_of_a_result_hide_nothing() {
        let part = json!({"type": "text", "text": "\u{feff}{\"a\": 1}"});
        for output in [
            json!({"content": [part], "resultType": "complete"}),
            json!({"content": [part], "structuredContent": null, "isError": null, "meta": null, "_meta": null}),
        ] {
            assert_eq!(read(output.clone(), ResultFormat::Auto), Ok(Some(json!({"a": 1}))), "{output}");
        }
    }

    #[test]
    fn results_with_unknown_parts_cannot_be_read() {
        let part = json!({"type": "text", "text": "{}"});
        for output in [
            json!({"content": [part], "title": "a page"}),
            json!({"structuredContent": {"a": 1}, "note": "more"}),
            json!({"content": [part, {"type": "resource", "resource": {"uri": "a:b", "text": "hidden"}}]}),
            json!({"content": [{"type": "Text", "text": "hidden"}]}),
            json!({"content": [part], "isError": "no"}),
        ] {
            let problem = Err(ResultProblem::UnknownParts);
            assert_eq!(read(output.clone(), ResultFormat::Auto), problem, "{output}");
        }
    }

    #[test]
    fn value_is_unwrapped_if_the_server_or_the_text_says_so() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (parts, wrapped) in [
            (json!([text("[1]")]), json!([1])),
            (json!([text("{\"a\": 1}"), text("b")]), json!([{"a": 1}, "b"])),
            (json!([text("true")]), json!(true)),
            (json!([text("007")]), json!("007")),
        ] {
            let output = json!({"content": parts, "structuredContent": {"result": wrapped}});
            assert_eq!(read(output.clone(), ResultFormat::Auto), Ok(Some(wrapped)), "{output}");
        }
        for output in [
            json!({"content": [text("{\"result\": {\"a\": 1}}")], "structuredContent": {"result": {"a": 1}}}),
            json!({"content": [text("done")], "structuredContent": {"result": {"a": 1}}}),
            json!({"structuredContent": {"result": {"a": 1}}, "_meta": {"fastmcp": {"wrap_result": false}}}),
        ] {
            let content = json!({"result": {"a": 1}});
            assert_eq!(read(output.clone(), ResultFormat::Auto), Ok(Some(content)), "{output}");
        }
    }

    #[test]
    fn texts_that_differ_from_the_structured_content_cannot_be_read() {
        let differing = Err(ResultProblem::DifferentTexts);
        let output = |text: &str| json!({"content": [{"type": "text", "text": text}], "structuredContent": {"to": "ana"}});
        for text in ["{\"to\": \"eve\"}", "{\"to\": \"ana\", \"to\": \"eve\"}", " [\"eve\"]"] {
            for format in [ResultFormat::Auto, ResultFormat::Text, ResultFormat::Json, ResultFormat::Yaml] {
                assert_eq!(read(output(text), format), differing, "{text}");
            }
        }
        let content = Ok(Some(json!({"to": "ana"})));
        // Prose is no data, unless the result is declared to be.
        for text in ["Sent to eve", "{not json"] {
            assert_eq!(read(output(text), ResultFormat::Auto), content, "{text}");
            assert_eq!(read(output(text), ResultFormat::Json), differing, "{text}");
        }
        assert_eq!(read(output("to: ana"), ResultFormat::Yaml), content);
        assert_eq!(read(output("to: eve"), ResultFormat::Yaml), differing);
    }

    #[test]
    fn several_texts_are_an_array() {
        let parts = json!([{"type": "text", "text": "[1]"}, {"type": "text", "text": "b"}]);
        assert_eq!(read(json!({"content": parts}), ResultFormat::Json), Ok(Some(json!(["[1]", "b"]))));
    }
}
