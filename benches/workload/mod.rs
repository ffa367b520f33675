//! Rules whose conditions hold as often as they do for users, calls for them, and a hand-written index of the same rules.

use std::cmp::Reverse;
use std::collections::HashMap;

use callgate::json::{Value, json};
use callgate::{Effect, ToolCall};
use regex::Regex;

/// The number of calls of a workload.
pub const CALLS: usize = 64;
/// The fields that conditions test, as paths below the arguments.
pub const FIELDS: [&[&str]; 8] = [
    &["amount"],
    &["currency"],
    &["region"],
    &["customer", "tier"],
    &["customer", "orders"],
    &["subject"],
    &["retries"],
    &["channel"],
];
const CURRENCIES: [&str; 4] = ["EUR", "USD", "JPY", "BRL"];
const REGIONS: [&str; 4] = ["eu-west", "eu-north", "us-east", "ap-south"];
const TIERS: [&str; 3] = ["basic", "plus", "gold"];
const CHANNELS: [&str; 3] = ["mail", "chat", "phone"];

/// A field's test, as both sides evaluate it.
#[derive(Clone, Copy)]
pub enum Test {
    Equal(&'static str),
    NotEqual(&'static str),
    Above(i64),
    Below(i64),
    StartsWith(&'static str),
    Contains(&'static str),
}

#[derive(Clone)]
pub struct Rule {
    /// A name of a tool, a start of names with `*`, or a regex between slashes.
    pub tool: String,
    /// The tests that must all hold, with the numbers of their fields.
    pub tests: Vec<(usize, Test)>,
    pub effect: Effect,
}

/// A generator of numbers that is the same on every machine.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// A tool for every 16 policies, in families of eight.
fn tool_count(size: usize) -> usize {
    (size / 16).max(1)
}

fn tool_name(number: usize) -> String {
    format!("desk{}.tool{number}", number / 8)
}

fn random_test(next: &mut Sequence) -> (usize, Test) {
    let field = next.below(FIELDS.len());
    let is_equal = next.below(2) == 0;
    let text = |value| if is_equal { Test::Equal(value) } else { Test::NotEqual(value) };
    let test = match field {
        0 if is_equal => Test::Above(next.below(900) as i64),
        0 => Test::Below(next.below(900) as i64),
        4 => Test::Below(next.below(40) as i64),
        6 => Test::Above(next.below(4) as i64),
        1 => text(next.pick(&CURRENCIES)),
        2 if is_equal => Test::StartsWith(next.pick(&["eu-", "us-", "ap-"])),
        2 => Test::NotEqual(next.pick(&REGIONS)),
        3 => text(next.pick(&TIERS)),
        5 => Test::Contains(next.pick(&["order", "refund", "invoice"])),
        _ => text(next.pick(&CHANNELS)),
    };
    (field, test)
}

/// Of ten rules nine name their tool, and one matches a family of tools by a glob or a regex.
pub fn rules(size: usize) -> Vec<Rule> {
    let mut next = Sequence(size as u64);
    let tools = tool_count(size);
    let rule = |number: usize| {
        let tool = match number % 20 {
            9 => format!("desk{}.*", next.below(tools.div_ceil(8))),
            19 => format!("/^desk{}\\.tool\\d*[02468]$/", next.below(tools.div_ceil(8))),
            _ => tool_name(next.below(tools)),
        };
        // What denies is rarer than what permits, as in rules that people write.
        let (effect, count) = match next.below(10) {
            0 => (Effect::Deny, 4),
            1 | 2 => (Effect::Suspend, 3),
            _ => (Effect::Run, 1 + next.below(2)),
        };
        Rule { tool, tests: (0..count).map(|_| random_test(&mut next)).collect(), effect }
    };
    (0..size).map(rule).collect()
}

pub fn rules_text(rules: &[Rule]) -> String {
    let condition = |(field, test): &(usize, Test)| {
        let path = format!("$.input.{}", FIELDS[*field].join("."));
        match test {
            Test::Equal(value) => json!({ "path": path, "eq": *value }),
            Test::NotEqual(value) => json!({ "path": path, "ne": *value }),
            Test::Above(bound) => json!({ "path": path, "gt": *bound }),
            Test::Below(bound) => json!({ "path": path, "lt": *bound }),
            Test::StartsWith(start) => json!({ "path": path, "starts_with": *start }),
            Test::Contains(part) => json!({ "path": path, "contains": *part }),
        }
    };
    let policy = |(number, rule): (usize, &Rule)| {
        let kind = match rule.effect {
            Effect::Deny => "deny",
            Effect::Suspend => "approval",
            _ => "allow",
        };
        let conditions: Vec<Value> = rule.tests.iter().map(condition).collect();
        json!({ "id": format!("p{number}"), "match": { "tool": rule.tool.as_str(), "where": conditions }, kind: {} })
    };
    json!({ "policies": rules.iter().enumerate().map(policy).collect::<Vec<_>>() }).to_string()
}

pub fn calls(size: usize, bytes: usize) -> Vec<ToolCall> {
    let mut next = Sequence(7);
    let call = |number: usize| {
        let mut input = json!({
            "amount": next.below(1_000), "currency": next.pick(&CURRENCIES), "region": next.pick(&REGIONS),
            "customer": { "tier": next.pick(&TIERS), "orders": next.below(50) },
            "subject": next.pick(&["a late order", "refund of an order", "an invoice", "a question"]),
            "retries": next.below(5), "channel": next.pick(&CHANNELS), "to": ["ana@example.com"],
        });
        let text = "All work and no play makes a dull agent, and a dull agent makes work.";
        let lines = (0..bytes.saturating_sub(245) / 94).map(|line| json!({ "line": line, "text": text }));
        if bytes > 245 {
            input["body"] = lines.collect::<Vec<Value>>().into();
        }
        ToolCall::new(format!("c{number}"), tool_name(next.below(tool_count(size))), input)
    };
    (0..CALLS).map(call).collect()
}

/// The rules that concern each tool, the strictest first.
pub fn rules_by_tool(size: usize) -> HashMap<String, Vec<Rule>> {
    let mut by_tool: HashMap<String, Vec<_>> = HashMap::new();
    for rule in rules(size) {
        let regex = rule
            .tool
            .strip_prefix('/')
            .map(|regex| Regex::new(regex.trim_end_matches('/')).expect("a regex"));
        let matches = |name: &str| match (&regex, rule.tool.strip_suffix('*')) {
            (Some(regex), _) => regex.is_match(name),
            (None, Some(start)) => name.starts_with(start),
            (None, None) => rule.tool == name,
        };
        for name in (0..tool_count(size)).map(tool_name).filter(|name| matches(name)) {
            by_tool.entry(name).or_default().push(rule.clone());
        }
    }
    by_tool.values_mut().for_each(|rules| rules.sort_by_key(|rule| Reverse(rule.effect)));
    by_tool
}

/// The rules of each tool by hand, the strictest first: the fields are read once, and the first match decides.
pub struct FoldedIndex(HashMap<String, Vec<FoldedRule>>);

/// The effect of a rule, and its tests.
type FoldedRule = (Effect, Vec<(usize, Test)>);

enum Field<'c> {
    Text(&'c str),
    Number(i64),
    Other,
}

impl FoldedIndex {
    pub fn new(size: usize) -> Self {
        let fold = |rules: Vec<Rule>| rules.into_iter().map(|rule| (rule.effect, rule.tests)).collect();
        Self(rules_by_tool(size).into_iter().map(|(tool, rules)| (tool, fold(rules))).collect())
    }

    pub fn decide(&self, call: &ToolCall) -> Effect {
        let fields = FIELDS.map(|path| {
            let value = path.iter().try_fold(&call.input, |value, name| value.get(*name));
            match value {
                Some(Value::String(text)) => Field::Text(text),
                Some(Value::Number(number)) => number.as_i64().map_or(Field::Other, Field::Number),
                _ => Field::Other,
            }
        });
        let holds = |(field, test): &(usize, Test)| match (&fields[*field], test) {
            (Field::Text(text), Test::Equal(value)) => text == value,
            (Field::Text(text), Test::NotEqual(value)) => text != value,
            (Field::Text(text), Test::StartsWith(start)) => text.starts_with(start),
            (Field::Text(text), Test::Contains(part)) => text.contains(part),
            (Field::Number(number), Test::Above(bound)) => number > bound,
            (Field::Number(number), Test::Below(bound)) => number < bound,
            _ => false,
        };
        let rules = self.0.get(&call.tool).map(Vec::as_slice).unwrap_or_default();
        rules
            .iter()
            .take_while(|(effect, _)| *effect > Effect::Run)
            .find(|(_, tests)| tests.iter().all(holds))
            .map_or(Effect::Run, |(effect, _)| *effect)
    }
}
