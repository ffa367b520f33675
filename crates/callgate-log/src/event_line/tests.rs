use std::sync::{Arc, Mutex};

use callgate::{Engine, Observer, ToolCall, ToolError, ToolExecutor, ToolResponse};

use super::*;

struct Echo;

impl ToolExecutor for Echo {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        Ok(call.input.clone().into())
    }
}

/// Lines of at most 1,000 bytes.
#[derive(Clone)]
struct ShortLines(EventFormat, Arc<Mutex<Vec<String>>>);

impl Observer for ShortLines {
    fn on_event(&self, event: &EngineEvent<'_>) {
        self.1.lock().expect("one thread").push(self.0.bounded_line(event, 1_000));
    }
}

#[test]
fn an_event_that_is_too_long_for_a_line_is_recorded_without_its_values() {
    let format = EventFormat::new(Content::Redacted, Keys::random().expect("a key"));
    let lines = ShortLines(format, Arc::default());
    let rules = callgate::load_text("policies: []").expect("rules");
    let engine = Engine::builder(rules).observer(lines.clone()).build();
    let long = "x".repeat(1_001);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut session = engine.session();
        session.execute(ToolCall::new("values", "a", json!({ "text": long })), &Echo).await;
        session.execute(ToolCall::new("name", &long, json!({})), &Echo).await;
    });
    let lines = lines.1.lock().expect("one thread");
    assert!(lines.iter().all(|line| line.len() <= 1_000), "{lines:?}");
    let decided: Vec<&String> = lines.iter().filter(|line| line.contains("call_decided")).collect();
    assert!(decided[0].contains(r#""tool":"a""#) && decided[0].contains("input_digest"), "{}", decided[0]);
    assert!(decided[1].contains("omitted_bytes"), "{}", decided[1]);
}
