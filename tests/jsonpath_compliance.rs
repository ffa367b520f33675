//! The complete public JSONPath compliance suite (RFC 9535).

use callgate::json::{Value, parse};
use callgate::path::Query;

const CASES: usize = 703;

#[test]
fn every_case_of_the_compliance_suite_passes() {
    let suite = parse(include_str!("jsonpath_compliance/cts.json")).unwrap();
    let cases = suite["tests"].as_array().unwrap();
    let failed: Vec<String> = cases.iter().filter_map(|case| failure(case).err()).collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    assert_eq!(cases.len(), CASES);
}

fn failure(case: &Value) -> Result<(), String> {
    let (Some(name), Some(selector)) = (case["name"].as_str(), case["selector"].as_str()) else {
        return Err(format!("{case} is not a case"));
    };
    let query = Query::parse(selector);
    if case.get("invalid_selector").is_some() {
        return match query {
            Ok(_) => Err(format!("{name}: `{selector}` is accepted")),
            Err(error) if selector.get(error.range.clone()).is_none() => {
                Err(format!("{name}: `{selector}` has no bytes {:?}", error.range))
            }
            Err(_) => Ok(()),
        };
    }
    let query = query.map_err(|error| format!("{name}: `{selector}` is rejected: {error}"))?;
    let selected = query.select(&case["document"]).map_err(|mismatch| format!("{name}: {mismatch}"))?;
    let selected = Value::Array(selected.into_iter().cloned().collect());
    // If the order of an object's members is unspecified, the suite lists every valid order.
    let is_valid = match case["results"].as_array() {
        Some(results) => results.contains(&selected),
        None => selected == case["result"],
    };
    if is_valid { Ok(()) } else { Err(format!("{name}: `{selector}` selects {selected}")) }
}
