//! The run around the calls of a session, concurrent or not: the configuration of its model, the model's stream, its usage, and its end.

use callgate::ToolDescriptor;
use callgate::json::{self, Map, Value, json};
use callgate::lifecycle::{Chunk, ModelConfig, RunEnd, Usage};
use callgate::message::{Dialect, History};
use napi_derive::napi;
use serde::Deserialize;

use crate::concurrent_session::NativeConcurrentSession;
use crate::exchange::OperationResult;
use crate::failure::Failure;
use crate::host::Host;
use crate::json_text::flagged;
use crate::operation::OperationThread;
use crate::session::NativeSession;

/// The configuration of a model call, without its messages.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigOptions {
    #[serde(default)]
    system_prompts: Vec<String>,
    #[serde(default)]
    tools: Vec<ToolDescriptor>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u64>,
    #[serde(default)]
    metadata: Map,
    #[serde(default)]
    provider_options: Map,
    /// The messages, in the form of the AI SDK.
    messages: Option<Value>,
}

fn read_config(text: &str) -> Result<ModelConfig, Failure> {
    let options: ConfigOptions = json::from_str(text).map_err(Failure::invalid_argument)?;
    let messages = options.messages.unwrap_or_else(|| json!([]));
    let messages = History::read(Dialect::AiSdk, &messages);
    Ok(ModelConfig {
        messages: messages.map_err(|error| Failure::new("invalid_history", error.to_string()))?,
        system_prompts: options.system_prompts,
        tools: options.tools,
        temperature: options.temperature,
        top_p: options.top_p,
        max_tokens: options.max_tokens,
        metadata: options.metadata,
        provider_options: options.provider_options,
    })
}

fn config_text(config: Result<ModelConfig, RunEnd>) -> OperationResult {
    let config = match config {
        Ok(config) => config,
        Err(end) => return Ok(json!({ "end": end_json(&end) }).to_string()),
    };
    let tools = json::to_value(&config.tools).map_err(Failure::invalid_argument)?;
    let config = json!({
        "systemPrompts": config.system_prompts,
        "tools": tools,
        "temperature": config.temperature.and_then(json::Number::from_f64).map(Value::Number),
        "topP": config.top_p.and_then(json::Number::from_f64).map(Value::Number),
        "maxTokens": config.max_tokens,
        "metadata": Value::Object(config.metadata),
        "providerOptions": Value::Object(config.provider_options),
    });
    Ok(json!({ "config": config }).to_string())
}

fn end_json(end: &RunEnd) -> Value {
    match end {
        RunEnd::Finished { reason, content } => {
            json!({ "end": "finished", "reason": reason.as_deref(), "content": content.as_str() })
        }
        RunEnd::Aborted { reason } => json!({ "end": "aborted", "reason": reason.as_str() }),
        RunEnd::Failed { error } => json!({ "end": "failed", "error": error.as_str() }),
    }
}

fn read_end(text: &str) -> Result<RunEnd, Failure> {
    let end = json::parse(text).map_err(Failure::invalid_argument)?;
    let member = |key| end.get(key).and_then(Value::as_str).map(str::to_owned);
    match member("end").as_deref() {
        Some("finished") => {
            Ok(RunEnd::Finished { reason: member("reason"), content: member("content").unwrap_or_default() })
        }
        Some("aborted") => Ok(RunEnd::Aborted { reason: member("reason").unwrap_or_default() }),
        Some("failed") => Ok(RunEnd::Failed { error: member("error").unwrap_or_default() }),
        _ => Err(Failure::invalid_argument("`end` is not `finished`, `aborted` or `failed`")),
    }
}

fn chunks_text(chunks: Result<Vec<Chunk>, RunEnd>) -> napi::Result<String> {
    let text = match chunks {
        Ok(chunks) => json!({ "chunks": json::to_value(&chunks).map_err(Failure::invalid_argument)? }),
        Err(end) => json!({ "end": end_json(&end) }),
    };
    Ok(flagged(&text.to_string()))
}

#[napi]
impl NativeSession {
    /// Begins a run.
    #[napi]
    pub fn begin(&self, config: String) -> napi::Result<String> {
        let config = read_config(&config)?;
        Ok(flagged(&config_text(self.lock()?.begin(config))?))
    }

    /// The configuration of the next model call.
    #[napi]
    pub fn before_model(&self, host: &Host, config: String) -> napi::Result<String> {
        let config = read_config(&config)?;
        let mut session = self.lock()?;
        host.start(OperationThread::for_text(""), move |_| {
            Box::pin(async move { config_text(session.before_model(config).await) })
        })
    }

    /// Passes a chunk of the model's stream through the policies.
    #[napi]
    pub fn chunk(&self, chunk: String) -> napi::Result<String> {
        let chunk: Chunk = json::from_str(&chunk).map_err(Failure::invalid_argument)?;
        chunks_text(self.lock()?.chunk(chunk))
    }

    /// The chunks that are still held back.
    #[napi]
    pub fn rest_of_stream(&self) -> napi::Result<String> {
        chunks_text(self.lock()?.rest_of_stream())
    }

    /// Counts the usage of a model call.
    #[napi]
    pub fn report_usage(&self, usage: String) -> napi::Result<()> {
        let usage: Usage = json::from_str(&usage).map_err(Failure::invalid_argument)?;
        self.lock()?.report_usage(usage);
        Ok(())
    }

    /// Ends the run.
    #[napi]
    pub fn end(&self, host: &Host, end: String) -> napi::Result<String> {
        let end = read_end(&end)?;
        let mut session = self.lock()?;
        host.start(OperationThread::for_text(""), move |_| {
            Box::pin(async move {
                let failures = session.end(&end).await.finish().await;
                Ok(Value::from(failures).to_string())
            })
        })
    }
}

#[napi]
impl NativeConcurrentSession {
    /// Begins a run.
    #[napi]
    pub fn begin(&self, host: &Host, config: String) -> napi::Result<String> {
        let (config, session) = (read_config(&config)?, self.session());
        host.start(self.thread(), move |_| Box::pin(async move { config_text(session.begin(config).await) }))
    }

    /// Reserves the next model call, before its configuration is known.
    #[napi]
    pub fn reserve_model_call(&self, host: &Host) -> napi::Result<String> {
        let session = self.session();
        host.start(self.thread(), move |_| {
            Box::pin(async move {
                let reserved = session.reserve_model_call(&History::default()).await;
                config_text(reserved.map(|()| ModelConfig::default()))
            })
        })
    }

    /// The configuration of the next model call.
    #[napi]
    pub fn before_model(&self, host: &Host, config: String) -> napi::Result<String> {
        let (config, session) = (read_config(&config)?, self.session());
        host.start(self.thread(), move |_| {
            Box::pin(async move { config_text(session.before_model(config).await) })
        })
    }

    /// Passes a chunk of the model's stream through the policies.
    #[napi]
    pub fn chunk(&self, chunk: String) -> napi::Result<String> {
        let chunk: Chunk = json::from_str(&chunk).map_err(Failure::invalid_argument)?;
        chunks_text(self.session().chunk(chunk))
    }

    /// The chunks that are still held back.
    #[napi]
    pub fn rest_of_stream(&self) -> napi::Result<String> {
        chunks_text(self.session().rest_of_stream())
    }

    /// Counts the usage of a model call.
    #[napi]
    pub fn report_usage(&self, usage: String) -> napi::Result<()> {
        let usage: Usage = json::from_str(&usage).map_err(Failure::invalid_argument)?;
        self.session().report_usage(usage);
        Ok(())
    }

    /// Ends the run.
    #[napi]
    pub fn end(&self, host: &Host, end: String) -> napi::Result<String> {
        let (end, session) = (read_end(&end)?, self.session());
        host.start(self.thread(), move |_| {
            Box::pin(async move { Ok(Value::from(session.end(&end).await).to_string()) })
        })
    }
}
