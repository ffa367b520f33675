//! What `around` scripts do: one file of `around/` is one script with its call and the answers to its effects; beside them,
//! what every script must keep to.

use std::sync::Arc;

use callgate::call::{CallView, SessionState, ToolCall};
use callgate::script::{Answer, Around, Effect, Journal, Replay};
use serde_json::{Value, json};

/// A script, its call, and what the world answers to its effects, in order.
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

    fn compiled(&self) -> Around {
        Around::compile(&self.script).unwrap_or_else(|error| panic!("{}: {error:?}", self.script))
    }

    /// Replays until the end, or until the answers run out.
    fn run(&self) -> (Vec<Effect>, Replay) {
        let around = self.compiled();
        let call = around.begin(&CallView::new(&self.call, &self.session), &self.call.options).unwrap();
        let mut journal = Journal::new(&call);
        let mut effects = Vec::new();
        loop {
            match around.replay(&call, &journal) {
                Replay::Effect(effect) => {
                    effects.push(effect.clone());
                    let Some(answer) = self.answers.get(journal.len()) else {
                        return (effects.clone(), Replay::Effect(effect));
                    };
                    journal.push(effect, answer.clone());
                }
                end => return (effects, end),
            }
        }
    }

    fn output(&self) -> Value {
        match self.run().1 {
            Replay::Done { output, .. } => Value::clone(&output),
            other => panic!("{}: {other:?}", self.script),
        }
    }

    fn failure(&self) -> (String, Option<(usize, usize)>) {
        match self.run().1 {
            Replay::Failed(failure) => {
                assert!(!failure.mismatch, "{}: {failure:?}", self.script);
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
fn says_what_statements_say() {
    for (script, value) in [
        ("1 + 2", json!(3)),
        ("let x = 1; x += 2; x *= 5; x", json!(15)),
        ("const TOP = 3; if input.n > TOP { \"large\" } else { \"small\" }", json!("large")),
        ("let x = if input.n == 5 { 1 } else if true { 2 } else { 3 }; x", json!(1)),
        ("if false { 1 }", json!(null)),
        ("let i = 0; while i < 3 { i += 1; } i", json!(3)),
        ("let i = 0; loop { i += 1; if i == 2 { continue; } if i > 4 { break; } } i", json!(5)),
        ("let found = loop { break 7; }; found", json!(7)),
        ("let sum = 0; for x in input.list { sum += x; } sum", json!(6)),
        ("let s = \"\"; for (x, i) in [\"a\", \"b\"] { s += x + to_text(i); } s", json!("a0b1")),
        ("let s = \"\"; for key in input.o { s += key; } s", json!("ab")),
        ("let sum = 0; for x in range(1, 4) { sum += x; } sum", json!(6)),
        ("fn double(x) { x * 2 } double(double(input.n))", json!(20)),
        ("fn fib(n) { if n < 2 { return n; } fib(n - 1) + fib(n - 2) } fib(7)", json!(13)),
        ("fn first(a) { for x in a { return x; } } first(input.list)", json!(3)),
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
        ("try { input.missing } catch (e) { e.message }", json!("there is no `missing`")),
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
