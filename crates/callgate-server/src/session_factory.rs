//! Opens the sessions of requests: caller + request → [`Session`] with its name, context and task.

use std::sync::Arc;

use callgate::call::Task;
use callgate::json::{Map, Value};
use callgate::session::Session;
use callgate_http::{Access, Caller};

use crate::api::Api;
use crate::problem::Problem;
use crate::session_name::stored_name;

/// The longest name of a session, in characters.
const MAX_NAME: usize = 256;
/// The members of the context that a credential with a principal supplies.
const VERIFIED_MEMBERS: [&str; 5] = ["principal", "roles", "tenant", "issuer", "claims"];

/// What a request says of its session.
pub(crate) struct SessionRequest {
    pub(crate) name: Option<String>,
    pub(crate) context: Option<Map>,
    pub(crate) task: Option<Task>,
}

/// A session of a caller.
pub(crate) struct CallerSession {
    pub(crate) session: Session,
    /// The context of its calls.
    pub(crate) context: Value,
}

impl Api {
    /// Opens a session of a caller. If it has a name, it has the state of its earlier calls, and its calls are recorded in the store, so
    /// that each runs once.
    ///
    /// # Errors
    /// The name is invalid, or the caller may not set the context or the task.
    pub(crate) fn open_session(
        &self,
        caller: &Caller,
        request: SessionRequest,
    ) -> Result<CallerSession, Problem> {
        let SessionRequest { name, context, task } = request;
        let is_host = caller.access.allows(Access::Host);
        for (member, is_set) in [("context", context.is_some()), ("task", task.is_some())] {
            if is_set && !is_host {
                let detail = format!(
                    "`{member}` needs `host` access, because policies trust it: give the credential `access: [host]`, or leave it out"
                );
                return Err(Problem::new(403, "access_denied", detail));
            }
        }
        if let Some(name) = &name
            && (name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control))
        {
            let detail = format!("`session` must have 1 to {MAX_NAME} characters, and no control characters");
            return Err(Problem::invalid(detail));
        }
        let context = self.merged_context(caller, context)?;
        let mut session = self.engine.session().with_context(context.clone());
        if let Some(name) = &name {
            session = session.with_name(stored_name(&self.caller_name(caller), name)).with_call_recording();
        }
        if let Some(servers) = &self.tool_servers {
            session = session.with_tool_catalog(servers.catalog()).with_call_reader({
                let servers = Arc::clone(servers);
                move |part| {
                    let mut call = part.to_call();
                    servers.resolve(&mut call);
                    servers.name_span(&mut call);
                    call
                }
            });
        }
        if let Some(task) = task {
            session.set_task(task);
        }
        Ok(CallerSession { session, context })
    }

    /// The operator's context, overridden by the host's, overridden by that of the caller's credential.
    fn merged_context(&self, caller: &Caller, given: Option<Map>) -> Result<Value, Problem> {
        let mut context = self.context.clone();
        let given = given.unwrap_or_default();
        // A host names the user that it serves; the rest of its own identity does not apply to that user.
        let names_user = given.contains_key("principal");
        for (member, value) in given {
            // A host of one tenant serves only users of that tenant.
            let is_fixed = VERIFIED_MEMBERS.contains(&member.as_str())
                && caller.context.get(&member).is_some_and(|own| member == "tenant" && *own != value);
            if is_fixed {
                let detail = "`context.tenant` differs from the tenant of the credential";
                return Err(Problem::new(403, "access_denied", detail));
            }
            context.insert(member, value);
        }
        for (member, value) in &caller.context {
            let is_replaced =
                names_user && ["principal", "roles", "issuer", "claims"].contains(&member.as_str());
            if !is_replaced {
                context.insert(member.clone(), value.clone());
            }
        }
        Ok(if context.is_empty() { Value::Null } else { Value::Object(context) })
    }
}
