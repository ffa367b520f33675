//! Functions on hosts, mail domains and directories, with the rules of the tests of the same names.

use super::FunctionResult;
use super::arguments::{expect_string, wrong_type};
use crate::address::{
    Directory, DomainPattern, HostPattern, Undecided, every_domain_matches, parse_address_domains,
    parse_url_host,
};
use crate::script::fuel::{EvalError, Fuel};
use crate::script::value::{ScriptValue, ValueKind};

/// `domain(addresses)`, or whether the domain of every address matches a pattern.
pub(in crate::script) fn domain<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    patterns: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    let text = expect_string("domain", value)?;
    work.spend_scan(text.len())?;
    if let Some(patterns) = patterns {
        let patterns = parse_patterns(work, "domain", patterns, DomainPattern::parse)?;
        return Ok(ScriptValue::Boolean(every_domain_matches(&patterns, text).map_err(undecided)?));
    }
    let mut domains = parse_address_domains(text).map_err(undecided)?;
    domains.dedup();
    match domains.as_slice() {
        [only] => ScriptValue::text(work, only),
        _ => Err("the addresses have several domains".into()),
    }
}

/// `host(url)`, or whether the host of a URL matches a pattern.
pub(in crate::script) fn host<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    patterns: Option<&ScriptValue<'r>>,
) -> FunctionResult<'r> {
    let text = expect_string("host", value)?;
    work.spend_scan(text.len())?;
    if !text.contains("://") {
        return Err(
            "`host` takes a URL, and this string has no `://`: `urls(text)` returns the URLs of a text"
                .into(),
        );
    }
    match patterns {
        Some(patterns) => {
            let patterns = parse_patterns(work, "host", patterns, HostPattern::parse)?;
            any_matches(&patterns, |pattern| pattern.matches(text))
        }
        None => ScriptValue::text(work, &parse_url_host(text).map_err(undecided)?.to_string()),
    }
}

/// Whether a path is inside a directory.
pub(in crate::script) fn inside<'r>(
    work: &Fuel,
    value: &ScriptValue<'r>,
    directories: &ScriptValue<'r>,
) -> FunctionResult<'r> {
    let text = expect_string("inside", value)?;
    work.spend_scan(text.len())?;
    let directories = parse_patterns(work, "inside", directories, |text| Directory::parse(text, None))?;
    any_matches(&directories, |directory| directory.contains(text))
}

/// Parses a pattern or an array of patterns.
fn parse_patterns<P>(
    work: &Fuel,
    name: &str,
    value: &ScriptValue<'_>,
    parse: impl Fn(&str) -> Result<P, String>,
) -> Result<Vec<P>, EvalError> {
    let parse = |text: &str| {
        work.spend_step()?;
        work.spend_scan(text.len())?;
        parse(text).map_err(EvalError::Error)
    };
    match value.kind() {
        ValueKind::String(text) => Ok(vec![parse(text)?]),
        ValueKind::Array(items) => {
            items.iter().map(|item| parse(expect_string(name, &item)?)).collect::<Result<_, _>>()
        }
        other => Err(wrong_type(name, "a string or an array of strings", other.json_type())),
    }
}

/// Whether one of the patterns matches. Undecided if none does and one of them is.
fn any_matches<'r, P>(patterns: &[P], matches: impl Fn(&P) -> Result<bool, Undecided>) -> FunctionResult<'r> {
    let mut open = None;
    for pattern in patterns {
        match matches(pattern) {
            Ok(true) => return Ok(ScriptValue::Boolean(true)),
            Ok(false) => {}
            Err(why) => open = Some(why),
        }
    }
    match open {
        Some(why) => Err(undecided(why)),
        None => Ok(ScriptValue::Boolean(false)),
    }
}

fn undecided(why: Undecided) -> EvalError {
    why.to_string().into()
}
