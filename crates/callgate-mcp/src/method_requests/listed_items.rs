//! Lists of resources and prompts: removes the items whose use is always denied.

use super::{call_for, is_evaluated};
use crate::connection::{ClientConnection, Upstream};
use crate::jsonrpc::JsonRpcMessage;
use crate::method;
use crate::routes::ListKind;
use crate::tool_list;
use callgate::call::qualified_method;
use callgate::json::{Value, json};

/// Filters a list of resources, templates of resources, or prompts.
pub(crate) fn filter_items(
    connection: &ClientConnection,
    upstream: &Upstream,
    list: ListKind,
    mut response: JsonRpcMessage,
) -> JsonRpcMessage {
    let used_by = match list {
        ListKind::Tools => return response,
        ListKind::Resources | ListKind::ResourceTemplates => method::READ_RESOURCE,
        ListKind::Prompts => method::GET_PROMPT,
    };
    if !is_evaluated(connection, upstream.name(), used_by) {
        return response;
    }
    let Some(result) = response.result_mut() else { return response };
    let Some(Value::Array(items)) = result.get_mut(list.member()) else { return response };
    let before = items.len();
    let never_runs = connection.session.never_runs(upstream.name(), &qualified_method(used_by));
    items.retain(|item| {
        let params = match (list, item.get("name"), item.get("uri")) {
            _ if never_runs => return false,
            (ListKind::Resources, _, Some(uri)) => json!({ "uri": uri.clone() }),
            // Its arguments are not known.
            (ListKind::Prompts, Some(name), _) if !takes_arguments(item) => json!({ "name": name.clone() }),
            _ => return true,
        };
        let request = call_for(connection, upstream.name(), used_by, params);
        !connection.session.is_always_denied(&request)
    });
    if items.len() < before {
        tool_list::forbid_sharing(result);
    }
    response
}

fn takes_arguments(prompt: &Value) -> bool {
    prompt.get("arguments").and_then(Value::as_array).is_some_and(|arguments| !arguments.is_empty())
}
