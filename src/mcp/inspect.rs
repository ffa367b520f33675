//! What servers say of their tools now, for people who review them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::frame::{Frame, Id};
use super::gateway::Gateway;
use super::link::{Link, Who};
use super::listing;
use super::method;
use super::outlet::Outlet;
use super::server::Gone;

/// The protocol that is spoken with servers that do not know the one since 2026-07-28.
const LEGACY_VERSION: &str = "2025-11-25";
const MODERN_VERSION: &str = "2026-07-28";

/// A server with its tools, as they are now.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspected {
    /// Its name.
    pub server: String,
    /// Its tools by their own names, in the order of their names.
    pub tools: Vec<(String, Value)>,
}

impl Gateway {
    /// Asks all servers which tools they have, as a client would. Errors: a server that can't be started, or does not list them.
    pub async fn inspect(self: &Arc<Self>) -> Result<Vec<Inspected>, String> {
        let (outlet, mut heard) = Outlet::new();
        let link = Link::open(self, Who::default(), outlet.clone()).map_err(|Gone(why)| why)?;
        let mut inspected = Vec::new();
        for (index, spec) in self.servers.iter().enumerate() {
            let envelope =
                greet(&link, index).await.map_err(|why| format!("the server `{}`: {why}", spec.name))?;
            let complete = listing::know(&link, index, &envelope).await;
            if !complete {
                return Err(format!("the server `{}` does not list its tools", spec.name));
            }
            let tools = link.server(index).map(|server| server.tools.all()).unwrap_or_default();
            inspected.push(Inspected { server: spec.name.clone(), tools });
        }
        // What servers ask of their client meanwhile is not answered: nobody is there.
        heard.close();
        link.close().await;
        Ok(inspected)
    }
}

/// Greets a server in the protocol that it speaks; gives a message in it, for those that follow.
async fn greet(link: &Link, index: usize) -> Result<Frame, String> {
    let about = json!({ "name": "callgate", "version": env!("CARGO_PKG_VERSION") });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": about,
    });
    let modern = json!({ "_meta": meta });
    let id = Id::text("callgate");
    let ask = |method: &'static str, params: Value| link.ask_server(index, method, params);
    let answer = ask(method::DISCOVER, modern.clone()).await.map_err(|Gone(why)| why)?;
    if answer.result_value().is_some() {
        return Ok(Frame::request(&id, method::TOOLS_LIST, modern));
    }
    let greeting = json!({ "protocolVersion": LEGACY_VERSION, "capabilities": {}, "clientInfo": about });
    let answer = ask(method::INITIALIZE, greeting).await.map_err(|Gone(why)| why)?;
    if let Some(error) = answer.error_value() {
        return Err(format!("it refuses to be greeted: {error}"));
    }
    link.tell_server(index, Frame::notification(method::INITIALIZED, json!({}))).await;
    Ok(Frame::request(&id, method::TOOLS_LIST, json!({})))
}
