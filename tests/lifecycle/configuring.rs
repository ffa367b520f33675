//! What the model is called with: hooks change it in order, policies have the last word, the bundle's the very last.

use callgate::engine::load_text;
use callgate::json::{Value, json};
use callgate::lifecycle::{Config, ConfigPatch, Middleware, Phase, RunContext};
use callgate::{EngineBuilder, Session};

use super::tool;
use crate::workshop::{noon, rules};

/// What the model is called with the first time, and the second.
fn configured(engine: EngineBuilder, config: Config) -> (Session, Vec<Config>) {
    let mut session = engine.build().session().with_context(json!({ "tenant": "acme", "roles": ["clerk"] }));
    let configs = two_turns(&mut session, config);
    (session, configs)
}

fn two_turns(session: &mut Session, config: Config) -> Vec<Config> {
    noon().drive(async {
        let base = session.begin(config).unwrap();
        let first = session.before_model(base.clone()).await.unwrap();
        vec![first, session.before_model(base).await.unwrap()]
    })
}

fn one(rules_text: &str, config: Config) -> Config {
    configured(rules(rules_text), config).1.remove(0)
}

fn prompts(change: &str) -> Vec<String> {
    let text = format!("policies: [ {{ id: p, model: {{ system_prompts: {{ {change} }} }} }} ]");
    one(&text, Config { system_prompts: vec!["Be kind.".into()], ..Config::default() }).system_prompts
}

#[test]
fn prompts_are_added_and_replaced() {
    assert_eq!(prompts("append: 'You serve {{ context.tenant }}.'"), ["Be kind.", "You serve acme."]);
    assert_eq!(prompts("prepend: [ First., Second. ]"), ["First.", "Second.", "Be kind."]);
    assert_eq!(prompts("append: After., prepend: Before."), ["Before.", "Be kind.", "After."]);
    assert_eq!(prompts("replace: Be short."), ["Be short."]);
}

#[test]
fn sampling_is_bounded_and_set() {
    let config = |text: &str, config| one(&format!("policies: [ {{ id: p, model: {{ {text} }} }} ]"), config);
    let hot =
        Config { temperature: Some(1.2), top_p: Some(0.1), max_tokens: Some(9000), ..Config::default() };
    let bounded = config("temperature: { max: 0.7 }, top_p: { min: 0.5 }, max_tokens: { max: 4000 }", hot);
    assert_eq!((bounded.temperature, bounded.top_p, bounded.max_tokens), (Some(0.7), Some(0.5), Some(4000)));
    let unset = config("temperature: { max: 0.7 }, max_tokens: { set: 50 }", Config::default());
    assert_eq!((unset.temperature, unset.max_tokens), (None, Some(50)));
    let text = "metadata: { team: red }, provider_options: { seed: 1 }";
    let added = config(text, Config { metadata: members(json!({ "a": 1 })), ..Config::default() });
    assert_eq!(added.metadata, members(json!({ "a": 1, "team": "red" })));
    assert_eq!(added.provider_options, members(json!({ "seed": 1 })));
}

fn members(value: Value) -> callgate::json::Map {
    value.as_object().unwrap().clone()
}

fn shown(config: &Config) -> Vec<&str> {
    config.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn tools() -> Config {
    Config { tools: ["search", "admin.drop", "pay"].map(tool).to_vec(), ..Config::default() }
}

#[test]
fn tools_are_shown_by_iteration_label_and_role() {
    let text = "policies:
  - id: first-only-search
    match: { where: [ { path: $.session.iteration, eq: 0 } ] }
    model: { tools: { show: search } }
  - id: tainted-runs-pay-nothing
    match: { where: [ { path: '$.session.labels[*]', eq: untrusted } ] }
    model: { tools: { hide: pay } }
  - id: admins-only
    match: { where: [ { not: { path: '$.context.roles[*]', eq: admin } } ] }
    model: { tools: { hide: 'admin*' } }";
    let (mut session, configs) = configured(rules(text), tools());
    assert_eq!((shown(&configs[0]), shown(&configs[1])), (vec!["search"], vec!["search", "pay"]));
    session.state_mut().add_label("untrusted");
    assert_eq!(shown(&two_turns(&mut session, tools())[1]), ["search"]);
}

#[test]
fn a_policy_of_the_beginning_acts_once_and_one_of_each_call_each_time() {
    let text = "policies:
  - { id: hello, model: { on: init, system_prompts: { append: Once. } } }
  - { id: turn, model: { system_prompts: { append: 'Turn {{ session.iteration }}.' } } }";
    let (_, configs) = configured(rules(text), Config::default());
    assert_eq!(configs[0].system_prompts, ["Once.", "Turn 0."]);
    assert_eq!(configs[1].system_prompts, ["Once.", "Turn 1."]);
}

#[test]
fn what_can_never_be_called_is_not_shown() {
    let denied = "policies:
  - { id: never, match: pay, deny: {} }
  - { id: maybe, match: { tool: search, where: [ { path: $.input.q, eq: x } ] }, deny: {} }
  - { id: trial, mode: shadow, match: 'admin*', deny: {} }";
    assert_eq!(shown(&one(denied, tools())), ["search", "admin.drop"]);
    let listed = "defaults: { unmatched: deny }\npolicies:
  - { id: yes, match: search, allow: {} }
  - { id: asked, match: pay, approval: {} }";
    assert_eq!(shown(&one(listed, tools())), ["search", "pay"]);
}

#[test]
fn a_condition_that_can_not_be_decided_restricts() {
    let text = "policies:
  - id: p
    match: { where: [ { path: $.context.tenant, gt: 5 } ] }
    model: { tools: { hide: pay }, temperature: { max: 0.1 } }";
    let config = one(text, Config { temperature: Some(1.0), ..tools() });
    assert_eq!((shown(&config), config.temperature), (vec!["search", "admin.drop"], Some(0.1)));
}

#[test]
fn the_bundle_has_the_last_word_over_lower_layers() {
    let bundle = "policies: [ { id: cool, model: { temperature: { max: 0.5 }, tools: { hide: pay } } } ]";
    let lower = load_text(
        "policies: [ { id: hot, model: { temperature: { set: 1.5 }, system_prompts: { append: Prompt. } } } ]",
    );
    let mut session = rules(bundle).build().session().with_layer(lower.unwrap());
    let config = two_turns(&mut session, tools()).remove(0);
    assert_eq!((config.temperature, shown(&config)), (Some(0.5), vec!["search", "admin.drop"]));
    assert_eq!(config.system_prompts, ["Prompt."]);
}

/// Raises the temperature with each call of the model, and adds a prompt when the run begins.
struct Dynamic;

impl Middleware for Dynamic {
    fn id(&self) -> &str {
        "dynamic"
    }
    fn on_config(&self, run: &RunContext, config: &Config) -> Option<ConfigPatch> {
        match run.phase {
            Phase::Init => {
                let mut prompts = config.system_prompts.clone();
                prompts.push("You are a helpful assistant.".into());
                Some(ConfigPatch { system_prompts: Some(prompts), ..ConfigPatch::default() })
            }
            Phase::BeforeModel if run.iteration > 0 => {
                let temperature = (config.temperature.unwrap_or(0.7) + 0.1).min(1.0);
                Some(ConfigPatch { temperature: Some(temperature), ..ConfigPatch::default() })
            }
            _ => None,
        }
    }
}

#[test]
fn hooks_change_parts_of_the_configuration_in_order_and_policies_bound_what_they_leave() {
    let config = || Config { temperature: Some(0.5), max_tokens: Some(10), ..Config::default() };
    let (_, configs) = configured(rules("policies: []").middleware(Dynamic).middleware(Dynamic), config());
    assert_eq!(configs[0].system_prompts.len(), 2);
    assert_eq!((configs[0].temperature, configs[1].temperature), (Some(0.5), Some(0.7)));
    assert_eq!(configs[1].max_tokens, Some(10));
    let cool = "policies: [ { id: cool, model: { temperature: { max: 0.4 } } } ]";
    let (_, configs) = configured(rules(cool).middleware(Dynamic), config());
    assert_eq!(configs[1].temperature, Some(0.4));
}

/// What a patch has takes the place of what was there as a whole; what it does not have stays.
#[test]
fn each_part_of_the_configuration_can_be_changed_by_itself() {
    struct Patching(ConfigPatch);
    impl Middleware for Patching {
        fn id(&self) -> &str {
            "patching"
        }
        fn on_config(&self, run: &RunContext, _: &Config) -> Option<ConfigPatch> {
            (run.phase == Phase::BeforeModel).then(|| self.0.clone())
        }
    }
    let some = |name: &str| Some(members(json!({ (name): 1 })));
    let before = Config {
        messages: super::user("hello"),
        system_prompts: vec!["Help.".into()],
        tools: vec![tool("look")],
        temperature: Some(0.1),
        top_p: Some(0.2),
        max_tokens: Some(3),
        metadata: members(json!({ "a": 1 })),
        provider_options: members(json!({ "b": 1 })),
    };
    let none = ConfigPatch::default;
    for patch in [
        none(),
        ConfigPatch { messages: Some(super::user("shorter")), ..none() },
        ConfigPatch { system_prompts: Some(vec![]), ..none() },
        ConfigPatch { tools: Some(vec![tool("pay")]), ..none() },
        ConfigPatch { temperature: Some(0.5), top_p: Some(0.6), max_tokens: Some(7), ..none() },
        ConfigPatch { metadata: some("c"), ..none() },
        ConfigPatch { provider_options: some("d"), ..none() },
    ] {
        let after = Config {
            messages: patch.messages.clone().unwrap_or_else(|| before.messages.clone()),
            system_prompts: patch.system_prompts.clone().unwrap_or_else(|| before.system_prompts.clone()),
            tools: patch.tools.clone().unwrap_or_else(|| before.tools.clone()),
            temperature: patch.temperature.or(before.temperature),
            top_p: patch.top_p.or(before.top_p),
            max_tokens: patch.max_tokens.or(before.max_tokens),
            metadata: patch.metadata.clone().unwrap_or_else(|| before.metadata.clone()),
            provider_options: patch
                .provider_options
                .clone()
                .unwrap_or_else(|| before.provider_options.clone()),
        };
        let engine = rules("policies: []").middleware(Patching(patch));
        assert_eq!(configured(engine, before.clone()).1, [after.clone(), after]);
    }
}
