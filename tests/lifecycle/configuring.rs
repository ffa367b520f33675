//! The configuration of model calls: hooks change it in order, then policies apply, the bundle's own last.

use callgate::engine::load_text;
use callgate::json::{Value, json};
use callgate::lifecycle::{Middleware, ModelConfig, ModelConfigPatch, RunContext, RunPhase};
use callgate::{EngineBuilder, Session, ToolCall};

use super::tool;
use crate::fixtures::{Tool, kind_and_code, noon, rules};

/// The configurations of the first and the second model call.
fn configured(engine: EngineBuilder, config: ModelConfig) -> (Session, Vec<ModelConfig>) {
    let mut session = engine.build().session().with_context(json!({ "tenant": "acme", "roles": ["clerk"] }));
    let configs = two_turns(&mut session, config);
    (session, configs)
}

fn two_turns(session: &mut Session, config: ModelConfig) -> Vec<ModelConfig> {
    noon().block_on(async {
        let base = session.begin(config).unwrap();
        let first = session.before_model(base.clone()).await.unwrap();
        vec![first, session.before_model(base).await.unwrap()]
    })
}

fn one(rules_text: &str, config: ModelConfig) -> ModelConfig {
    configured(rules(rules_text), config).1.remove(0)
}

fn prompts(change: &str) -> Vec<String> {
    let text = format!("policies: [ {{ id: p, model: {{ system_prompts: {{ {change} }} }} }} ]");
    one(&text, ModelConfig { system_prompts: vec!["Be kind.".into()], ..ModelConfig::default() })
        .system_prompts
}

#[test]
fn prompts_are_appended_and_replaced() {
    assert_eq!(prompts("append: 'You serve {{ context.tenant }}.'"), ["Be kind.", "You serve acme."]);
    assert_eq!(prompts("prepend: [ First., Second. ]"), ["First.", "Second.", "Be kind."]);
    assert_eq!(prompts("append: After., prepend: Before."), ["Before.", "Be kind.", "After."]);
    assert_eq!(prompts("replace: Be short."), ["Be short."]);
}

#[test]
fn sampling_is_bounded_and_set() {
    let config = |text: &str, config| one(&format!("policies: [ {{ id: p, model: {{ {text} }} }} ]"), config);
    let hot = ModelConfig {
        temperature: Some(1.2),
        top_p: Some(0.1),
        max_tokens: Some(9000),
        ..ModelConfig::default()
    };
    let bounded = config("temperature: { max: 0.7 }, top_p: { min: 0.5 }, max_tokens: { max: 4000 }", hot);
    assert_eq!((bounded.temperature, bounded.top_p, bounded.max_tokens), (Some(0.7), Some(0.5), Some(4000)));
    let unset = config("temperature: { max: 0.7 }, max_tokens: { set: 50 }", ModelConfig::default());
    assert_eq!((unset.temperature, unset.max_tokens), (None, Some(50)));
    let text = "metadata: { team: red }, provider_options: { seed: 1 }";
    let added = config(text, ModelConfig { metadata: members(json!({ "a": 1 })), ..ModelConfig::default() });
    assert_eq!(added.metadata, members(json!({ "a": 1, "team": "red" })));
    assert_eq!(added.provider_options, members(json!({ "seed": 1 })));
}

fn members(value: Value) -> callgate::json::Map {
    value.as_object().unwrap().clone()
}

fn offered_names(config: &ModelConfig) -> Vec<&str> {
    config.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn tools() -> ModelConfig {
    ModelConfig { tools: ["search", "admin.drop", "pay"].map(tool).to_vec(), ..ModelConfig::default() }
}

#[test]
fn tools_are_offered_by_iteration_label_and_role() {
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
    assert_eq!(
        (offered_names(&configs[0]), offered_names(&configs[1])),
        (vec!["search"], vec!["search", "pay"])
    );
    session.state_mut().add_label("untrusted");
    assert_eq!(offered_names(&two_turns(&mut session, tools())[1]), ["search"]);
}

#[test]
fn init_policy_applies_once_and_call_policy_each_time() {
    let text = "policies:
  - { id: hello, model: { on: init, system_prompts: { append: Once. } } }
  - { id: turn, model: { system_prompts: { append: 'Turn {{ session.iteration }}.' } } }";
    let (_, configs) = configured(rules(text), ModelConfig::default());
    assert_eq!(configs[0].system_prompts, ["Once.", "Turn 0."]);
    assert_eq!(configs[1].system_prompts, ["Once.", "Turn 1."]);
}

#[test]
fn tool_that_can_never_be_called_is_not_offered() {
    let denied = "policies:
  - { id: never, match: pay, deny: {} }
  - { id: maybe, match: { tool: search, where: [ { path: $.input.q, eq: x } ] }, deny: {} }
  - { id: trial, mode: shadow, match: 'admin*', deny: {} }";
    assert_eq!(offered_names(&one(denied, tools())), ["search", "admin.drop"]);
    let listed = "defaults: { unmatched: deny }\npolicies:
  - { id: yes, match: search, allow: {} }
  - { id: asked, match: pay, approval: {} }";
    assert_eq!(offered_names(&one(listed, tools())), ["search", "pay"]);
}

#[test]
fn undecided_condition_restricts() {
    let text = "policies:
  - id: p
    match: { where: [ { path: $.context.tenant, gt: 5 } ] }
    model: { tools: { hide: pay }, temperature: { max: 0.1 } }";
    let config = one(text, ModelConfig { temperature: Some(1.0), ..tools() });
    assert_eq!((offered_names(&config), config.temperature), (vec!["search", "admin.drop"], Some(0.1)));
}

#[test]
fn bundle_applies_after_lower_layers() {
    let bundle = "policies: [ { id: cool, model: { temperature: { max: 0.5 }, tools: { hide: pay } } } ]";
    let lower = load_text(
        "policies: [ { id: hot, model: { temperature: { set: 1.5 }, system_prompts: { append: Prompt. } } } ]",
    );
    let mut session = rules(bundle).build().session().with_layer(lower.unwrap());
    let config = two_turns(&mut session, tools()).remove(0);
    assert_eq!((config.temperature, offered_names(&config)), (Some(0.5), vec!["search", "admin.drop"]));
    assert_eq!(config.system_prompts, ["Prompt."]);
}

/// Raises the temperature with each model call, and adds a prompt when the run starts.
struct Dynamic;

impl Middleware for Dynamic {
    fn id(&self) -> &str {
        "dynamic"
    }
    fn on_config(&self, run: &RunContext, config: &ModelConfig) -> Option<ModelConfigPatch> {
        match run.phase {
            RunPhase::Init => {
                let mut prompts = config.system_prompts.clone();
                prompts.push("You are a helpful assistant.".into());
                Some(ModelConfigPatch { system_prompts: Some(prompts), ..ModelConfigPatch::default() })
            }
            RunPhase::BeforeModel if run.iteration > 0 => {
                let temperature = (config.temperature.unwrap_or(0.7) + 0.1).min(1.0);
                Some(ModelConfigPatch { temperature: Some(temperature), ..ModelConfigPatch::default() })
            }
            _ => None,
        }
    }
}

#[test]
fn hooks_change_the_configuration_in_order_and_policies_bound_it() {
    let config = || ModelConfig { temperature: Some(0.5), max_tokens: Some(10), ..ModelConfig::default() };
    let (_, configs) = configured(rules("policies: []").middleware(Dynamic).middleware(Dynamic), config());
    assert_eq!(configs[0].system_prompts.len(), 2);
    assert_eq!((configs[0].temperature, configs[1].temperature), (Some(0.5), Some(0.7)));
    assert_eq!(configs[1].max_tokens, Some(10));
    let cool = "policies: [ { id: cool, model: { temperature: { max: 0.4 } } } ]";
    let (_, configs) = configured(rules(cool).middleware(Dynamic), config());
    assert_eq!(configs[1].temperature, Some(0.4));
}

/// A field of a patch replaces the whole field; a missing field changes nothing.
#[test]
fn each_field_of_the_configuration_can_be_changed_separately() {
    struct Patching(ModelConfigPatch);
    impl Middleware for Patching {
        fn id(&self) -> &str {
            "patching"
        }
        fn on_config(&self, run: &RunContext, _: &ModelConfig) -> Option<ModelConfigPatch> {
            (run.phase == RunPhase::BeforeModel).then(|| self.0.clone())
        }
    }
    let some = |name: &str| Some(members(json!({ (name): 1 })));
    let before = ModelConfig {
        messages: super::user("hello"),
        system_prompts: vec!["Help.".into()],
        tools: vec![tool("look")],
        temperature: Some(0.1),
        top_p: Some(0.2),
        max_tokens: Some(3),
        metadata: members(json!({ "a": 1 })),
        provider_options: members(json!({ "b": 1 })),
    };
    let none = ModelConfigPatch::default;
    for patch in [
        none(),
        ModelConfigPatch { messages: Some(super::user("shorter")), ..none() },
        ModelConfigPatch { system_prompts: Some(vec![]), ..none() },
        ModelConfigPatch { tools: Some(vec![tool("pay")]), ..none() },
        ModelConfigPatch { temperature: Some(0.5), top_p: Some(0.6), max_tokens: Some(7), ..none() },
        ModelConfigPatch { metadata: some("c"), ..none() },
        ModelConfigPatch { provider_options: some("d"), ..none() },
    ] {
        let after = ModelConfig {
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

/// A hook that removes a tool from the configuration, at the start or before each model call.
struct Without(&'static str, RunPhase);

impl Middleware for Without {
    fn id(&self) -> &str {
        "without"
    }
    fn on_config(&self, run: &RunContext, config: &ModelConfig) -> Option<ModelConfigPatch> {
        let rest = config.tools.iter().filter(|tool| tool.name != self.0).cloned().collect();
        (run.phase == self.1).then(|| ModelConfigPatch { tools: Some(rest), ..ModelConfigPatch::default() })
    }
}

/// How calls of these tools end in this session.
fn codes(session: &mut Session, calls: &[ToolCall]) -> Vec<String> {
    let tool = Tool::counting(&noon());
    calls.iter().map(|call| noon().block_on(session.execute(call.clone(), &tool)).reason.code).collect()
}

fn calls_of(tools: &[&str]) -> Vec<ToolCall> {
    tools.iter().map(|tool| ToolCall::new("", *tool, json!({}))).collect()
}

#[test]
fn call_of_a_tool_that_was_not_offered_is_denied() {
    let hiding = "policies: [ { id: p, model: { tools: { hide: pay } } } ]";
    let none = "policies: []";
    for engine in [
        rules(hiding),
        rules(none).middleware(Without("pay", RunPhase::Init)),
        rules(none).middleware(Without("pay", RunPhase::BeforeModel)),
    ] {
        let (mut session, _) = configured(engine, tools());
        let codes = codes(&mut session, &calls_of(&["search", "pay", "admin.drop", "unheard-of"]));
        assert_eq!(codes, ["unmatched", "not_offered", "unmatched", "not_offered"]);
    }
}

#[test]
fn offer_is_that_of_the_last_model_call() {
    let text = "policies:
  - id: first-only-search
    match: { where: [ { path: $.session.iteration, eq: 0 } ] }
    model: { tools: { show: search } }";
    let mut session = rules(text).build().session();
    // Before any model call the offer is unknown.
    let config = session.begin(tools()).unwrap();
    assert_eq!(codes(&mut session, &calls_of(&["pay"])), ["unmatched"]);
    noon().block_on(session.before_model(config.clone())).unwrap();
    assert_eq!(codes(&mut session, &calls_of(&["pay", "search"])), ["not_offered", "unmatched"]);
    noon().block_on(session.before_model(config)).unwrap();
    assert_eq!(codes(&mut session, &calls_of(&["pay"])), ["unmatched"]);
    // A host that keeps its tools out of the configuration offers any tool, until a hook adds or removes one.
    let (mut session, _) = configured(rules("policies: []"), ModelConfig::default());
    assert_eq!(codes(&mut session, &calls_of(&["pay"])), ["unmatched"]);
    // An empty list is an offer as well.
    let (mut session, _) =
        configured(rules("policies: [ { id: p, model: { tools: { hide: '*' } } } ]"), tools());
    assert_eq!(codes(&mut session, &calls_of(&["search"])), ["not_offered"]);
}

#[test]
fn tool_of_one_server_is_offered_for_that_server_only() {
    let on =
        |name: &str, server: &str| callgate::ToolDescriptor { server: Some(server.into()), ..tool(name) };
    let given = ModelConfig {
        tools: vec![on("pay", "bank"), on("pay", "shop"), tool("look")],
        ..ModelConfig::default()
    };
    let text = "policies: [ { id: p, match: { server: shop, tool: pay }, deny: {} } ]";
    let (mut session, _) = configured(rules(text), given);
    let call = |tool: &str| ToolCall::new("", tool, json!({}));
    let calls = [
        call("pay").with_server("bank"),
        call("pay").with_server("shop"),
        call("pay").with_server("other"),
        call("pay"),
        call("look").with_server("bank"),
    ];
    assert_eq!(
        codes(&mut session, &calls),
        ["unmatched", "denied", "not_offered", "not_offered", "unmatched"]
    );
}

#[test]
fn stricter_outcomes_than_not_offered_win() {
    let text = "policies:
  - { id: hide, model: { tools: { hide: pay } } }
  - { id: stop, match: pay, halt: {} }";
    let (mut session, _) = configured(rules(text), tools());
    let tool = Tool::counting(&noon());
    let outcome = noon().block_on(session.execute(ToolCall::new("", "pay", json!({})), &tool));
    assert_eq!(kind_and_code(&outcome), ("halted", "halted"));
}

#[test]
fn sdk_is_offered_what_hooks_and_policies_leave_and_can_call_no_other() {
    let clock = noon();
    let hiding = "policies: [ { id: p, model: { tools: { hide: 'admin*' } } } ]";
    let engine = rules(hiding).clock(clock.clone()).tools(tools().tools);
    let session = engine.middleware(Without("pay", RunPhase::Init)).build().session();
    let armed = session.into_sdk_session(Tool::counting(&clock));
    let names: Vec<String> = clock.block_on(armed.tools()).into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["search"]);
    for (tool, code) in [("search", "unmatched"), ("pay", "not_offered"), ("admin.drop", "not_offered")] {
        assert_eq!(clock.block_on(armed.call("", tool, json!({}))).outcome.reason.code, code, "{tool}");
    }
}
