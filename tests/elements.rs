//! Conditions on elements (`every`, `any_of`, `none`): what is undecided, what they cost, and which arguments they read.

use std::time::Duration;

use callgate::json::{Value, json};

use crate::fixtures::{Tool, call, kind_and_code, noon, run};

/// The outcome and the reason code of a call of `pay` under these rules.
fn code(rules: &str, input: Value) -> String {
    let rules = callgate::load_text(rules).unwrap_or_else(|error| panic!("{rules}: {error}"));
    let clock = noon();
    let engine = callgate::Engine::builder(rules).clock(clock.clone()).build();
    let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &[call("pay", input)]);
    kind_and_code(&outcomes[0]).1.to_owned()
}

fn deny(condition: &str) -> String {
    format!("policies: [{{ id: p, match: {{ tool: pay, where: {condition} }}, deny: {{}} }}]")
}

/// Each quantifier over no element, with each way to have none.
#[test]
fn every_and_none_hold_for_no_elements_and_any_of_does_not() {
    for input in
        [json!({}), json!({"to": null}), json!({"to": []}), json!({"to": {"list": null}}), json!({"to": {}})]
    {
        let path = if input["to"].is_object() { "$.input.to.list[*]" } else { "$.input.to[*]" };
        for (quantifier, expected) in [("every", "denied"), ("none", "denied"), ("any_of", "unmatched")] {
            let rules = deny(&format!("{{ {quantifier}: {{ path: '{path}', eq: a }} }}"));
            assert_eq!(code(&rules, input.clone()), expected, "{quantifier} {path} {input}");
        }
    }
    for input in [json!({}), json!({"to": null}), json!({"to": []})] {
        assert_eq!(code(&deny("{ none: { expr: input.to, eq: a } }"), input.clone()), "denied");
        assert_eq!(code(&deny("{ none: { path: $.input.to, eq: a } }"), input), "denied");
    }
}

#[test]
fn other_types_than_arrays_and_too_many_elements_are_undecided() {
    let many = |count: usize| json!({"to": vec!["b"; count]});
    for source in ["path: $.input.to", "path: '$.input.to[*]'", "expr: input.to"] {
        let rules = deny(&format!("{{ any_of: {{ {source}, eq: a }} }}"));
        for input in [json!({"to": "a"}), json!({"to": 1}), json!({"to": false}), many(10_001)] {
            assert_eq!(code(&rules, input), "undecided", "{source}");
        }
        assert_eq!(code(&rules, many(10_000)), "unmatched", "{source}");
    }
    assert_eq!(
        code(&deny("{ any_of: { path: $.input.to, eq: a } }"), json!({"to": {"a": "a"}})),
        "undecided"
    );
}

/// Elements are items of arrays: the members of an object in its place may be something else to the tool.
#[test]
fn members_of_objects_are_no_elements() {
    for path in ["$.input.to[*]", "$.input.to[?@ != 'x']", "$.input['to','cc'][*]"] {
        for condition in [
            format!("{{ any_of: {{ path: \"{path}\", eq: a }} }}"),
            format!("{{ none: {{ path: \"{path}\", eq: b }} }}"),
            format!("{{ not: {{ every: {{ path: \"{path}\", eq: b }} }} }}"),
        ] {
            let input = json!({"to": {"eve@evil.test": "b"}});
            assert_eq!(code(&deny(&condition), input), "undecided", "{condition}");
        }
    }
}

/// An element without the value that the path ends in is not left out: neither a restriction nor a permission disregards it.
#[test]
fn elements_without_the_value_are_undecided() {
    for (path, missing) in [
        ("$.input.rows[*].price", json!({"rows": [{"price": 1}, {"amount": 5000}]})),
        ("$.input.rows[*].price", json!({"rows": [{"price": 1}, null]})),
        ("$.input.rows[*].price.net", json!({"rows": [{"price": {"net": 1}}, {"price": null}]})),
        ("$.input.rows[*][1]", json!({"rows": [[0, 1], [5000]]})),
        ("$.input.carts[*].rows[0:2].price", json!({"carts": [{"rows": [{"price": 1}, {}]}]})),
    ] {
        for condition in [
            format!("{{ any_of: {{ path: '{path}', gt: 100 }} }}"),
            format!("{{ not: {{ every: {{ path: '{path}', lte: 100 }} }} }}"),
        ] {
            assert_eq!(code(&deny(&condition), missing.clone()), "undecided", "{condition} {missing}");
        }
        let allow = format!(
            "policies: [{{ id: p, match: {{ tool: pay, where: {{ none: {{ path: '{path}', gt: 100 }} }} }}, allow: {{}} }}]\ndefaults: {{ unmatched: deny }}"
        );
        assert_eq!(code(&allow, missing.clone()), "unmatched", "{path} {missing}");
    }
    // A list inside of an element is optional, as one outside is.
    let nested = deny("{ any_of: { path: '$.input.carts[*].rows[*].price', gt: 100 } }");
    for input in [json!({"carts": [{}, {"rows": null}, {"rows": [{"price": 1}]}]}), json!({"carts": [null]})]
    {
        assert_eq!(code(&nested, input), "unmatched");
    }
}

/// A lookalike of a name that is read from an element is refused, as one that is read by a path.
#[test]
fn names_read_from_elements_are_names_that_policies_read() {
    for condition in [
        "{ any_of: { path: '$.input.items[*]', all: [{ path: $item.price, gt: 100 }] } }",
        "{ any_of: { path: $.input.items, as: row, all: [{ path: $row.price, gt: 100 }] } }",
        "{ any_of: { expr: input.items, all: [item.price > 100] } }",
        "{ any_of: { path: '$.input.carts[*].items[*]', not: { path: $item.price, lte: 100 } } }",
    ] {
        let input = match condition.contains("carts") {
            true => json!({"carts": [{"items": [{"price": 1}, {"Price": 5000}]}]}),
            false => json!({"items": [{"price": 1}, {"Price": 5000}]}),
        };
        assert_eq!(code(&deny(condition), input), "ambiguous_argument", "{condition}");
    }
    let nested = "{ any_of: { path: '$.input.carts[*]', as: cart, any_of: { path: '$cart.items[*]', all: [item.price > 1] } } }";
    for input in
        [json!({"carts": [{"Items": [{"price": 9}]}]}), json!({"carts": [{"items": [{"PRICE": 9}]}]})]
    {
        assert_eq!(code(&deny(nested), input), "ambiguous_argument");
    }
    assert_eq!(
        code(&deny(nested), json!({"carts": [{"items": [{"price": 1, "other": 9}]}], "Other": 1})),
        "unmatched"
    );
}

/// `in` over an element of the arguments looks only for elements of arrays, as over an argument.
#[test]
fn elements_of_arguments_count_as_arguments() {
    let of_arguments = "{ any_of: { path: '$.input.lists[*]', all: ['\"a\" in item'] } }";
    assert_eq!(code(&deny(of_arguments), json!({"lists": [["a"]]})), "denied");
    assert_eq!(code(&deny(of_arguments), json!({"lists": ["xax"]})), "undecided");
    let session = "{ any_of: { path: '$.context.lists[*]', all: ['\"a\" in item'] } }";
    assert_eq!(code(&deny(session), json!({})), "unmatched");
}

#[test]
fn unknown_parts_of_the_session_are_undecided_in_every_quantifier() {
    let rules = "
policies:
  - { id: keep, match: read, fact: { name: seen, value: output.missing.part } }
  - { id: p, match: { tool: pay, where: { CONDITION } }, deny: {} }
";
    for condition in [
        "none: { path: '$.session.facts.seen[*]', eq: a }",
        "not: { every: { expr: session.facts.seen, eq: a } }",
        "any_of: { path: '$.input.to[*]', in: { path: '$.session.facts.seen[*]' } }",
        "any_of: { path: '$.input.to[*]', mentioned_in: { path: $.session.facts.seen }, as: word }",
    ] {
        let text = rules.replace("CONDITION", condition);
        let loaded = callgate::load_text(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let clock = noon();
        let engine = callgate::Engine::builder(loaded).clock(clock.clone()).build();
        let tool = Tool::scripted(&clock, [(Duration::ZERO, Ok(json!({"missing": 5})))]);
        let calls = [call("read", json!({})), call("pay", json!({"to": ["ab", "cd"]}))];
        let outcomes = run(&clock, &mut engine.session(), &tool, &calls);
        assert_eq!(kind_and_code(&outcomes[1]).1, "undecided", "{condition}");
    }
}

/// The tokens of a source are read once for all elements: once for each of them would exceed the work of one decision.
#[test]
fn sources_are_read_once_for_all_elements() {
    let addresses: Vec<String> = (0..2_000).map(|number| format!("a{number}@example.com")).collect();
    let context = json!({"task": addresses.join(" ")});
    let test = "mentioned_in: { path: $.context.task }, as: email";
    for condition in [
        format!("{{ not: {{ every: {{ path: '$.input.to[*]', {test} }} }} }}"),
        format!(
            "{{ not: {{ every: {{ path: '$.input.lists[*]', as: list, every: {{ path: '$list[*]', all: [{{ {test} }}] }} }} }} }}"
        ),
    ] {
        let lists: Vec<Value> = addresses.iter().map(|address| json!([address])).collect();
        let rules =
            callgate::load_text(&deny(&condition)).unwrap_or_else(|error| panic!("{condition}: {error}"));
        let clock = noon();
        let engine = callgate::Engine::builder(rules).clock(clock.clone()).build();
        let call = call("pay", json!({"to": addresses, "lists": lists})).with_context(context.clone());
        let outcomes = run(&clock, &mut engine.session(), &Tool::counting(&clock), &[call]);
        assert_eq!(kind_and_code(&outcomes[0]).1, "unmatched", "{condition}");
    }
}
