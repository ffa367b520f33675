//! Who sees what of a call: spans for observers, results for models.

use std::sync::{Arc, Mutex};

use callgate::Outcome;
use callgate::host::{Observer, ToolCallSpan, ToolCallStart};
use callgate::json::json;
use callgate::message::ResultOutput;

use super::{push_call, tool, user};
use crate::fixtures::{Tool, call, noon, rules};

#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl Observer for Spans {
    fn on_outcome(&self, _: &Outcome) {}
    fn on_tool_start(&self, start: &ToolCallStart<'_>) {
        self.0.lock().unwrap().push(format!("start {} {}", start.tool, start.args));
    }
    fn on_tool_end(&self, span: &ToolCallSpan<'_>) {
        let Outcome { tool, outcome, input, output, .. } = span.outcome;
        let output = output.as_ref().map(ToString::to_string).unwrap_or_default();
        let line = format!("end {tool} {outcome} {input} {output} as {:?}", span.shown);
        self.0.lock().unwrap().push(line);
    }
}

const RULES: &str = "policies:
  - { id: no, match: drop, deny: { message: never } }
  - { id: ask, match: pay, approval: {} }
  - { id: trim, match: look, transform: { input: [ { path: $.input.q, trim: true } ] } }
  - { id: hide, redact: { in: [input, output], detect: [email] } }";

#[test]
fn i10_spans_have_consumed_arguments_and_results_without_secrets() {
    let clock = noon();
    let spans = Spans::default();
    let gives = Ok(json!({ "found": "ana@example.com" }));
    let tool = Tool::scripted(&clock, [(std::time::Duration::ZERO, gives)]);
    let engine = rules(RULES).observer(spans.clone()).build();
    let mut session = engine.session().with_result_formatter(|outcome| {
        Some(ResultOutput::Text(format!("Found: {}", outcome.output.as_ref()?["found"].as_str()?)))
    });
    for (name, input) in
        [("look", json!({ "q": " bob@example.com " })), ("drop", json!({})), ("pay", json!({}))]
    {
        clock.block_on(session.execute(call(name, input), &tool));
    }
    assert_eq!(
        *spans.0.lock().unwrap(),
        [
            r#"start look {"q":"[email]"}"#,
            r#"end look executed {"q":"[email]"} {"found":"[email]"} as Some("Found: [email]")"#,
            r#"end drop denied {}  as Some("never")"#,
        ]
    );
    assert_eq!(tool.inputs(), [json!({ "q": "bob@example.com" })]);
}

#[test]
fn models_get_shaped_results_and_a_panic_while_shaping_changes_nothing() {
    let clock = noon();
    for (panics, shown) in [(false, "short"), (true, "1")] {
        let mut session = rules("policies: []").build().session().with_result_formatter(move |_| {
            assert!(!panics, "clumsy");
            Some(ResultOutput::Text("short".into()))
        });
        let mut history = user("look");
        push_call(&mut history, "c1", "look", json!({}));
        let round = clock.block_on(session.run_round(&mut history, &Tool::counting(&clock))).unwrap();
        assert_eq!(round.outcomes[0].output, Some(json!(1)));
        assert_eq!(history.occurrences()[0].result.unwrap().output.text(), shown);
    }
}

#[test]
fn tools_of_the_call_shadow_those_of_the_prompt_and_the_engine() {
    let with = |name: &str, schema: callgate::json::Value| callgate::ToolDescriptor {
        input_schema: Some(schema),
        ..tool(name)
    };
    let clock = noon();
    let counting = Tool::counting(&clock);
    let text = "policies: [ { id: fits, match: look, validate: { schema: tool } } ]";
    let engine = rules(text).tools([with("look", json!({ "required": ["engine"] }))]).build();
    let session = engine.session().with_tools([with("look", json!({ "required": ["prompt"] })), tool("pay")]);
    let mut session = session.with_tools([with("look", json!({ "required": ["call"] }))]);
    assert_eq!(session.tools().len(), 2);
    for (argument, kind) in [("engine", "invalid"), ("prompt", "invalid"), ("call", "executed")] {
        let outcome = clock.block_on(session.execute(call("look", json!({ argument: 1 })), &counting));
        assert_eq!(outcome.outcome.name(), kind, "{argument}");
    }
}
