//! Edits the hooks of a settings file's text; everything else stays unchanged, byte for byte.

use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};

use super::{HookSettings, MARKER};
use crate::edited_file::json_options;
use callgate_hooks::Agent;

/// What is to be installed.
pub(crate) struct HookEntry<'e> {
    pub(crate) settings: &'e HookSettings,
    pub(crate) command: &'e str,
}

/// How long an agent waits for a hook, in seconds. The hook itself denies earlier.
const TIMEOUT_SECONDS: u32 = 60;

fn parse(text: &str) -> Result<CstRootNode, String> {
    CstRootNode::parse(text, &json_options()).map_err(|error| error.to_string())
}

/// The text with the hooks; the same text if it has them.
///
/// # Errors
/// The text is not a settings file.
pub(crate) fn add_hooks(text: &str, entry: &HookEntry<'_>) -> Result<String, String> {
    let root = parse(text)?;
    let members = root.object_value_or_create().ok_or("the file must be an object")?;
    if entry.settings.agent == Agent::Cursor && members.get("version").is_none() {
        members.insert(0, "version", CstInputValue::Number("1".to_owned()));
    }
    let hooks = members.object_value_or_create("hooks").ok_or("`hooks` must be an object")?;
    let HookSettings { tool_events, other_events, .. } = entry.settings;
    for event in tool_events.iter().chain(*other_events) {
        let list = hooks
            .array_value_or_create(event)
            .ok_or_else(|| format!("`{event}` in `hooks` must be an array"))?;
        let own: Vec<CstNode> = list.elements().into_iter().filter(is_own).collect();
        if own.len() == 1 && own.iter().all(|node| has_command(node, entry.command)) {
            continue;
        }
        own.into_iter().for_each(remove_own);
        // First, so that it sees what the agent sends before other hooks change it.
        list.insert(0, entry_value(entry, tool_events.contains(event)));
    }
    Ok(root.to_string())
}

/// The text without the hooks.
///
/// # Errors
/// The text is not a settings file.
pub(crate) fn remove_hooks(text: &str) -> Result<String, String> {
    let root = parse(text)?;
    let Some(hooks) = root.object_value().and_then(|members| members.get("hooks")) else {
        return Ok(text.to_owned());
    };
    let Some(events) = hooks.object_value() else { return Ok(text.to_owned()) };
    let mut is_changed = false;
    for event in events.properties() {
        let Some(list) = event.array_value() else { continue };
        let own: Vec<CstNode> = list.elements().into_iter().filter(is_own).collect();
        if own.is_empty() {
            continue;
        }
        is_changed = true;
        own.into_iter().for_each(remove_own);
        if list.elements().is_empty() {
            event.remove();
        }
    }
    if is_changed && events.properties().is_empty() {
        hooks.remove();
    }
    Ok(if is_changed { root.to_string() } else { text.to_owned() })
}

/// An installed command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstalledHook {
    /// The command, as the agent runs it.
    pub(crate) command: String,
    /// The position of its entry in the list of its event, and its own in the entry.
    pub(crate) position: (usize, usize),
}

/// The installed commands of an event.
///
/// # Errors
/// The text is not a settings file.
pub(crate) fn find_hooks(text: &str, event: &str) -> Result<Vec<InstalledHook>, String> {
    let root = parse(text)?;
    let list = root
        .object_value()
        .and_then(|members| members.object_value("hooks"))
        .and_then(|hooks| hooks.array_value(event));
    let entries = list.map(|list| list.elements()).unwrap_or_default();
    let hooks = entries.iter().enumerate().flat_map(|(entry, node)| {
        let commands = commands(node).into_iter().enumerate();
        commands.map(move |(handler, command)| InstalledHook { command, position: (entry, handler) })
    });
    Ok(hooks.filter(|hook| hook.command.contains(MARKER)).collect())
}

/// Whether the settings say that only hooks of administrators run.
///
/// # Errors
/// The text is not a settings file.
pub(crate) fn allows_managed_hooks_only(text: &str) -> Result<bool, String> {
    let root = parse(text)?;
    Ok(root.object_value().is_some_and(|members| has_value(&members, "allowManagedHooksOnly", true)))
}

fn has_value(object: &CstObject, name: &str, value: bool) -> bool {
    let setting = object.get(name).and_then(|member| member.value()?.as_boolean_lit());
    setting.is_some_and(|setting| setting.value() == value)
}

/// Whether Gemini CLI's list of disabled hooks has one of ours.
fn lists_own_hook(members: &CstObject) -> bool {
    let list = members.object_value("hooksConfig").and_then(|config| config.array_value("disabled"));
    let names = list.map(|list| list.elements()).unwrap_or_default();
    names.iter().any(|name| {
        name.as_string_lit().is_some_and(|name| name.decoded_value().is_ok_and(|name| name.contains(MARKER)))
    })
}

/// The setting that switches hooks off, if there is one.
///
/// # Errors
/// The text is not a settings file.
pub(crate) fn is_disabled(text: &str) -> Result<Option<&'static str>, String> {
    let root = parse(text)?;
    let Some(members) = root.object_value() else { return Ok(None) };
    let is = |object: Option<CstObject>, name: &str, value: bool| {
        object.is_some_and(|object| has_value(&object, name, value))
    };
    Ok(if is(Some(members.clone()), "disableAllHooks", true) {
        Some("disableAllHooks")
    } else if is(members.object_value("hooksConfig"), "enabled", false) {
        Some("hooksConfig.enabled")
    } else if is(members.object_value("tools"), "enableHooks", false) {
        Some("tools.enableHooks")
    } else if lists_own_hook(&members) {
        Some("hooksConfig.disabled")
    } else {
        None
    })
}

fn is_own(node: &CstNode) -> bool {
    commands(node).iter().any(|command| command.contains(MARKER))
}

/// Removes our commands from an entry, and the entry if it has no others.
fn remove_own(node: CstNode) {
    let Some(object) = node.as_object() else { return };
    let handlers = object.array_value("hooks");
    for handler in handlers.iter().flat_map(|list| list.elements()).filter(is_own) {
        handler.remove();
    }
    let is_empty = handlers.is_none_or(|list| list.elements().is_empty());
    if is_empty {
        node.remove();
    }
}

fn has_command(node: &CstNode, command: &str) -> bool {
    commands(node).iter().any(|known| known == command)
}

/// The commands of an entry: its own, or those of its `hooks`.
fn commands(node: &CstNode) -> Vec<String> {
    let command = |object: &CstObject| object.get("command")?.value()?.as_string_lit()?.decoded_value().ok();
    let Some(object) = node.as_object() else { return Vec::new() };
    let inner = object.array_value("hooks").map(|list| list.elements()).unwrap_or_default();
    let inner = inner.iter().filter_map(|node| command(&node.as_object()?)).collect::<Vec<_>>();
    command(&object).into_iter().chain(inner).collect()
}

fn entry_value(entry: &HookEntry<'_>, is_tool_event: bool) -> CstInputValue {
    let text = |text: &str| CstInputValue::String(text.to_owned());
    let member = |name: &str, value: CstInputValue| (name.to_owned(), value);
    let agent = entry.settings.agent;
    let timeout = match agent {
        Agent::GeminiCli => TIMEOUT_SECONDS * 1000,
        _ => TIMEOUT_SECONDS,
    };
    let timeout = member("timeout", CstInputValue::Number(timeout.to_string()));
    if agent == Agent::Cursor {
        let fail_closed = member("failClosed", CstInputValue::Bool(true));
        return CstInputValue::Object(vec![member("command", text(entry.command)), timeout, fail_closed]);
    }
    let handler = vec![member("type", text("command")), member("command", text(entry.command)), timeout];
    let hooks = member("hooks", CstInputValue::Array(vec![CstInputValue::Object(handler)]));
    let matcher = (is_tool_event && agent != Agent::Codex)
        .then(|| member("matcher", text(if agent == Agent::GeminiCli { ".*" } else { "*" })));
    CstInputValue::Object(matcher.into_iter().chain([hooks]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(agent: Agent, command: &str) -> HookEntry<'_> {
        HookEntry { settings: HookSettings::of(agent).unwrap(), command }
    }

    #[test]
    fn hooks_are_added_once_and_everything_else_stays() {
        let command = super::super::hook_command(
            Agent::ClaudeCode,
            "/bin/callgate",
            &["--policies".into(), "/r s".into()],
        );
        for agent in [Agent::ClaudeCode, Agent::Codex, Agent::GeminiCli, Agent::Cursor] {
            for before in [
                "",
                "{}",
                "{\n  // mine\n  \"a\": 1,\n  \"hooks\": { \"PreToolUse\": [ { \"hooks\": [] } ] },\n}\n",
            ] {
                let entry = entry(agent, &command);
                let after = add_hooks(before, &entry).unwrap();
                let installed = InstalledHook { command: command.clone(), position: (0, 0) };
                assert_eq!(find_hooks(&after, entry.settings.first_event()), Ok(vec![installed]), "{after}");
                assert_eq!(add_hooks(&after, &entry).as_ref(), Ok(&after));
                let moved = super::super::hook_command(agent, "/opt/callgate", &[]);
                let moved = add_hooks(&after, &HookEntry { command: &moved, ..entry }).unwrap();
                assert_eq!(moved.matches(MARKER).count(), after.matches(MARKER).count());
                let removed = remove_hooks(&after).unwrap();
                assert!(!removed.contains(MARKER), "{removed}");
                assert_eq!(removed.contains("// mine"), before.contains("// mine"));
                assert_eq!(remove_hooks(before).as_deref(), Ok(before));
            }
        }
    }

    #[test]
    fn other_commands_of_the_same_entry_stay() {
        let command = super::super::hook_command(Agent::ClaudeCode, "/bin/callgate", &[]);
        let entry = entry(Agent::ClaudeCode, &command);
        let other = "{ \"type\": \"command\", \"command\": \"mine\" }";
        let own = format!("{{ \"type\": \"command\", \"command\": {} }}", callgate::json::json!(command));
        let text = format!("{{ \"hooks\": {{ \"PreToolUse\": [ {{ \"hooks\": [ {own}, {other} ] }} ] }} }}");
        let removed = remove_hooks(&text).unwrap();
        assert!(removed.contains("mine") && !removed.contains(MARKER), "{removed}");
        let moved =
            add_hooks(&text, &HookEntry { command: "/bin/sh -c ': callgate-hook; new'", ..entry }).unwrap();
        assert!(moved.contains("mine"), "{moved}");
        assert_eq!(find_hooks(&moved, "PreToolUse").unwrap().len(), 1, "{moved}");
    }

    #[test]
    fn what_is_no_settings_file_is_left_alone() {
        for text in ["[]", "{", "{\"hooks\": []}", "{\"hooks\": {\"PreToolUse\": 1}}"] {
            assert!(add_hooks(text, &entry(Agent::ClaudeCode, "x")).is_err(), "{text}");
        }
    }

    #[test]
    fn settings_that_switch_hooks_off_are_found() {
        for (text, setting) in [
            ("{}", None),
            ("{\"disableAllHooks\": false}", None),
            ("{\"disableAllHooks\": true}", Some("disableAllHooks")),
            ("{\"hooksConfig\": {\"enabled\": false}}", Some("hooksConfig.enabled")),
            ("{\"tools\": {\"enableHooks\": false}}", Some("tools.enableHooks")),
            ("{\"hooksConfig\": {\"disabled\": [\"mine\"]}}", None),
            (
                "{\"hooksConfig\": {\"disabled\": [\"sh -c ': callgate-hook; x'\"]}}",
                Some("hooksConfig.disabled"),
            ),
        ] {
            assert_eq!(is_disabled(text), Ok(setting), "{text}");
        }
    }
}
