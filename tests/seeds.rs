//! The examples of the designs that Callgate implements, as hosts and authors of rules would write them; and the table of their documented
//! behaviours.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use callgate::host::{
    BoxFuture, CacheEntry, CacheLookup, CacheSpace, CacheStore, ConditionalWrite, LimitAcquisition,
    LimitCorrection, LimitRefusal, LimitStore, Record, RecordKey, RecordPage, RecordStore, StateStore,
    StoreFuture,
};
use callgate::json::{Value, json};
use callgate::lifecycle::{
    BeforeAction, Chunk, ChunkAction, ErrorAction, HookError, Middleware, ModelConfig, ModelConfigPatch,
    RunContext, RunEnd, RunPhase, RunStats, ToolHooks, Usage,
};
use callgate::message::{Dialect, History, Message, Part, PartContent, Role, approval_response};
use callgate::state::MemoryStore;
use callgate::{Session, ToolError};
use jiff::Timestamp;

use crate::fixtures::{Tool, call, keys, kind_and_code, noon, rules};
use crate::recorded_calls::project;

#[path = "../examples/agent_loop.rs"]
mod agent_loop;
mod crux;
mod loops;

const NONE: &str = "policies: []";

type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, line: impl Into<String>) {
    log.lock().unwrap().push(line.into());
}

#[test]
fn agent_loop_example_runs() {
    agent_loop::main().unwrap();
}

#[test]
fn crux_audits_tools() {
    let clock = noon();
    let log = Log::default();
    let (start, end, error) = (Arc::clone(&log), Arc::clone(&log), Arc::clone(&log));
    let audit = ToolHooks::new("audit-tools")
        .with_filter(|call| call.tool == "sendEmail" || call.tool.starts_with("admin"))
        .before(move |call| {
            note(&start, format!("start {}", call.tool));
            BeforeAction::Continue
        })
        .after(move |ended| note(&end, format!("end {} {}", ended.outcome.tool, ended.is_ok())))
        .on_error(move |call, failed| {
            note(&error, format!("error {} {}", call.tool, failed.message));
            ErrorAction::Keep
        });
    let script = [(Duration::ZERO, Ok(json!(1))), (Duration::ZERO, Err(ToolError::new("boom")))];
    let tool = Tool::scripted(&clock, script);
    let mut session = rules(NONE).middleware(audit).build().session();
    for name in ["sendEmail", "adminReset", "look"] {
        clock.block_on(session.execute(call(name, json!({})), &tool));
    }
    let expected = [
        "start sendEmail",
        "end sendEmail true",
        "start adminReset",
        "error adminReset boom",
        "end adminReset false",
    ];
    assert_eq!(*log.lock().unwrap(), expected);
}

#[test]
fn crux_looks_up_a_cache_around_a_tool() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let cache: Arc<Mutex<Option<Value>>> = Arc::default();
    let lookup = ToolHooks::new("cache-lookup").for_tools(["lookupCustomer"]).around(move |_, mut next| {
        let cache = Arc::clone(&cache);
        Box::pin(async move {
            if let Some(cached) = cache.lock().unwrap().clone() {
                return Ok(cached);
            }
            let output = next.call().await?;
            *cache.lock().unwrap() = Some(output.clone());
            Ok(output)
        })
    });
    let mut session = rules(NONE).middleware(lookup).build().session();
    for kind in ["executed", "answered"] {
        let outcome = clock.block_on(session.execute(call("lookupCustomer", json!({ "id": 7 })), &tool));
        assert_eq!((outcome.outcome.name(), outcome.output), (kind, Some(json!(1))));
    }
    assert_eq!(tool.count(), 1);
}

#[test]
fn crux_trims_subjects_before_they_reach_the_tool() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let trim = ToolHooks::new("trim-subjects").for_tools(["sendEmail"]).around(|call, mut next| {
        let mut input = call.input.clone();
        if let Some(subject) = call.input.get("subject").and_then(Value::as_str) {
            input["subject"] = subject.trim().into();
        }
        Box::pin(async move { next.call_with_input(input).await })
    });
    let mut session = rules(NONE).middleware(trim).build().session();
    clock.block_on(session.execute(call("sendEmail", json!({ "subject": " hi " })), &tool));
    let rule = "policies: [ { id: trim, match: sendEmail, transform: { input: [ { path: $.input.subject, trim: true } ] } } ]";
    let mut session = rules(rule).build().session();
    clock.block_on(session.execute(call("sendEmail", json!({ "subject": " hi " })), &tool));
    assert_eq!(tool.inputs(), [json!({ "subject": "hi" }), json!({ "subject": "hi" })]);
}

#[test]
fn novu_requires_approval_of_a_refund_and_resumes_from_the_history_alone() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let text = "policies: [ { id: ask, match: refund, approval: { message: 'Refund {{ input.amount }} for {{ input.order }}?' } } ]";
    let session = || rules(text).keys(keys()).clock(clock.clone()).build().session().with_name("talk");
    let mut history = History::new(vec![
        Message::new(Role::User, vec![Part::text("refund $250 for A1")]),
        Message::new(
            Role::Assistant,
            vec![Part::call("c1", "refund", json!({ "amount": 250, "order": "A1" }))],
        ),
    ]);
    let round = clock.block_on(session().run_round(&mut history, &tool)).unwrap();
    assert_eq!(round.pending().next().unwrap().message.as_deref(), Some("Refund 250 for A1?"));
    // The client stores the history in the AI SDK's form; parts that it appends after the response do no harm.
    let mut history = History::read(Dialect::AiSdk, &history.write(Dialect::AiSdk)).unwrap();
    let id = history.find_approval_requests()[0].approval_id.clone();
    assert_eq!(id, "approval_c1");
    history.append_approval_response(approval_response(id, true)).unwrap();
    history.push(Message::new(Role::User, vec![Part::text("thanks")]));
    let round = clock.block_on(session().resume(&mut history, &tool)).unwrap();
    assert_eq!((round.outcomes[0].outcome.name(), tool.count()), ("executed", 1));
    let sent = history.for_provider(Dialect::Anthropic);
    assert!(sent.calls_without_result().is_empty());
}

/// A run with one turn of these chunks.
fn one_turn(session: &mut Session, chunks: &[Chunk]) -> Result<Vec<Chunk>, RunEnd> {
    noon().block_on(async {
        let base = session.begin(ModelConfig::default())?;
        session.before_model(base).await?;
        let mut passed = Vec::new();
        for chunk in chunks {
            passed.extend(session.chunk(chunk.clone())?);
        }
        Ok(passed)
    })
}

struct Tanstack {
    log: Log,
}

impl Middleware for Tanstack {
    fn id(&self) -> &str {
        "tanstack"
    }
    fn on_config(&self, run: &RunContext, config: &ModelConfig) -> Option<ModelConfigPatch> {
        // Per-iteration tool swapping: only search at first.
        let only_search = config.tools.iter().filter(|tool| tool.name == "search").cloned().collect();
        (run.phase == RunPhase::BeforeModel && run.iteration == 0)
            .then(|| ModelConfigPatch { tools: Some(only_search), ..ModelConfigPatch::default() })
    }
    fn on_chunk(&self, _: &RunContext, chunk: &Chunk) -> ChunkAction {
        // Content filtering.
        match chunk {
            Chunk::Text { delta, .. } if delta.contains("damn") => ChunkAction::discard(),
            _ => ChunkAction::Pass,
        }
    }
    fn on_usage(&self, run: &RunContext, usage: &Usage) {
        note(&self.log, format!("Iteration {}: {} tokens", run.iteration, usage.tokens()));
    }
    fn on_end(&self, run: &RunContext, ending: &RunEnd, stats: &RunStats) -> Result<(), HookError> {
        // Analytics and alerts, which no one waits for.
        let line = match ending {
            RunEnd::Finished { content, .. } => {
                format!("Finished: {content}, {} tokens", stats.usage.tokens())
            }
            RunEnd::Aborted { reason } => format!("Aborted: {reason}"),
            RunEnd::Failed { error } => format!("Alert: {error}"),
        };
        let log = Arc::clone(&self.log);
        run.defer(Box::pin(async move {
            note(&log, line);
            Ok(())
        }));
        Ok(())
    }
}

#[test]
fn tanstack_swaps_tools_filters_content_tracks_usage_and_reports_the_end() {
    let log = Log::default();
    let tool = |name: &str| callgate::json::from_value(json!({ "name": name })).unwrap();
    let mut session = rules(NONE).middleware(Tanstack { log: Arc::clone(&log) }).build().session();
    noon().block_on(async {
        let tools = vec![tool("search"), tool("pay")];
        let base = session.begin(ModelConfig { tools, ..ModelConfig::default() }).unwrap();
        assert_eq!(session.before_model(base.clone()).await.unwrap().tools.len(), 1);
        assert_eq!(session.before_model(base).await.unwrap().tools.len(), 2);
    });
    let usage = Some(Usage { prompt_tokens: 7, completion_tokens: 3, ..Usage::default() });
    let chunks =
        [Chunk::text("t", "well "), Chunk::text("t", "damn"), Chunk::Finished { reason: None, usage }];
    assert_eq!(one_turn(&mut session, &chunks).unwrap().len(), 2);
    for (ending, told) in [
        (RunEnd::Finished { reason: None, content: "well".into() }, "Finished: well, 10 tokens"),
        (RunEnd::Aborted { reason: "enough".into() }, "Aborted: enough"),
        (RunEnd::Failed { error: "no network".into() }, "Alert: no network"),
    ] {
        noon().block_on(async { assert!(session.end(&ending).await.finish().await.is_empty()) });
        assert_eq!(log.lock().unwrap().last().unwrap(), told);
        session.begin(ModelConfig::default()).unwrap();
    }
    assert!(log.lock().unwrap().contains(&"Iteration 0: 10 tokens".to_owned()));
}

#[test]
fn tanstack_guards_limits_and_skips_calls() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let count = AtomicU32::new(0);
    let limit =
        ToolHooks::new("rate-limit").before(move |_| match count.fetch_add(1, Ordering::SeqCst) >= 3 {
            true => BeforeAction::Halt("Rate limit: exceeded 3 tool calls".into()),
            false => BeforeAction::Continue,
        });
    let guard = ToolHooks::new("guard").before(|call| match call.tool.as_str() {
        "deleteDatabase" => BeforeAction::Block("Dangerous operation blocked".into()),
        "known" => BeforeAction::Skip(json!("kept")),
        "search" if call.input.get("limit").is_none() => BeforeAction::Edit(json!({ "limit": 10 })),
        _ => BeforeAction::Continue,
    });
    let mut session = rules(NONE).middleware(limit).middleware(guard).build().session();
    let kinds: Vec<_> = ["search", "deleteDatabase", "known", "search", "known"]
        .iter()
        .map(|name| clock.block_on(session.execute(call(name, json!({})), &tool)).outcome.name())
        .collect();
    assert_eq!(kinds, ["executed", "denied", "answered", "halted", "halted"]);
    assert_eq!(tool.inputs(), [json!({ "limit": 10 })]);
}

#[test]
fn edit_by_a_hook_hides_a_call_from_no_later_guard() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let edit = ToolHooks::new("edit").before(|_| BeforeAction::Edit(json!({ "q": "drop table" })));
    let guard = ToolHooks::new("guard").before(|call| match call.input.to_string().contains("drop") {
        true => BeforeAction::Block("no".into()),
        false => BeforeAction::Continue,
    });
    let mut session = rules(NONE).middleware(edit).middleware(guard).build().session();
    let outcome = clock.block_on(session.execute(call("sql", json!({ "q": "select" })), &tool));
    assert_eq!((kind_and_code(&outcome), tool.count()), (("denied", "blocked"), 0));
}

#[test]
fn toolbox_tells_the_model_how_to_correct_its_call() {
    let clock = noon();
    let fails = || Tool::scripted(&clock, [(Duration::ZERO, Err(ToolError::new("invalid city `Zurch`")))]);
    let recover = ToolHooks::new("recover").on_error(|_, error| match error.message.contains("invalid") {
        true => ErrorAction::Recover(json!(format!(
            "Error: {}. Did you mean 'Zurich'? Please retry.",
            error.message
        ))),
        false => ErrorAction::Keep,
    });
    let rule = "policies: [ { id: r, match: weather, recover: { on: ['/invalid/'], message: 'Error: {{ error }}. Please retry.' } } ]";
    for engine in [rules(NONE).middleware(recover), rules(rule)] {
        let mut session = engine.build().session();
        let outcome = clock.block_on(session.execute(call("weather", json!({ "city": "Zurch" })), &fails()));
        assert_eq!(outcome.outcome.name(), "recovered");
        assert!(outcome.output.unwrap().as_str().unwrap().ends_with("Please retry."));
    }
}

#[test]
fn alloy_edits_keep_id_and_name() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let edit = ToolHooks::new("edit").before(|_| BeforeAction::Edit(json!({ "limit": 1 })));
    let mut history = History::new(vec![
        Message::new(Role::User, vec![Part::text("look")]),
        Message::new(Role::Assistant, vec![Part::call("c1", "look", json!({}))]),
    ]);
    let mut session = rules(NONE).middleware(edit).build().session();
    let round = clock.block_on(session.run_round(&mut history, &tool)).unwrap();
    assert_eq!((round.outcomes[0].id.as_str(), round.outcomes[0].tool.as_str()), ("c1", "look"));
    let ran = &tool.calls()[0];
    assert_eq!((ran.id.as_str(), ran.tool.as_str(), &ran.input), ("c1", "look", &json!({ "limit": 1 })));
    let results = history.messages().iter().flat_map(Message::parts);
    assert_eq!(results.filter(|part| matches!(part.content(), PartContent::Result(_))).count(), 1);
}

#[test]
fn without_rules_and_hooks_a_call_reaches_its_tool_unchanged() {
    let clock = noon();
    let tool = Tool::counting(&clock);
    let mut session = rules(NONE).build().session();
    let outcome = clock.block_on(session.execute(call("look", json!({ "q": 1 })), &tool));
    assert_eq!((outcome.output, tool.inputs()), (Some(json!(1)), vec![json!({ "q": 1 })]));
}

#[test]
fn each_row_of_the_table_names_an_existing_test() {
    let page = std::fs::read_to_string(project("docs/seeds.md")).unwrap();
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| behaviour")).collect();
    let rows: Vec<&str> = rows.into_iter().filter(|line| !line.starts_with("| ---")).collect();
    assert!(rows.len() > 200, "{} rows", rows.len());
    let named = regex::Regex::new(r"`([\w/]+\.(?:rs|yaml))(?:::(\w+))?`").unwrap();
    for row in rows {
        let tests = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(named.is_match(tests), "no test: {row}");
        for captures in named.captures_iter(tests) {
            let text = std::fs::read_to_string(project(&captures[1]));
            let text = text.unwrap_or_else(|_| panic!("there is no {}: {row}", &captures[1]));
            if let Some(name) = captures.get(2) {
                let test = regex::Regex::new(&format!(
                    r"#\[test\]\s+(?:#\[[^\n]*\n\s*)*(?:async )?fn {}\(",
                    name.as_str()
                ));
                assert!(test.unwrap().is_match(&text), "no test {}: {row}", name.as_str());
            }
        }
    }
}

/// A store of the host that manages its own capacity.
#[derive(Default)]
struct OwnStorage(MemoryStore);

impl LimitStore for OwnStorage {
    fn acquire<'a>(
        &'a self,
        now: Timestamp,
        takes: &'a [LimitAcquisition],
    ) -> StoreFuture<'a, Vec<LimitRefusal>> {
        self.0.acquire(now, takes)
    }

    fn correct<'a>(&'a self, now: Timestamp, corrections: &'a [LimitCorrection]) -> StoreFuture<'a, ()> {
        self.0.correct(now, corrections)
    }

    fn release(&self, key: &str) {
        self.0.release(key);
    }

    fn slot_released(&self) -> BoxFuture<'_, ()> {
        self.0.slot_released()
    }
}

impl CacheStore for OwnStorage {
    fn cache_get<'a>(
        &'a self,
        now: Timestamp,
        space: CacheSpace<'a>,
        key: &'a str,
    ) -> StoreFuture<'a, CacheLookup> {
        self.0.cache_get(now, CacheSpace { max_entries: 1000, ..space }, key)
    }

    fn cache_put<'a>(
        &'a self,
        space: CacheSpace<'a>,
        key: &'a str,
        entry: CacheEntry,
        generation: u64,
    ) -> StoreFuture<'a, ()> {
        self.0.cache_put(CacheSpace { max_entries: 1000, ..space }, key, entry, generation)
    }

    fn cache_clear<'a>(&'a self, space: &'a str) -> StoreFuture<'a, ()> {
        self.0.cache_clear(space)
    }
}

impl RecordStore for OwnStorage {
    fn record<'a>(&'a self, key: RecordKey<'a>) -> StoreFuture<'a, Option<Record>> {
        self.0.record(key)
    }

    fn write_record<'a>(&'a self, now: Timestamp, write: ConditionalWrite<'a>) -> StoreFuture<'a, bool> {
        self.0.write_record(now, write)
    }

    fn has_lost_records<'a>(&'a self, account: &'a callgate::host::Account) -> StoreFuture<'a, bool> {
        self.0.has_lost_records(account)
    }

    fn records<'a>(
        &'a self,
        space: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, RecordPage> {
        self.0.records(space, after, limit)
    }
}

#[test]
fn cache_holds_a_hundred_entries_by_default_and_a_custom_store_its_own_number() {
    let clock = noon();
    let text = "policies: [ { id: c, match: look, cache: { ttl: 1h } } ]";
    let stores: [Arc<dyn StateStore>; 2] =
        [Arc::new(MemoryStore::default()), Arc::new(OwnStorage::default())];
    for (store, first) in stores.into_iter().zip(["executed", "cached"]) {
        let tool = Tool::counting(&clock);
        let mut session = rules(text).clock(clock.clone()).store(store).build().session();
        let mut look =
            |q: u32| clock.block_on(session.execute(call("look", json!({ "q": q })), &tool)).outcome.name();
        (0..=100).for_each(|q| assert_eq!(look(q), "executed"));
        assert_eq!(look(100), "cached");
        assert_eq!(look(0), first);
    }
}
