//! The schema of a tool's results (`outputSchema`): a result that does not fit it is undecided. Output and its reading → [`ToolResult`].

use crate::argument_schema::ArgumentSchema;
use crate::call::{ResultProblem, ResultView};
use crate::json::{Map, Value};
use crate::tool_result::ToolResult;

/// The member by which FastMCP says that a schema is that of a wrapped value.
const WRAPS: &str = "x-fastmcp-wrap-result";

/// A compiled schema of results.
#[derive(Clone, Debug)]
pub struct ResultSchema {
    /// `None` if the schema is invalid, so that no result fits it.
    schema: Option<ArgumentSchema>,
    is_wrapped: bool,
}

impl ResultSchema {
    /// Compiles a schema. Returns `None` if this build checks no schemas.
    pub fn compile(schema: &Value) -> Option<Self> {
        ArgumentSchema::check_support().ok()?;
        let is_wrapped = schema.get(WRAPS).and_then(Value::as_bool) == Some(true);
        Some(Self { schema: ArgumentSchema::compile(schema).ok(), is_wrapped })
    }

    /// Whether structured results wrap a value that is not an object.
    pub fn is_wrapped(&self) -> bool {
        self.is_wrapped
    }

    /// Returns the reading of an output, or that the output does not fit the schema.
    pub fn check(&self, output: &Value, result: ToolResult) -> ToolResult {
        let fits = match (result.structured_content(output), result.view(output)) {
            (_, ResultView::Unreadable(_)) => return result,
            (Some(content), _) => self.allows(content),
            (None, ResultView::Value(value)) if self.is_wrapped => self.allows(&wrap(value)),
            (None, ResultView::Value(value)) => self.allows(value),
            (None, ResultView::Absent) => false,
        };
        if fits { result } else { ToolResult::Unreadable(ResultProblem::SchemaMismatch) }
    }

    fn allows(&self, value: &Value) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.check(value).is_ok())
    }
}

fn wrap(value: &Value) -> Value {
    Value::Object(Map::from_iter([("result".to_owned(), value.clone())]))
}

#[cfg(feature = "json-schema")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::tool_result::{ResultDeclaration, ResultFormat};

    fn read(schema: &Value, output: &Value) -> Result<Option<Value>, ResultProblem> {
        let schema = ResultSchema::compile(schema).unwrap();
        let declaration = ResultDeclaration { format: ResultFormat::Auto, is_wrapped: schema.is_wrapped() };
        let result = schema.check(output, ToolResult::from_output(output, declaration));
        match result.view(output) {
            ResultView::Absent => Ok(None),
            ResultView::Value(value) => Ok(Some(value.clone())),
            ResultView::Unreadable(problem) => Err(problem),
        }
    }

    #[test]
    fn results_fit_their_schema_in_every_form() {
        let schema = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}});
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        for output in [
            json!({"id": 7}),
            json!("{\"id\": 7}"),
            text("{\"id\": 7}"),
            json!({"structuredContent": {"id": 7}}),
        ] {
            assert_eq!(read(&schema, &output), Ok(Some(json!({"id": 7}))), "{output}");
        }
        for output in [
            json!({"id": "7"}),
            json!("done"),
            text("{}"),
            text("done"),
            json!({"structuredContent": {"other": 7}}),
            json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]}),
        ] {
            assert_eq!(read(&schema, &output), Err(ResultProblem::SchemaMismatch), "{output}");
        }
        assert_eq!(read(&json!({"type": "no type"}), &json!({"id": 7})), Err(ResultProblem::SchemaMismatch));
    }

    #[test]
    fn schema_of_a_wrapped_value_unwraps_it() {
        let list = json!({"type": "array", "items": {"type": "integer"}});
        let schema = json!({"type": "object", "properties": {"result": list}, "required": ["result"], "x-fastmcp-wrap-result": true});
        for output in [json!({"structuredContent": {"result": [1]}}), json!([1]), json!("[1]")] {
            assert_eq!(read(&schema, &output), Ok(Some(json!([1]))), "{output}");
        }
        let mismatch = Err(ResultProblem::SchemaMismatch);
        assert_eq!(read(&schema, &json!({"structuredContent": {"result": ["1"]}})), mismatch);
    }
}
