//! The run around the calls of a session: the configuration of its model, the model's stream, its usage, and its end.

use callgate::json::{self, Map, Value, json};
use callgate::lifecycle::{Chunk, ModelConfig, RunEnd, Usage};
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::errors;
use crate::history::History;
use crate::json_conversion::{to_python, to_value};

/// The configuration of a model call, without its messages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigOptions {
    system_prompts: Vec<String>,
    tools: Vec<callgate::ToolDescriptor>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_tokens: Option<u64>,
    metadata: Map,
    provider_options: Map,
}

/// The end of a run.
#[derive(Debug, Deserialize)]
#[serde(tag = "end", rename_all = "lowercase", deny_unknown_fields)]
enum EndOptions {
    Finished {
        reason: Option<String>,
        #[serde(default)]
        content: String,
    },
    Aborted {
        reason: String,
    },
    Failed {
        error: String,
    },
}

fn read<T: DeserializeOwned>(what: &str, object: &Bound<'_, PyAny>) -> PyResult<T> {
    json::from_value(to_value(object)?).map_err(|error| errors::value(format!("{what}: {error}")))
}

/// Reads a configuration, with the messages so far.
pub(crate) fn read_config(
    config: &Bound<'_, PyAny>,
    history: Option<&Bound<'_, History>>,
) -> PyResult<ModelConfig> {
    let options: ConfigOptions = read("the configuration", config)?;
    Ok(ModelConfig {
        messages: history.map(|history| history.get().snapshot()).transpose()?.unwrap_or_default(),
        system_prompts: options.system_prompts,
        tools: options.tools,
        temperature: options.temperature,
        top_p: options.top_p,
        max_tokens: options.max_tokens,
        metadata: options.metadata,
        provider_options: options.provider_options,
    })
}

pub(crate) fn read_chunk(chunk: &Bound<'_, PyAny>) -> PyResult<Chunk> {
    read("the chunk", chunk)
}

pub(crate) fn read_usage(usage: &Bound<'_, PyAny>) -> PyResult<Usage> {
    read("the usage", usage)
}

pub(crate) fn read_end(end: &Bound<'_, PyAny>) -> PyResult<RunEnd> {
    Ok(match read("the end of the run", end)? {
        EndOptions::Finished { reason, content } => RunEnd::Finished { reason, content },
        EndOptions::Aborted { reason } => RunEnd::Aborted { reason },
        EndOptions::Failed { error } => RunEnd::Failed { error },
    })
}

/// A dict with `config`, or with the `end` of the run.
pub(crate) fn config_to_python(py: Python<'_>, config: Result<ModelConfig, RunEnd>) -> PyResult<Py<PyAny>> {
    let document = match config {
        Ok(config) => {
            let number = |number: Option<f64>| number.and_then(json::Number::from_f64).map(Value::Number);
            let tools = json::to_value(&config.tools).map_err(|error| errors::value(error.to_string()))?;
            json!({ "config": {
                "system_prompts": config.system_prompts,
                "tools": tools,
                "temperature": number(config.temperature),
                "top_p": number(config.top_p),
                "max_tokens": config.max_tokens,
                "metadata": Value::Object(config.metadata),
                "provider_options": Value::Object(config.provider_options),
            } })
        }
        Err(end) => end_document(&end),
    };
    Ok(to_python(py, &document)?.unbind())
}

/// A dict with the `chunks` to pass on, or with the `end` of the run.
pub(crate) fn chunks_to_python(py: Python<'_>, chunks: Result<Vec<Chunk>, RunEnd>) -> PyResult<Py<PyAny>> {
    let document = match chunks {
        Ok(chunks) => {
            let chunks = json::to_value(&chunks).map_err(|error| errors::value(error.to_string()))?;
            json!({ "chunks": chunks })
        }
        Err(end) => end_document(&end),
    };
    Ok(to_python(py, &document)?.unbind())
}

fn end_document(end: &RunEnd) -> Value {
    let end = match end {
        RunEnd::Finished { reason, content } => {
            json!({ "end": "finished", "reason": reason.as_deref(), "content": content.as_str() })
        }
        RunEnd::Aborted { reason } => json!({ "end": "aborted", "reason": reason.as_str() }),
        RunEnd::Failed { error } => json!({ "end": "failed", "error": error.as_str() }),
    };
    json!({ "end": end })
}
