//! Skills that a model loads during a run.

use callgate::Session;
use callgate::json::json;
use callgate::lifecycle::{ModelConfig, RunEnd};

use super::tool;
use crate::fixtures::{Tool, call, noon, rules};

const RULES: &str = "policies:
  - { id: cap, budget: { iterations: 5 } }
  - { id: hello, model: { on: init, system_prompts: { append: Policy. } } }";

/// A turn that loads a skill. Returns whether it was refunded.
async fn loads(session: &mut Session, tools: &Tool, skill: &str, beside: &[&str]) -> Result<bool, RunEnd> {
    session.before_model(ModelConfig::default()).await?;
    let mut calls = vec![call("load_skill", json!({ "skill": skill }))];
    calls.extend(beside.iter().map(|tool| call(tool, json!({}))));
    let outcomes = session.execute_round(calls, tools).await;
    let resolved = ModelConfig { tools: vec![tool(skill)], ..ModelConfig::default() };
    let amended = session.apply_skill_loads(&outcomes, |_| async { Ok(resolved) }).await.unwrap();
    let Some(amended) = amended else { return Err(RunEnd::Aborted { reason: "used up".into() }) };
    assert_eq!(amended.config.system_prompts, ["Policy."]);
    Ok(amended.refunded)
}

fn session() -> Session {
    let mut session =
        rules(RULES).tools([tool("load_skill")]).build().session().with_skill_tool("load_skill");
    session.begin(ModelConfig::default()).unwrap();
    session
}

#[test]
fn skill_adds_its_tools_and_its_turn_is_refunded() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let mut session = session();
    clock.block_on(async {
        for skill in ["a", "b", "c", "d", "e"] {
            assert_eq!(loads(&mut session, &tools, skill, &[]).await, Ok(true));
        }
        assert_eq!(session.stats().iterations, 0);
    });
    assert!(session.tools().iter().any(|tool| tool.name == "e"));
}

#[test]
fn refunds_are_bounded() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let mut session = session();
    clock.block_on(async {
        assert_eq!(loads(&mut session, &tools, "a", &[]).await, Ok(true));
        // Loading the same skill again, or beside other work, costs a turn.
        assert_eq!(loads(&mut session, &tools, "a", &[]).await, Ok(false));
        assert_eq!(loads(&mut session, &tools, "b", &["look"]).await, Ok(false));
        let mut free = 0;
        for n in 0..20 {
            match loads(&mut session, &tools, &format!("s{n}"), &[]).await {
                Ok(refunded) => free += usize::from(refunded),
                Err(_) => break,
            }
        }
        // Eight with the first one.
        assert_eq!(free, 7);
    });
}

#[test]
fn nothing_changes_if_no_skill_loads_or_its_prompt_cannot_be_resolved() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let mut session = session();
    clock.block_on(async {
        session.before_model(ModelConfig::default()).await.unwrap();
        let none = session.execute_round(vec![call("look", json!({}))], &tools).await;
        let unused = |_| async { Err("never asked".into()) };
        assert_eq!(session.apply_skill_loads(&none, unused).await, Ok(None));
        let skill = call("load_skill", json!({ "skill": "x" }));
        let loaded = session.execute_round(vec![skill], &tools).await;
        let broken = |_| async { Err("no such skill".into()) };
        assert_eq!(session.apply_skill_loads(&loaded, broken).await, Err("no such skill".into()));
    });
    assert_eq!(session.stats().iterations, 1);
}

#[test]
fn denied_skill_adds_nothing() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let denied = "policies: [ { id: no, match: load_skill, deny: {} } ]";
    let mut session = rules(denied).build().session().with_skill_tool("load_skill");
    let outcomes = clock.block_on(session.execute_round(vec![call("load_skill", json!({}))], &tools));
    let unused = |_| async { Ok(ModelConfig::default()) };
    assert_eq!(clock.block_on(session.apply_skill_loads(&outcomes, unused)), Ok(None));
}
