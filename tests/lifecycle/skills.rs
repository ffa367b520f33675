//! Skills that a model loads on its way.

use callgate::Session;
use callgate::json::json;
use callgate::lifecycle::{Config, Ending};

use super::tool;
use crate::workshop::{Tool, call, noon, rules};

const RULES: &str = "policies:
  - { id: cap, budget: { iterations: 5 } }
  - { id: hello, model: { on: init, system_prompts: { append: Policy. } } }";

/// A turn that loads a skill; whether it was free.
async fn loads(session: &mut Session, tools: &Tool, skill: &str, beside: &[&str]) -> Result<bool, Ending> {
    session.before_model(Config::default()).await?;
    let mut calls = vec![call("load_skill", json!({ "skill": skill }))];
    calls.extend(beside.iter().map(|tool| call(tool, json!({}))));
    let outcomes = session.execute_round(calls, tools).await;
    let resolved = Config { tools: vec![tool(skill)], ..Config::default() };
    let amended = session.apply_skill_loads(&outcomes, |_| async { Ok(resolved) }).await.unwrap();
    let Some(amended) = amended else { return Err(Ending::Aborted { reason: "used up".into() }) };
    assert_eq!(amended.config.system_prompts, ["Policy."]);
    Ok(amended.refunded)
}

fn session() -> Session {
    let mut session =
        rules(RULES).tools([tool("load_skill")]).build().session().with_skill_tool("load_skill");
    session.begin(Config::default()).unwrap();
    session
}

#[test]
fn a_skill_brings_its_tools_and_the_turn_that_loaded_it_is_free() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let mut session = session();
    clock.drive(async {
        for skill in ["a", "b", "c", "d", "e"] {
            assert_eq!(loads(&mut session, &tools, skill, &[]).await, Ok(true));
        }
        assert_eq!(session.stats().iterations, 0);
    });
    assert!(session.tools().iter().any(|tool| tool.name == "e"));
}

#[test]
fn a_loop_can_not_be_free_for_ever() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let mut session = session();
    clock.drive(async {
        assert_eq!(loads(&mut session, &tools, "a", &[]).await, Ok(true));
        // The same one again, and one beside other work, cost a turn.
        assert_eq!(loads(&mut session, &tools, "a", &[]).await, Ok(false));
        assert_eq!(loads(&mut session, &tools, "b", &["look"]).await, Ok(false));
        let mut free = 0;
        for n in 0..20 {
            match loads(&mut session, &tools, &format!("s{n}"), &[]).await {
                Ok(refunded) => free += usize::from(refunded),
                Err(_) => break,
            }
        }
        // With the first one, eight.
        assert_eq!(free, 7);
    });
}

#[test]
fn where_nothing_was_loaded_or_the_prompt_can_not_be_resolved_nothing_changes() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let mut session = session();
    clock.drive(async {
        session.before_model(Config::default()).await.unwrap();
        let none = session.execute_round(vec![call("look", json!({}))], &tools).await;
        let unused = |_| async { Err("never asked".to_owned()) };
        assert_eq!(session.apply_skill_loads(&none, unused).await, Ok(None));
        let skill = call("load_skill", json!({ "skill": "x" }));
        let loaded = session.execute_round(vec![skill], &tools).await;
        let broken = |_| async { Err("no such skill".to_owned()) };
        assert_eq!(session.apply_skill_loads(&loaded, broken).await, Err("no such skill".to_owned()));
    });
    assert_eq!(session.stats().iterations, 1);
}

#[test]
fn a_skill_that_is_not_allowed_brings_nothing() {
    let clock = noon();
    let tools = Tool::counting(&clock);
    let denied = "policies: [ { id: no, match: load_skill, deny: {} } ]";
    let mut session = rules(denied).build().session().with_skill_tool("load_skill");
    let outcomes = clock.drive(session.execute_round(vec![call("load_skill", json!({}))], &tools));
    let unused = |_| async { Ok(Config::default()) };
    assert_eq!(clock.drive(session.apply_skill_loads(&outcomes, unused)), Ok(None));
}
