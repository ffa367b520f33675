//! Evaluation of `around` scripts: each file under `tests/around/` is one script with its call and the results of its effects. Other
//! tests cover what holds for every script.

use std::sync::Arc;

use callgate::call::{SessionState, ToolCall};
use callgate::json::{Value, json};
use callgate::script::{Answer, AroundScript, Journal, ReplayResult, ScriptEffect};

/// A script, its call, and the results of its effects, in order.
pub struct Case {
    pub script: String,
    pub call: ToolCall,
    pub session: SessionState,
    pub answers: Vec<Answer>,
}

impl Case {
    fn new(script: &str, input: Value) -> Self {
        let call = ToolCall::new("c1", "pay", input).with_context(json!({"tenant": "acme"}));
        Self { script: script.to_owned(), call, session: SessionState::default(), answers: Vec::new() }
    }

    fn answer(mut self, value: Value) -> Self {
        self.answers.push(Answer::Value(Arc::new(value)));
        self
    }

    fn fail(mut self, message: &str, kind: Option<&str>) -> Self {
        self.answers.push(Answer::Error { message: message.to_owned(), kind: kind.map(str::to_owned) });
        self
    }

    fn compiled(&self) -> AroundScript {
        AroundScript::compile(&self.script).unwrap_or_else(|error| panic!("{}: {error:?}", self.script))
    }

    /// Replays to the end, or to the first effect without a result.
    fn run(&self) -> (Vec<ScriptEffect<'_>>, ReplayResult<'_>) {
        let around = self.compiled();
        let call = around.begin(&self.call, None, &self.session).unwrap();
        let mut journal = Journal::new(&call);
        let mut effects = Vec::new();
        loop {
            match around.replay(&call, &journal) {
                ReplayResult::Effect(effect) => {
                    effects.push(effect.clone());
                    let Some(answer) = self.answers.get(journal.len()) else {
                        return (effects.clone(), ReplayResult::Effect(effect));
                    };
                    journal.push(effect, answer.clone());
                }
                end => return (effects, end),
            }
        }
    }

    fn output(&self) -> Value {
        match self.run().1 {
            ReplayResult::Completed { output, .. } => Value::clone(&output),
            other => panic!("{}: {other:?}", self.script),
        }
    }

    fn failure(&self) -> (String, Option<(usize, usize)>) {
        match self.run().1 {
            ReplayResult::Failed(failure) => {
                assert!(!failure.is_mismatch, "{}: {failure:?}", self.script);
                (failure.message, failure.position)
            }
            other => panic!("{}: {other:?}", self.script),
        }
    }
}

fn value_of(script: &str) -> Value {
    Case::new(script, json!({"n": 5, "list": [3, 1, 2], "o": {"b": 1, "a": 2}, "s": " Abc "})).output()
}

#[test]
fn statements_have_the_expected_values() {
    for (script, value) in [
        ("1 + 2", json!(3)),
        ("let x = 1; x += 2; x *= 5; x", json!(15)),
        ("const TOP = 3; if input.n > TOP { \"large\" } else { \"small\" }", json!("large")),
        ("let x = if input.n == 5 { 1 } else if true { 2 } else { 3 }; x", json!(1)),
        ("if false { 1 }", json!(null)),
        (
            "switch input.n { 5 if input.list.len() > 9 => \"no\", 5.0 => \"five\", 1..5 => \"few\", _ => \"many\" }",
            json!("five"),
        ),
        ("switch input.o.a { 0.1 | 2 => { let x = 3; x + 1 }, _ => 0 }", json!(4)),
        ("switch input.s { \"a\" => 1 }", json!(null)),
        ("let n = 0; for i in input.n - 3..=4 { n += i; } n", json!(9)),
        (
            "[input.s[0..3], input.list[1..9], 2.5 in 1..3, input.n !in 1..=5]",
            json!([" Ab", [1, 2], true, false]),
        ),
        ("let by = |a, b| b - a; input.list.sort(by)", json!([3, 2, 1])),
        ("let has = |x| x in input.list; [has.call(3), [4, 1].filter(has)]", json!([true, [1]])),
        ("let a = [1]; a.insert(0, [2]); a.insert(9, 3); a.insert(-1, 4); a", json!([[2], 1, 4, 3])),
        ("let i = 0; while i < 3 { i += 1; } i", json!(3)),
        ("let i = 0; loop { i += 1; if i == 2 { continue; } if i > 4 { break; } } i", json!(5)),
        ("let found = loop { break 7; }; found", json!(7)),
        ("let sum = 0; for x in input.list { sum += x; } sum", json!(6)),
        ("let s = \"\"; for (x, i) in [\"a\", \"b\"] { s += x + to_text(i); } s", json!("a0b1")),
        ("let s = \"\"; for key in input.o { s += key; } s", json!("ab")),
        ("let sum = 0; for x in range(1, 4) { sum += x; } sum", json!(6)),
        ("fn double(x) { x * 2 } double(double(input.n))", json!(20)),
        ("fn fib(n) { if n < 2 { return n; } fib(n - 1) + fib(n - 2) } fib(7)", json!(13)),
        ("fn one(a) { for x in a { return x; } } one(input.list)", json!(3)),
        ("return 4; 5", json!(4)),
        ("let most = 2; input.list.filter(|x| x <= most)", json!([1, 2])),
        ("let sum = 0; input.list.map(|x| { sum += x; sum })", json!([3, 4, 6])),
        ("input.list.map(|x| #{n: x, twice: [x, x].map(|y| y * x)})[1]", json!({"n": 1, "twice": [1, 1]})),
        ("let a = [1]; let b = a; b.push(2); a", json!([1])),
        ("let a = [1, 2, 3]; a[0] = 9; a[-1] += 1; a", json!([9, 2, 4])),
        (
            "let o = #{}; o.a = #{}; o.a.b = [1]; o[\"c\"] = 2; o.a.b.push(3); o",
            json!({"a": {"b": [1, 3]}, "c": 2}),
        ),
        ("let k = \"z\"; let o = #{}; o[k] = 1; o[k] += 1; o.z", json!(2)),
        ("let o = #{a: 1, b: 2}; [o.remove(\"a\"), o.remove(\"a\"), o]", json!([true, false, {"b": 2}])),
        ("let a = [1, 2]; [a.pop(), a]", json!([2, [1]])),
        ("push(input.list, 4); input.list.len()", json!(4)),
        ("input.s.trim().replace(\"b\", \"bb\").to_upper()", json!("ABBC")),
        ("[1, \"a\", true, ()].map(|x| to_text(x)).join(\"-\")", json!("1-a-true-null")),
        ("to_number(\"1.5\") + to_number(\"2\")", json!(3.5)),
        (
            "[slice(\"abcdef\", 1, 3), slice([1, 2, 3], -2, 9), slice(\"abc\", 2, 1)]",
            json!(["bc", [2, 3], ""]),
        ),
        ("sort([3, 1.5, 2])", json!([1.5, 2, 3])),
        ("merge(#{a: 1, b: 2}, #{b: 3, c: 4})", json!({"a": 1, "b": 3, "c": 4})),
        ("try { throw \"no\"; } catch (e) { e }", json!({"message": "no", "kind": ""})),
        ("try { throw #{message: \"no\", kind: \"k\", n: 1}; } catch (e) { e.n }", json!(1)),
        ("try { input.missing } catch (e) { e.message }", json!("the object has no key `missing`")),
        ("try { 1 + \"a\" } catch (e) { e.kind }", json!("script_error")),
        ("try { 1 } catch { 2 }", json!(1)),
        ("fn f() { throw \"x\"; } try { f() } catch { 2 }", json!(2)),
        (
            "[tool, id, server, context.tenant, annotations, options]",
            json!(["pay", "c1", null, "acme", null, null]),
        ),
        ("\"n\" in input && \"x\" !in input && 3 in input.list && !(9 in input.list)", json!(true)),
        ("let x = 1; { let x = 2; } x", json!(1)),
        ("let x = 1; let x = x + 1; x", json!(2)),
        ("let output = 1; let error = 2; output + error", json!(3)),
        ("// says nothing\n", json!(null)),
    ] {
        assert_eq!(value_of(script), value, "{script}");
    }
}

fn effect_as_json(effect: &ScriptEffect<'_>) -> Value {
    let mut shown = json!({ "effect": effect.name() });
    let shown_fields = shown.as_object_mut().unwrap();
    match effect {
        ScriptEffect::Next { input, options } => {
            shown_fields.insert("input", Value::clone(input));
            if let Some(options) = options {
                shown_fields.insert("options", Value::clone(options));
            }
        }
        ScriptEffect::Approve { message } => {
            shown_fields.insert("message", message.as_str().into());
        }
        ScriptEffect::Now | ScriptEffect::Random => {}
        ScriptEffect::CacheGet { key } => {
            shown_fields.insert("key", Value::clone(key));
        }
        ScriptEffect::CacheSet { key, value, ttl } => {
            shown_fields.insert("key", Value::clone(key));
            shown_fields.insert("value", Value::clone(value));
            shown_fields.insert("ttl_ms", (ttl.as_millis() as u64).into());
        }
        ScriptEffect::Audit { fields } => {
            shown_fields.insert("fields", Value::Object(fields.clone()));
        }
    }
    shown
}

fn end_as_json(replay: &ReplayResult<'_>) -> Value {
    match replay {
        ReplayResult::Effect(effect) => json!({ "waits_for": effect.name() }),
        ReplayResult::Completed { output, from } => json!({ "output": Value::clone(output), "from": from }),
        ReplayResult::Exception(thrown) => {
            json!({ "threw": thrown.message, "kind": thrown.kind, "from": thrown.journal_entry })
        }
        ReplayResult::Failed(failure) => {
            json!({ "failed": failure.message, "position": failure.position, "mismatch": failure.is_mismatch })
        }
    }
}

/// Reads a case of the corpus: `script`, `input`, `answers`, and optionally `context`, `options` and `facts`.
fn read_case(text: &str) -> Case {
    let yaml: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
    let file: Value = callgate::json::from_str(&callgate::json::to_string(&yaml).unwrap()).unwrap();
    let mut case = Case::new(file["script"].as_str().unwrap(), file["input"].clone());
    case.call.context = file["context"].clone();
    case.call.options = file["options"].clone();
    for (name, fact) in file["facts"].as_object().into_iter().flatten() {
        case.session.set_fact(name, None, fact.clone());
    }
    for answer in file["answers"].as_array().unwrap() {
        case = match answer.get("error") {
            Some(error) => case.fail(error["message"].as_str().unwrap(), error["kind"].as_str()),
            None => case.answer(answer["value"].clone()),
        };
    }
    case
}

#[test]
fn effects_and_results_match_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        insta::glob!("around/*.yaml", |path| {
            let text = std::fs::read_to_string(path).unwrap();
            let case = read_case(&text);
            let (effects, end) = case.run();
            let effects: Vec<Value> = effects.iter().map(effect_as_json).collect();
            let shown = json!({ "effects": effects, "end": end_as_json(&end) });
            insta::assert_snapshot!("around", callgate::json::to_string_pretty(&shown).unwrap());
        });
    });
}

#[test]
fn unchanged_values_are_shared_not_copied() {
    let case = Case::new(
        "let out = next(input); out",
        json!({"body": "x".repeat(2 << 20), "rows": vec![0; 300_000]}),
    );
    let around = case.compiled();
    let call = around.begin(&case.call, None, &case.session).unwrap();
    let mut journal = Journal::new(&call);
    let ReplayResult::Effect(effect @ ScriptEffect::Next { .. }) = around.replay(&call, &journal) else {
        panic!()
    };
    assert!(
        matches!(&effect, ScriptEffect::Next { input, .. } if input.is_same_instance(&case.call.input)),
        "the input was copied"
    );
    let output = Arc::new(json!({"body": "y".repeat(2 << 20), "rows": vec![0; 300_000]}));
    journal.push(effect, Answer::Value(Arc::clone(&output)));
    match around.replay(&call, &journal) {
        ReplayResult::Completed { output: given, from } => {
            assert!(given.is_same_instance(&output), "the output was copied");
            assert_eq!(from, Some(0));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn changed_object_keeps_key_order_and_number_digits() {
    let input =
        callgate::json::parse(r#"{"z":1.50,"y":{"b":1e400,"a":12345678901234567890},"x":[1.0]}"#).unwrap();
    let case = Case::new("input.y.c = true; input.w = input.x[0]; next(input)", input);
    let ReplayResult::Effect(ScriptEffect::Next { input, .. }) = case.run().1 else { panic!() };
    assert_eq!(
        input.to_string(),
        r#"{"z":1.50,"y":{"b":1e400,"a":12345678901234567890,"c":true},"x":[1.0],"w":1.0}"#
    );
    for script in ["input.y.b + 1e-9", "[input.y.b, 1].sum()", "-(input.y.b) + input.y.a"] {
        let case = Case { script: script.to_owned(), ..Case::new("", case.call.input.clone()) };
        assert!(case.failure().0.contains("more than 34 significant digits"), "{script}");
    }
}

#[test]
fn failures_report_their_position() {
    for (script, expected, position) in [
        ("let x = 1;\n  x + input.s", "`+` takes two numbers", (2, 5)),
        ("input.missing", "the object has no key `missing`", (1, 7)),
        ("input.n == \"5\"", "values of different types", (1, 9)),
        ("let a = [1];\na[3] = 2;", "no element 3", (2, 6)),
        ("input.n.x = 2;", "`x` is set in a value that is not an object", (1, 11)),
        ("input.o.c.d = 2;", "the object has no key `c`", (1, 13)),
        ("if input.n { 1 }", "expected a boolean", (1, 10)),
        ("for x in input.n { }", "`for` iterates over", (1, 16)),
        ("fn f(x) { x.y } f(1)", "`y` is read from", (1, 13)),
        ("input.list.map(|x| x.y)", "`y` is read from", (1, 22)),
        ("throw input.n;", "`throw` takes", (1, 1)),
        ("next(input, 1).x", "", (1, 16)),
        ("cache_set(1, 2, input.s)", "is not a duration", (1, 1)),
        ("audit([])", "`audit` takes an object", (1, 1)),
        ("approve(1)", "`approve` takes a string", (1, 1)),
        ("[].pop()", "", (1, 1)),
        ("\"ab\"[0]", "an array takes a whole number as index", (1, 5)),
        ("input.n[0]", "an array takes a whole number as index", (1, 8)),
        ("slice(input.n, 0, 1)", "`slice` takes", (1, 1)),
        ("join([1], \",\")", "`join` takes", (1, 1)),
        ("sort([1, \"a\"])", "different types", (1, 1)),
        ("to_number(\"abc\")", "`abc` is not a number", (1, 1)),
        ("context == 1 && session.facts.x", "different types", (1, 9)),
    ] {
        if expected.is_empty() {
            continue;
        }
        let case = Case::new(script, json!({"n": 5, "s": "a", "o": {}, "list": [1]}));
        let (message, at) = case.failure();
        assert!(message.contains(expected), "{script}: {message}");
        assert_eq!(at, Some(position), "{script}: {message}");
    }
}

#[test]
fn rejects_invalid_scripts_with_position_and_help() {
    for (text, at, message, help) in [
        ("next(inptu)", 5, "unknown name `inptu`", "did you mean `input`?"),
        ("let total = 1; totl", 15, "unknown name `totl`", "did you mean `total`?"),
        ("nxt(input)", 0, "unknown function `nxt`", "did you mean `next(input, options?)`?"),
        ("fn double(x) { x } duoble(1)", 19, "unknown function `duoble`", "did you mean `double(…)`?"),
        ("next()", 0, "`next` takes 1 to 2 arguments, this call has 0", "next(input, options?)"),
        ("next(input, 1, 2)", 0, "`next` takes 1 to 2 arguments", ""),
        ("now(1)", 0, "`now` takes 0 arguments", ""),
        ("fn f(a) { a } f()", 14, "`f` takes 1 arguments, this call has 0", ""),
        ("tool = \"x\";", 0, "`tool` is read-only", "let copy = tool;"),
        ("context.tenant = \"x\";", 0, "`context` is read-only", ""),
        ("session.labels.push(\"x\")", 0, "`session` is read-only", ""),
        ("options.a = 1;", 0, "`options` is read-only", ""),
        ("const A = [1]; A.push(2)", 15, "`A` is a constant", ""),
        ("let input = 1;", 4, "`input` is a member of the call", ""),
        ("for tool in [1] {}", 4, "`tool` is a member of the call", ""),
        ("try { 1 } catch (id) { 2 }", 17, "`id` is a member of the call", ""),
        ("[1].map(|session| 1)", 8, "`session` is a member of the call", ""),
        ("fn f() { input } f()", 9, "cannot read the script's `input`", "pass it"),
        ("let x = 1; fn f() { x } f()", 20, "unknown name `x`", ""),
        ("fn next(x) { x } next(input)", 11, "a function `next` already exists", ""),
        ("fn f(a) { a } fn f(a, b) { a } f(1)", 8, "two functions have the name `f`", ""),
        ("fn f() { this.x } f()", 9, "`this` is not supported", ""),
        ("input.f(); fn f() { 1 }", 6, "`f` is a function of the script", "write `f(…)`"),
        ("switch input.n { [1] => 2, _ => 3 }", 17, "a case is a string", "compare other values with `if`"),
        ("let x = 0..5; x", 9, "a range can stand only after `in`", "range(0, 5)"),
        ("input.list[1..]", 12, "a range needs both ends", "write `0..5`"),
        (
            "let s = \" a \"; s.trim(); s",
            15,
            "its value is not used",
            "write `s = s.trim(…)`, which changes `s` as Rhai's `trim` does",
        ),
        ("let a = [2, 1]; sort(a); a", 16, "`sort` returns a new value", "write `a = a.sort(…)`"),
        ("let a = [1]; a.len(); a", 13, "`len` returns a new value", ""),
        ("input.n == 5; 1", 8, "this statement changes nothing", "assign the value"),
        ("input.n; 1", 0, "this statement changes nothing", ""),
        ("for x in [1] { x }", 15, "this statement changes nothing", ""),
        ("if input.n == 1 { input.n } 2", 18, "this statement changes nothing", ""),
        ("let s = \"\"; if true { s.to_upper(); } s", 22, "`to_upper` returns a new value", ""),
        ("do { 1 } while true", 0, "`do` is not supported", ""),
        ("import \"x\" as y;", 0, "`import` or `export` is not supported", ""),
        ("let x = 1; export x;", 11, "`import` or `export` is not supported", ""),
        ("eval(\"1\")", 0, "unknown function `eval`", ""),
        ("sleep(1)", 0, "unknown function `sleep`", ""),
        ("print()", 0, "`print` takes 1 arguments", ""),
        ("log(input)", 0, "unknown function `log`", "did you mean `audit(object)`?"),
        ("timestamp()", 0, "unknown function `timestamp`", "`now()`"),
        ("let f = |x| x; f.call(1, 2)", 17, "the closure `f` takes 1 arguments, this call has 2", ""),
        ("let f = |x| x; [f]", 16, "can only be called", "write `f.call(…)`"),
        ("let f = |x| x; f = 1;", 15, "`f` is a constant", ""),
        ("let f = if true { |x| x } else { |x| 1 };", 18, "as the value of `let`", ""),
        ("{ let f = |x| x; } f.call(1)", 19, "unknown name `f`", ""),
        ("fn g(f) { f.call(1) } g(|x| x)", 12, "unknown function `call`", ""),
        ("Fn(\"next\").call(input)", 0, "unknown function", ""),
        ("cache_set(1, 2, \"60\")", 16, "`60` is not a duration", ""),
        ("matches(id, tool)", 12, "must be a string literal", ""),
        ("let x = 1; x <<= 2;", 13, "`<<=` is not supported", "`+=`"),
        ("input.a << 2", 8, "`<<` is not an operator of scripts", ""),
        ("global::x", 0, "`::`", ""),
        ("[1, 2].push(3)", 0, "only variables", ""),
        ("push(next(input), 3)", 5, "only variables", ""),
        ("output", 0, "unknown name `output`", ""),
        ("let x = ;", 8, "", ""),
    ] {
        let error = AroundScript::compile(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(error.offset, Some(at), "{text}: {error:?}");
        assert!(error.help.clone().unwrap_or_default().contains(help), "{text}: {error:?}");
    }
}

#[test]
fn hostile_scripts_fail_with_an_error_they_cannot_catch() {
    let nested = |open: &str, close: &str, times| format!("{}1{}", open.repeat(times), close.repeat(times));
    let long = "x".repeat(60_000);
    for script in [
        "loop {}".to_owned(),
        "while true { try { throw \"x\"; } catch { } }".to_owned(),
        "fn f(x) { f(x + 1) } f(0)".to_owned(),
        "fn f(x) { try { f(x + 1) } catch { f(x + 1) } } f(0)".to_owned(),
        "fn f(x) { [x].map(|y| f(y)) } f(0)".to_owned(),
        "fn f(x) { if x > 0 { if x > 0 { [[[f([[x]].len() + x)]]] } } } f(1)".to_owned(),
        "fn f(x) { [[[[[[f(x)]]]]]] } f(1)".to_owned(),
        "fn f(x) { try { try { try { for y in [1] { f(x) } } catch { } } catch { } } catch { } } f(1)"
            .to_owned(),
        "let s = \"ab\"; loop { s += s; }".to_owned(),
        "let s = \"ab\"; loop { s = s.replace(\"a\", s); }".to_owned(),
        "let a = [1]; loop { a = [a, a]; }".to_owned(),
        "let a = [1]; loop { a.push(a); }".to_owned(),
        "let o = #{}; loop { o.x = o; }".to_owned(),
        "let o = #{a: #{b: 1}}; loop { o.a.b = o; }".to_owned(),
        "let a = []; loop { a.push(1); }".to_owned(),
        "let a = []; loop { a.push(input.text + to_text(a.len())); }".to_owned(),
        "let a = [1]; for i in range(0, 60) { a = [a, a]; } a".to_owned(),
        "let a = [1]; for i in range(0, 60) { a = [a, a]; } a == a".to_owned(),
        "let a = [1]; for i in range(0, 60) { a = [a, a]; } next(a)".to_owned(),
        "let a = [1]; for i in range(0, 60) { a = [a, a]; } to_text(a)".to_owned(),
        "range(0, 9223372036854775807)".to_owned(),
        "range(-9223372036854775807, 9223372036854775807)".to_owned(),
        "range(0, 1000000).len()".to_owned(),
        "let big = input.rows; let all = []; loop { all.push(big.map(|x| x)); }".to_owned(),
        "let a = []; for i in range(0, 2000) { a.push(input); } a".to_owned(),
        format!("let s = \"{long}\"; let a = []; for i in range(0, 400) {{ a.push(s); }} join(a, s)"),
        "loop { now(); }".to_owned(),
        "loop { try { audit(#{a: 1}); } catch { } }".to_owned(),
    ] {
        let caught = format!("try {{ {script} }} catch {{ 1 }}");
        for script in [&script, &caught] {
            if script.starts_with("try") && script.contains("fn ") {
                continue;
            }
            let rows: Vec<u32> = (0..5_000).collect();
            let mut case = Case::new(script, json!({"text": "x".repeat(60_000), "rows": rows}));
            for _ in 0..200 {
                case = case.answer(json!(1));
            }
            let (message, _) = case.failure();
            assert!(!message.contains("failed with an internal error"), "{script}: {message}");
        }
    }
    for script in [
        nested("(", ")", 5_000),
        nested("[", "]", 5_000),
        nested("{", "}", 5_000),
        nested("if true {", "}", 5_000),
        nested("loop { ", "}", 5_000),
        nested("try { ", "} catch { }", 5_000),
        nested("#{a: ", "}", 5_000),
        nested("next(", ")", 5_000),
        format!("let f = {}1", "|x| ".repeat(5_000)),
        format!("{}true", "!".repeat(5_000)),
        format!("input{} = 1", ".a".repeat(5_000)),
        format!("input{}", "[0]".repeat(5_000)),
        format!("if true {{}} {}", "else if true {} ".repeat(5_000)),
        format!("1{}", " + 1".repeat(5_000)),
        "x;".repeat(50_000),
        (0..1_000).map(|n| format!("fn f{n}() {{ 1 }} ")).collect(),
    ] {
        assert!(AroundScript::compile(&script).is_err(), "{}", script.get(..40).unwrap_or_default());
    }
}

#[test]
fn scripts_cannot_catch_the_suspension_at_an_effect() {
    for script in [
        "try { next(input) } catch (e) { 1 }",
        "let x = 0; loop { try { next(input); } catch { x += 1; } }",
        "fn f() { try { next(1) } catch { 2 } } f()",
        "[1, 2].map(|x| { try { next(x) } catch { x } })",
        "let out = try_it(input); out; fn try_it(x) { try { next(x) } catch { 2 } }",
    ] {
        let case = Case::new(script, json!({}));
        let (effects, end) = case.run();
        assert!(matches!(end, ReplayResult::Effect(ScriptEffect::Next { .. })), "{script}: {end:?}");
        assert_eq!(effects.len(), 1, "{script}");
    }
}

#[test]
fn script_reads_the_session_as_of_its_start() {
    let script = "let before = session.facts.order; next(input); [before, session.facts.order]";
    let mut case = Case::new(script, json!({})).answer(json!(1));
    case.session.set_fact("order", None, json!("open"));
    assert_eq!(case.output(), json!(["open", "open"]));
    case.session.mark_unknown("facts.order");
    let around = case.compiled();
    let failure = around.begin(&case.call, None, &case.session).unwrap_err();
    assert!(failure.message.contains("`facts.order` of the session"), "{failure:?}");
    let other = AroundScript::compile("session.facts.other").unwrap();
    assert!(other.begin(&case.call, None, &case.session).is_ok());
}

#[test]
fn rejects_calls_whose_input_is_not_an_object() {
    let case = Case::new("next(input)", json!([1]));
    let failure = case.compiled().begin(&case.call, None, &case.session).unwrap_err();
    assert!(failure.message.contains("not a JSON object"), "{failure:?}");
}

#[test]
fn script_types_are_send_and_sync() {
    fn shareable<T: Send + Sync + std::fmt::Debug + 'static>() {}
    shareable::<AroundScript>();
    shareable::<callgate::script::ScriptCall>();
    shareable::<Journal>();
    shareable::<ReplayResult>();
}
