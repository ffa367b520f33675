//! The servers of a gateway: those of its configuration → [`ServerSpec`]s with the rules of each, also after the configuration has changed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::exit::CommandError;
use super::observability::Observability;
use super::reload_output;
use super::rules_args;
use super::server_list_file::{FollowServers, ServersError, check_other_keys};
use super::supervise;
use callgate::engine::{Engine, ReloadEvent};
use callgate::reload::RulesWatcher;
use callgate_mcp::{Config, ConfiguredServer, Gateway, ServerSpec};

/// The servers of a gateway.
pub(super) struct GatewayServers<'o> {
    observability: &'o Observability,
    /// Whether callers are authenticated, so that their tokens can be sent to servers.
    has_caller_tokens: bool,
    /// By server, for those with rules of their own.
    rules: BTreeMap<String, ServerRules>,
}

/// The rules of one server.
struct ServerRules {
    policies: Vec<PathBuf>,
    engine: Engine,
    /// Reloads them, once the gateway runs.
    watcher: Option<RulesWatcher>,
}

impl<'o> GatewayServers<'o> {
    pub(super) fn new(observability: &'o Observability, has_caller_tokens: bool) -> Self {
        Self { observability, has_caller_tokens, rules: BTreeMap::new() }
    }

    /// Prepares servers. Rules of a server that has had the same before are not loaded again; rules of servers that are not among these are
    /// forgotten.
    pub(super) fn specs(&mut self, servers: &[ConfiguredServer]) -> Result<Vec<ServerSpec>, ServersError> {
        for server in servers.iter().filter(|server| !server.policies.is_empty()) {
            if self.rules.get(&server.name).is_some_and(|rules| rules.policies == server.policies) {
                continue;
            }
            let loaded = rules_args::load(&server.policies).map_err(ServersError::Reported)?;
            let bundle = format!("server/{}", server.name);
            let engine = self.observability.observe_rules(Engine::builder(loaded), &bundle).build();
            let rules = ServerRules { policies: server.policies.clone(), engine, watcher: None };
            self.rules.insert(server.name.clone(), rules);
        }
        let specs = servers.iter().map(|server| self.spec(server)).collect::<Result<_, _>>()?;
        self.rules.retain(|name, _| {
            servers.iter().any(|server| server.name == *name && !server.policies.is_empty())
        });
        Ok(specs)
    }

    fn spec(&self, server: &ConfiguredServer) -> Result<ServerSpec, CommandError> {
        let reach = supervise::supervised(server.reach.clone())?;
        let mut spec = ServerSpec::new(&server.name, reach);
        spec.prefix.clone_from(&server.prefix);
        spec.rules = self.rules.get(&server.name).map(|rules| rules.engine.clone());
        spec.shared = server.shared;
        Ok(spec)
    }

    /// Whether a server has rules of its own.
    pub(super) fn have_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Starts to reload the rules of servers when their files change.
    pub(super) fn watch_rules(
        &mut self,
        gateway: &Arc<Gateway>,
        runtime: &tokio::runtime::Handle,
    ) -> Result<(), CommandError> {
        for rules in self.rules.values_mut().filter(|rules| rules.watcher.is_none()) {
            rules.watcher = Some(reload_output::start_watcher(&rules.engine, &rules.policies)?);
            notify_clients_of_reloads(&rules.engine, gateway, runtime);
        }
        Ok(())
    }
}

/// A gateway whose servers follow its configuration file.
pub(super) struct FollowingGateway<'g, 'o> {
    pub(super) servers: &'g mut GatewayServers<'o>,
    pub(super) gateway: &'g Arc<Gateway>,
}

impl FollowServers for FollowingGateway<'_, '_> {
    fn check(&self, present: &Config, next: &Config) -> Result<(), String> {
        check_change(present, next, self.servers.has_caller_tokens)
    }

    fn replace(&mut self, _: &Config, next: &Config) -> Result<(), ServersError> {
        self.gateway.set_servers(self.servers.specs(&next.servers)?);
        Ok(self.servers.watch_rules(self.gateway, &tokio::runtime::Handle::current())?)
    }
}

/// Checks that callers are authenticated if servers need their tokens.
pub(super) fn check_caller_tokens(config: &Config, has_caller_tokens: bool) -> Result<(), String> {
    match config.servers.iter().find(|server| server.needs_caller_token()) {
        Some(server) if !has_caller_tokens => Err(format!(
            "the server `{}` needs the tokens of callers: serve them by `--listen ADDRESS --auth FILE`",
            server.name
        )),
        _ => Ok(()),
    }
}

/// Checks that only servers have changed, and not the rules of one that stays: that could loosen them without the checks of a reload.
fn check_change(present: &Config, next: &Config, has_caller_tokens: bool) -> Result<(), String> {
    check_other_keys(present, next)?;
    check_caller_tokens(next, has_caller_tokens)?;
    for server in &next.servers {
        let before = present.servers.iter().find(|before| before.name == server.name);
        if before.is_some_and(|before| before.policies != server.policies) {
            return Err(format!("`policies` of the server `{}` change with a restart only", server.name));
        }
    }
    Ok(())
}

/// Notifies clients when new rules take effect, as these may change which tools are shown.
pub(super) fn notify_clients_of_reloads(
    engine: &Engine,
    gateway: &Arc<Gateway>,
    runtime: &tokio::runtime::Handle,
) {
    let (gateway, runtime) = (Arc::downgrade(gateway), runtime.clone());
    engine.on_change(move |change| {
        if let (ReloadEvent::Applied { .. }, Some(gateway)) = (change, gateway.upgrade()) {
            runtime.spawn(async move { gateway.notify_tools_changed().await });
        }
    });
}
