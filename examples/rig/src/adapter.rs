//! Adapter for Rig: Rig's `AgentRun` returns the next step of a run, Callgate decides whether it is allowed. Copy this file.

use callgate::Round;
use callgate::json::{self, Value, json};
use callgate::lifecycle::{Chunk, ModelConfig, RunEnd, Usage};
use callgate::message::{Dialect, History, Message, Part, ResultOutput, ResultStatus, Role};
use callgate::{Session, ToolCall, ToolDescriptor, ToolError, ToolExecutor, ToolResponse};
use rig_agent::run::{
    AgentRun, AgentRunStep, ModelTurn, ModelTurnOutcome, PendingToolCall, PreparedRequest, RequestPatch,
    RunSpec, prepare_request,
};
use rig_agent::tool::{ToolContext, ToolOutput, ToolSet};
use rig_core::DynModel;
use rig_core::completion::{CompletionRequest, CompletionResponse};
use rig_core::message::{AssistantContent, ToolResultContent, UserContent};
use rig_core::operation::Completion;

/// A Rig agent. For an existing `rig_agent::Agent`: its `run_spec()`, and the tools that it was built with.
pub struct Agent {
    pub spec: RunSpec,
    pub model: DynModel<Completion>,
    pub tools: ToolSet,
}

/// A conversation between two requests, stored while an approval is pending. Both parts can be serialized as JSON.
pub struct Talk {
    /// Rig's part: the conversation and the state of the run.
    pub run: AgentRun,
    /// Callgate's part: the calls with their results, sealed approval requests and answers.
    pub calls: History,
}

impl Talk {
    /// Starts a conversation with the user's prompt.
    pub fn new(agent: &Agent, prompt: &str) -> Self {
        Self { run: AgentRun::from_spec(&agent.spec, prompt, None), calls: History::default() }
    }

    /// Serializes the conversation.
    pub fn to_json(&self) -> Result<Value, json::Error> {
        Ok(json!({ "run": json::to_value(&self.run)?, "calls": self.calls.write(Dialect::AiSdk) }))
    }

    /// Deserializes a stored conversation.
    pub fn of_json(stored: &Value) -> Result<Self, Box<dyn std::error::Error>> {
        let run = json::from_value(stored["run"].clone())?;
        Ok(Self { run, calls: History::read(Dialect::AiSdk, &stored["calls"])? })
    }
}

/// How a request ends.
#[derive(Debug)]
pub enum Ended {
    /// With the model's last text.
    Answered(String),
    /// With pending approvals in `Talk::calls`.
    Waits,
    /// By a policy, or by an error.
    Stopped(RunEnd),
}

/// Executes calls with Rig's tools. Only calls that every policy allows get here.
impl ToolExecutor for Agent {
    async fn execute(&self, call: &ToolCall) -> Result<ToolResponse, ToolError> {
        let result = self.tools.execute(&call.tool, &call.input.to_string(), &mut ToolContext::new()).await;
        match result.into_result() {
            Ok(output) => Ok(json_of(&output).into()),
            Err(error) => Err(ToolError::new(error.model_output().render()).with_kind(error.kind().as_str())),
        }
    }
}

impl Agent {
    /// Adds this agent's tools to a session for one request.
    pub fn guarded(&self, session: Session) -> Session {
        let describe = |tool: rig_core::completion::ToolDefinition| ToolDescriptor {
            name: tool.name.to_string(),
            description: Some(tool.description),
            input_schema: Some(tool.parameters.into()),
            output_schema: None,
            annotations: None,
            server: None,
            once: false,
            idempotent: false,
        };
        session.with_tools(self.tools.tool_definitions().into_iter().map(describe))
    }

    /// Runs until the model has answered, an approval is pending, or a policy ends the run. Resumes a stored conversation.
    pub async fn run(&self, session: &mut Session, talk: &mut Talk) -> Ended {
        let ended = self.steps(session, talk).await.unwrap_or_else(Ended::Stopped);
        let finished = |reason: &str, content: &str| RunEnd::Finished {
            reason: Some(reason.to_owned()),
            content: content.to_owned(),
        };
        let ending = match &ended {
            Ended::Answered(text) => finished("stop", text),
            Ended::Waits => finished("approval", ""),
            Ended::Stopped(ending) => ending.clone(),
        };
        session.end(&ending).await.finish().await;
        ended
    }

    async fn steps(&self, session: &mut Session, talk: &mut Talk) -> Result<Ended, RunEnd> {
        let config = session.begin(ModelConfig {
            system_prompts: self.spec.preamble.iter().cloned().collect(),
            tools: session.tools().to_vec(),
            temperature: self.spec.temperature,
            max_tokens: self.spec.max_tokens,
            ..ModelConfig::default()
        })?;
        loop {
            match talk.run.next_step().map_err(failed)? {
                AgentRunStep::CallModel { prompt, history, .. } => {
                    let config = ModelConfig { messages: talk.calls.clone(), ..config.clone() };
                    let prepared = self.prepared(session.before_model(config).await?, &history)?;
                    let request = prepared.clone().apply(CompletionRequest::new(prompt));
                    let mut response = self.model.call(request).await.map_err(failed)?;
                    filter(session, &mut response)?;
                    let turn = self.turn(&response, &prepared);
                    if let ModelTurnOutcome::NeedsResolution(_) =
                        talk.run.model_response(turn).map_err(failed)?
                    {
                        talk.run.resolve_unhandled_invalid_tool_call().map_err(failed)?;
                    }
                }
                AgentRunStep::CallTools { calls } => {
                    if self.put_through(session, &mut talk.calls, &calls).await?.is_suspended() {
                        return Ok(Ended::Waits);
                    }
                    talk.run.tool_results(results(&talk.calls, calls)).map_err(failed)?;
                }
                AgentRunStep::Done(response) => return Ok(Ended::Answered(response.output())),
            }
        }
    }

    /// The request to the model, with the configuration as changed by policies and hooks.
    fn prepared(
        &self,
        config: ModelConfig,
        history: &[rig_core::message::Message],
    ) -> Result<PreparedRequest, RunEnd> {
        let shown: Vec<String> = config.tools.into_iter().map(|tool| tool.name).collect();
        let patch = RequestPatch {
            preamble: Some(config.system_prompts.join("\n")),
            temperature: config.temperature,
            max_tokens: config.max_tokens,
            active_tools: Some(shown),
            ..RequestPatch::default()
        };
        let (capabilities, tools) = (self.model.capabilities().completion, self.tools.tool_definitions());
        prepare_request(&self.spec, &capabilities, history, tools, None, Some(&patch)).map_err(failed)
    }

    /// The model's turn. It may call any tool: for a hidden tool, Callgate returns a better reason than Rig.
    fn turn(&self, response: &CompletionResponse, prepared: &PreparedRequest) -> ModelTurn {
        let all = || self.tools.names().map(str::to_owned);
        let (mut executable, mut allowed) =
            (prepared.executable_tool_names.clone(), prepared.allowed_tool_names.clone());
        executable.extend(all());
        allowed.extend(all());
        ModelTurn::from_response_parts(response, executable, allowed)
    }

    /// Evaluates and runs the calls of a turn; in a stored conversation, resumes the pending calls with the answers given since.
    async fn put_through(
        &self,
        session: &mut Session,
        known: &mut History,
        calls: &[PendingToolCall],
    ) -> Result<Round, RunEnd> {
        if !known.calls_without_result().is_empty() {
            return session.resume(known, self).await.map_err(failed);
        }
        let new = calls.iter().filter(|call| call.preresolved_result.is_none()).map(|call| {
            let function = &call.tool_call.function;
            Part::call(
                call.tool_call.id.to_string(),
                function.name.to_string(),
                function.arguments_value().into(),
            )
        });
        known.push(Message::new(Role::Assistant, new.collect()));
        session.run_round(known, self).await.map_err(failed)
    }
}

/// Applies stream and budget policies to the model's text and usage.
fn filter(session: &mut Session, response: &mut CompletionResponse) -> Result<(), RunEnd> {
    let usage = Usage {
        prompt_tokens: response.usage.input_tokens.unwrap_or_default(),
        completion_tokens: response.usage.output_tokens.unwrap_or_default(),
        total_tokens: response.usage.total_tokens,
        cost: None,
    };
    let mut passed = Vec::new();
    for (place, content) in response.choice.iter().enumerate() {
        if let AssistantContent::Text(text) = content {
            passed.extend(session.chunk(Chunk::text(place.to_string(), &text.text))?);
        }
    }
    passed.extend(session.chunk(Chunk::Finished { reason: None, usage: Some(usage) })?);
    for (place, content) in response.choice.iter_mut().enumerate() {
        if let AssistantContent::Text(_) = content {
            let said = passed.iter().filter_map(|chunk| match chunk {
                Chunk::Text { id, delta } if *id == place.to_string() => Some(delta.as_str()),
                _ => None,
            });
            *content = AssistantContent::text(said.collect::<String>());
        }
    }
    Ok(())
}

/// Converts the results of these calls for Rig's conversation; in a completed round, each call has one.
fn results(known: &History, calls: Vec<PendingToolCall>) -> Vec<UserContent> {
    let mut told = Vec::new();
    // The calls of this turn are the last ones.
    let mut occurrences = known.occurrences();
    for PendingToolCall { tool_call, preresolved_result } in calls.into_iter().rev() {
        let id = tool_call.id.to_string();
        let found = occurrences.iter().rposition(|occurrence| occurrence.call.id == id);
        told.push(match (preresolved_result, found.map(|place| occurrences.remove(place).result)) {
            (Some(result), _) => result,
            (None, Some(Some(result))) if result.status == ResultStatus::Output => {
                UserContent::ToolResult(tool_call.result(content_of(&result.output)))
            }
            (None, found) => {
                let why = found.flatten().map(|result| content_of(&result.output));
                UserContent::ToolResult(tool_call.error_result(why.unwrap_or_default()))
            }
        });
    }
    told.reverse();
    told
}

fn content_of(output: &ResultOutput) -> Vec<ToolResultContent> {
    vec![match output {
        ResultOutput::Json(value) => match value.clone().try_into() {
            Ok(value) => ToolResultContent::Json { value },
            // Rig's numbers are those of `serde_json`, which can't represent every number; text can.
            Err(_) => ToolResultContent::text(value.to_string()),
        },
        other => ToolResultContent::text(other.text()),
    }]
}

fn json_of(output: &ToolOutput) -> Value {
    output.as_json().cloned().map_or_else(|| output.render().into(), Value::from)
}

fn failed(error: impl std::fmt::Display) -> RunEnd {
    RunEnd::Failed { error: error.to_string() }
}
