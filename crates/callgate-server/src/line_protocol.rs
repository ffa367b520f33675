//! The API over lines of JSON, for hosts that prefer a child process: one request a line in, one response a line out, in the order in
//! which they are ready.

use std::sync::Arc;

use callgate::call::RequestTrace;
use callgate::json::{self, Value};
use callgate_http::Caller;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::api::Api;
use crate::endpoint::{ApiResponse, RequestBody, parse_query};
use crate::problem::Problem;
use crate::router::UnroutedRequest;

/// The longest line, in bytes.
const MAX_LINE: usize = 16 << 20;
/// The responses that wait for the reader of the output; the requests of further ones wait with them.
const MAX_PENDING: usize = 64;

/// Serves requests until the input ends, and then until all of them are answered.
pub(crate) async fn serve(
    api: Arc<Api>,
    mut input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let (sender, mut responses) = mpsc::channel::<String>(MAX_PENDING);
    let reading = async move {
        while let Some(line) = read_line(&mut input).await? {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (api, sender) = (Arc::clone(&api), sender.clone());
            // A request that waits for its host's report must not keep the report from being read.
            tokio::spawn(async move {
                let response = answer(&api, &line).await;
                let _ = sender.send(response).await;
            });
        }
        Ok(())
    };
    let writing = async {
        while let Some(response) = responses.recv().await {
            output.write_all(response.as_bytes()).await?;
            output.write_all(b"\n").await?;
            output.flush().await?;
        }
        Ok(())
    };
    let (read, written): (std::io::Result<()>, std::io::Result<()>) = tokio::join!(reading, writing);
    read.and(written)
}

/// The next line, without its end. A line that is too long is cut, so that it is answered as invalid.
async fn read_line(input: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let available = input.fill_buf().await?;
        if available.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let length = end.unwrap_or(available.len());
        let room = MAX_LINE.saturating_sub(line.len());
        line.extend(available.iter().take(length.min(room)));
        input.consume(end.map_or(length, |end| end + 1));
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

async fn answer(api: &Arc<Api>, line: &[u8]) -> String {
    let (id, response) = match json::parse_bytes(line) {
        Ok(message) => {
            let id = message.get("id").cloned().unwrap_or_default();
            (id, dispatch(api, message, line.len()).await.unwrap_or_else(ApiResponse::from))
        }
        Err(error) => (Value::Null, Problem::invalid(format!("the line is invalid JSON: {error}")).into()),
    };
    let ApiResponse { status, body, .. } = response;
    format!(r#"{{"id":{id},"status":{status},"body":{body}}}"#)
}

async fn dispatch(api: &Arc<Api>, mut message: Value, bytes: usize) -> Result<ApiResponse, Problem> {
    let wanted = || {
        Problem::invalid(
            "a line must be an object with `id`, `method`, `path` and, if the endpoint takes one, `body`",
        )
    };
    let text = |member: &str| message.get(member).and_then(Value::as_str).map(str::to_owned);
    let (method, target) = text("method").zip(text("path")).ok_or_else(wanted)?;
    let trace = RequestTrace { parent: text("traceparent"), state: text("tracestate") };
    let idempotency_key = text("idempotency_key");
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    // The process that started this one vouches for everything, as an embedding program does.
    let unrouted = UnroutedRequest {
        caller: Caller::anonymous(),
        method: &method,
        path,
        query: parse_query(query),
        trace,
        is_from_page: false,
        idempotency_key,
    };
    let routed = api.route(unrouted)?;
    let value = message.get_mut("body").map(Value::take).unwrap_or_default();
    Ok(api.answer(routed, RequestBody { value, bytes }).await)
}
