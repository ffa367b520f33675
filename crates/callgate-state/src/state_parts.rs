//! State that several hosts share: the value of `--state` → a store in PostgreSQL, in Redis, or in both.

use std::sync::Arc;

use callgate::host::{CombinedStore, LimitStore, StateStore};
use callgate::state::MemoryStore;
use callgate_postgres::{PostgresSettings, PostgresStore};
use callgate_redis::{RedisSettings, RedisStore};

use crate::sharded_limits::ShardedLimits;
use crate::state_error::StateError;

/// Which engine has which part of the state.
#[derive(Debug, PartialEq, Eq)]
pub struct StateParts {
    /// Calls, approvals, remembered approvals, sessions and budgets.
    records: String,
    /// Limits and slots.
    limits: String,
    /// Cached results.
    cache: String,
    /// Into how many shards great limits are split.
    limit_shards: Option<u32>,
}

/// The parameter of the URL of limits that splits them.
const LIMIT_SHARDS: &str = "limit_shards";
/// The most shards. Each may be asked before a call is refused.
const MAX_SHARDS: u32 = 64;

impl StateParts {
    /// Reads the URL of one engine, or `records=URL limits=URL cache=URL`. Returns `None` if it names none that hosts share.
    ///
    /// # Errors
    /// If a part is unknown, occurs twice, or has another URL; or if `records` is missing.
    pub fn parse(value: &str) -> Result<Option<Self>, StateError> {
        if is_engine(value) && !value.contains(char::is_whitespace) {
            let (url, limit_shards) = take_shards(value)?;
            return Ok(Some(Self { records: url.clone(), limits: url.clone(), cache: url, limit_shards }));
        }
        if !has_parts(value) {
            return Ok(None);
        }
        let [mut records, mut limits, mut cache] = [None, None, None];
        let mut limit_shards = None;
        for word in value.split_whitespace() {
            let (name, url) = word.split_once('=').unwrap_or((word, ""));
            let part = match name {
                "records" => &mut records,
                "limits" => &mut limits,
                "cache" => &mut cache,
                _ => {
                    return Err(StateError::new(format!(
                        "the parts of a state are `records=URL`, `limits=URL` and `cache=URL`, separated by spaces; `{}` is none of them",
                        without_password(name)
                    )));
                }
            };
            let is_known = is_engine(url) || name == "cache" && url == "memory:";
            if !is_known {
                return Err(StateError::new(format!(
                    "`{name}` of the state needs `postgres://…`, `redis://…` or `rediss://…`{}",
                    if name == "cache" { ", or `memory:` for a cache of each process" } else { "" }
                )));
            }
            let (url, shards) = take_shards(url)?;
            if shards.is_some() && name != "limits" {
                return Err(StateError::new(format!(
                    "`{LIMIT_SHARDS}` belongs to the URL of `limits`, not of `{name}`: write `limits=URL?{LIMIT_SHARDS}=N`"
                )));
            }
            limit_shards = limit_shards.or(shards);
            if part.replace(url).is_some() {
                return Err(StateError::new(format!("`{name}` of the state occurs twice; keep one of them")));
            }
        }
        let Some(records) = records else {
            return Err(StateError::new(
                "the state has no `records=URL`, where calls and approvals are stored; add it",
            ));
        };
        let other = |part: Option<String>| part.unwrap_or_else(|| records.clone());
        let (limits, cache) = (other(limits), other(cache));
        Ok(Some(Self { records, limits, cache, limit_shards }))
    }

    /// Opens each engine once.
    pub(crate) fn open_engines(&self) -> Result<CombinedStore, StateError> {
        let records = open_engine(&self.records)?;
        let limits =
            if self.limits == self.records { Arc::clone(&records) } else { open_engine(&self.limits)? };
        let cache = match &self.cache {
            url if *url == self.records => Arc::clone(&records),
            url if *url == self.limits => Arc::clone(&limits),
            url => open_engine(url)?,
        };
        let limits: Arc<dyn LimitStore> = match self.limit_shards {
            Some(shards) => Arc::new(ShardedLimits::new(limits, shards)),
            None => limits,
        };
        Ok(CombinedStore::new(records).with_limits(limits).with_cache(cache))
    }

    /// For people: the URL, or those that differ from that of the records.
    pub fn without_passwords(&self) -> String {
        let Self { records, limits, cache, .. } = self;
        if limits == records && cache == records {
            return without_password(records);
        }
        let mut shown = format!("records={}", without_password(records));
        for (name, url) in [("limits", limits), ("cache", cache)] {
            if url != records {
                shown.push_str(&format!(" {name}={}", without_password(url)));
            }
        }
        shown
    }
}

/// Separates `limit_shards=N` from the other parameters of a URL.
fn take_shards(url: &str) -> Result<(String, Option<u32>), StateError> {
    let Some((base, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut others, mut shards) = (Vec::new(), None);
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((LIMIT_SHARDS, number)) => {
                let number = number.parse().ok().filter(|number| (2..=MAX_SHARDS).contains(number));
                shards = Some(number.ok_or_else(|| {
                    StateError::new(format!("`{LIMIT_SHARDS}` must be a number from 2 to {MAX_SHARDS}"))
                })?);
            }
            _ => others.push(pair),
        }
    }
    if shards.is_some() && !is_postgres(url) {
        return Err(StateError::new(format!(
            "`{LIMIT_SHARDS}` is for PostgreSQL: in Redis all limits share one core, whether they are split or not"
        )));
    }
    let base = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    Ok((base, shards))
}

/// Whether a value of `--state` names state that hosts share, rather than a file.
pub fn is_shared(value: &str) -> bool {
    is_engine(value) || has_parts(value)
}

/// Whether a URL names a database or a server.
fn is_engine(url: &str) -> bool {
    is_postgres(url)
        || ["redis://", "rediss://", "valkey://", "valkeys://"].iter().any(|scheme| url.starts_with(scheme))
}

fn is_postgres(url: &str) -> bool {
    ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
}

fn has_parts(value: &str) -> bool {
    let is_part = |word: &str| ["records=", "limits=", "cache="].iter().any(|name| word.starts_with(name));
    value.split_whitespace().any(is_part)
}

fn open_engine(url: &str) -> Result<Arc<dyn StateStore>, StateError> {
    let shown = without_password(url);
    let failed = |error: &dyn std::fmt::Display| StateError::new(format!("`{shown}`: {error}"));
    let password = |variable: &str| std::env::var(variable).ok();
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::default()));
    }
    if is_postgres(url) {
        let settings = PostgresSettings::parse(url, password("PGPASSWORD").as_deref());
        let settings = settings.map_err(|error| StateError::new(error.to_string()))?;
        return Ok(Arc::new(PostgresStore::open(settings).map_err(|error| failed(&error))?));
    }
    let settings = RedisSettings::parse(url, password("REDISCLI_AUTH").as_deref());
    let settings = settings.map_err(|error| StateError::new(error.to_string()))?;
    Ok(Arc::new(RedisStore::open(settings).map_err(|error| failed(&error))?))
}

/// A URL for people: without its password.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split_once(':').map_or(user, |(name, _)| name);
            format!("{scheme}://{user}@{host}{path}")
        }
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("postgres://u:secret@h/x", "postgres://u@h/x"),
            ("postgres://u:sec@ret@h:5432/x?schema=s", "postgres://u@h:5432/x?schema=s"),
            ("postgres://u@h", "postgres://u@h"),
            ("postgres://h/x?a=b:c@d", "postgres://h/x?a=b:c@d"),
            ("rediss://:secret@h?namespace=n", "rediss://@h?namespace=n"),
            ("file:state.db", "file:state.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
        let parts = "records=postgres://u:secret@h/x limits=redis://:secret@localhost cache=memory:";
        let parts = StateParts::parse(parts).unwrap().unwrap();
        let shown = "records=postgres://u@h/x limits=redis://@localhost cache=memory:";
        assert_eq!(parts.without_passwords(), shown);
    }

    #[test]
    fn parts_that_are_not_named_are_those_of_the_records() {
        let parts = |value: &str| {
            let parts = StateParts::parse(value).unwrap()?;
            Some([parts.records, parts.limits, parts.cache])
        };
        let [postgres, redis] = ["postgres://h/x", "rediss://h"];
        let expected = |parts: [&str; 3]| Some(parts.map(str::to_owned));
        assert_eq!(parts(redis), expected([redis; 3]));
        assert_eq!(parts("records=postgres://h/x"), expected([postgres; 3]));
        let combined = "  limits=rediss://h   records=postgres://h/x ";
        assert_eq!(parts(combined), expected([postgres, redis, postgres]));
        let combined = "cache=memory: records=postgres://h/x limits=rediss://h";
        assert_eq!(parts(combined), expected([postgres, redis, "memory:"]));
        for value in ["file:state.db", "memory:", "", "file:a b"] {
            assert_eq!(parts(value), None, "{value}");
        }
    }

    #[test]
    fn shards_of_limits_are_no_parameter_of_the_engine() {
        let parts = |value: &str| {
            let parts = StateParts::parse(value).unwrap().unwrap();
            (parts.records, parts.limits, parts.limit_shards)
        };
        let url = || "postgres://h/x?schema=s".to_owned();
        assert_eq!(parts("postgres://h/x?limit_shards=8&schema=s"), (url(), url(), Some(8)));
        assert_eq!(parts("postgres://h/x?schema=s"), (url(), url(), None));
        let combined = "records=postgres://h/x?schema=s limits=postgres://h/x?schema=s&limit_shards=64";
        assert_eq!(parts(combined), (url(), url(), Some(64)));
    }

    #[test]
    fn parts_without_records_or_with_others_are_rejected() {
        for (value, expected) in [
            ("limits=redis://localhost", "no `records=URL`"),
            ("records=postgres://h/x records=postgres://h/y", "occurs twice"),
            ("records=file:state.db", "needs `postgres://…`"),
            ("records=postgres://h/x limits=memory:", "needs `postgres://…`"),
            ("records=postgres://h/x approvals=redis://u:secret@h", "is none of them"),
            ("records=postgres://h/x redis://u:secret@h", "is none of them"),
            ("postgres://h/x?limit_shards=1", "a number from 2 to 64"),
            ("postgres://h/x?limit_shards=many", "a number from 2 to 64"),
            ("redis://h?limit_shards=8", "is for PostgreSQL"),
            ("records=postgres://h/x?limit_shards=8 limits=postgres://h/y", "belongs to the URL of `limits`"),
        ] {
            let Err(StateError::Unusable(why)) = StateParts::parse(value) else { panic!("{value}") };
            assert!(why.contains(expected) && !why.contains("secret"), "{value}: {why}");
        }
    }
}
