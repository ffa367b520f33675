//! Codex: whether it runs the hooks of a file, which `config.toml` and `requirements.toml` beside it decide.

use std::path::Path;

use toml_edit::{Document, Item};

use super::Finding;
use crate::agent_hooks::InstalledHook;

/// What these settings say of the hook before tools in `hooks_file`. `is_managed`: the file is of the administrators.
pub(super) fn examine(hooks_file: &Path, hook: &InstalledHook, is_managed: bool) -> Vec<Finding> {
    let config = hooks_file.with_file_name("config.toml");
    let mut findings: Vec<Finding> = is_switched_off(&config).into_iter().collect();
    findings.extend(profiles_without_hooks(&config));
    let requirements = Settings::read(&hooks_file.with_file_name("requirements.toml"));
    if is_managed && requirements.bool(&["features", "hooks"]) != Some(true) {
        findings.push(Finding::Failed(
            "users can switch these hooks off: set `hooks = true` under `[features]` in `requirements.toml` beside them".to_owned(),
        ));
    }
    let settings = Settings::read(&config);
    if !is_managed {
        findings.push(trust(&settings, hooks_file, hook));
    }
    let types_into_programs =
        [&requirements, &settings].iter().find_map(|file| file.bool(&["features", "unified_exec"]));
    if types_into_programs != Some(false) {
        findings.push(Finding::Noted(
            "Codex runs no hook for what the model types into a running program. Interactive shells and interpreters are undecided for \
             `shell:` conditions; to switch typing off, run `codex features disable unified_exec`"
                .to_owned(),
        ));
    }
    findings
}

/// Whether a `config.toml` switches hooks off.
pub(super) fn is_switched_off(config: &Path) -> Option<Finding> {
    let settings = Settings::read(config);
    let is_off =
        ["hooks", "codex_hooks"].iter().find(|name| settings.bool(&["features", name]) == Some(false))?;
    Some(Finding::Failed(format!("`{}` switches every hook off: `features.{is_off}`", config.display())))
}

/// The profiles of a `config.toml` that switch hooks off.
fn profiles_without_hooks(config: &Path) -> Vec<Finding> {
    let settings = Settings::read(config);
    let profiles = settings.table(&["profiles"]).and_then(Item::as_table_like);
    let names = profiles.into_iter().flat_map(|profiles| profiles.iter().map(|(name, _)| name));
    let is_off = |name: &&str| {
        let features = ["hooks", "codex_hooks"];
        features.iter().any(|feature| settings.bool(&["profiles", name, "features", feature]) == Some(false))
    };
    let describe = |name: &str| {
        Finding::Failed(format!("the profile `{name}` in `{}` switches every hook off", config.display()))
    };
    names.filter(is_off).map(describe).collect()
}

/// Whether the user trusts the hook, as it was at some time.
fn trust(settings: &Settings, hooks_file: &Path, hook: &InstalledHook) -> Finding {
    let (entry, handler) = hook.position;
    let canonical = std::fs::canonicalize(hooks_file).ok();
    let absolute = std::path::absolute(hooks_file).ok();
    let state = [absolute, canonical].into_iter().flatten().find_map(|path| {
        let key = format!("{}:pre_tool_use:{entry}:{handler}", path.display());
        settings.table(&["hooks", "state", &key])
    });
    let is_enabled = state.and_then(|state| state.get("enabled")?.as_bool()) != Some(false);
    match state.and_then(|state| state.get("trusted_hash")?.as_str()) {
        Some(_) if is_enabled => Finding::Passed("the user trusts the hook".to_owned()),
        Some(_) => Finding::Failed("the user switched the hook off; `/hooks` in Codex switches it on".to_owned()),
        None => Finding::Failed(
            "Codex does not run the hook until its user trusts it: start `codex`, send a message, and trust the hooks that it shows".to_owned(),
        ),
    }
}

/// A settings file; empty if it is missing or invalid, which Codex reports itself.
struct Settings(Option<Document<String>>);

impl Settings {
    fn read(path: &Path) -> Self {
        Self(std::fs::read_to_string(path).ok().and_then(|text| Document::parse(text).ok()))
    }

    fn table(&self, path: &[&str]) -> Option<&Item> {
        path.iter().try_fold(self.0.as_ref()?.as_item(), |item, name| item.get(name))
    }

    fn bool(&self, path: &[&str]) -> Option<bool> {
        self.table(path)?.as_bool()
    }
}
