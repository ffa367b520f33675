//! The scripts that the server runs: each is one atomic operation, sent by its digest and loaded when the server does not know it.

use redis::Script;

/// The scripts of a store.
pub(crate) struct Scripts {
    pub(crate) open: Script,
    pub(crate) acquire: Script,
    pub(crate) correct: Script,
    pub(crate) release: Script,
    pub(crate) close: Script,
    pub(crate) maintain: Script,
    pub(crate) write_record: Script,
    pub(crate) read_page: Script,
    pub(crate) read_batch: Script,
    pub(crate) maintain_records: Script,
    pub(crate) cache_get: Script,
    pub(crate) cache_put: Script,
    pub(crate) cache_clear: Script,
    pub(crate) maintain_cache: Script,
}

macro_rules! script {
    ($($file:literal)*) => {
        Script::new(concat!($(include_str!(concat!("scripts/", $file, ".lua")), "\n"),*))
    };
}

impl Scripts {
    pub(crate) fn new() -> Self {
        Self {
            open: script!("open"),
            acquire: script!("shares" "integers" "limit_state" "slots" "acquire"),
            correct: script!("shares" "integers" "limit_state" "correct"),
            release: script!("shares" "slots" "release"),
            close: script!("shares" "slots" "close"),
            maintain: script!("shares" "integers" "limit_state" "slots" "maintain"),
            write_record: script!("shares" "record_state" "write_record"),
            read_page: script!("shares" "record_state" "read_page"),
            read_batch: script!("shares" "record_state" "read_batch"),
            maintain_records: script!("shares" "record_state" "maintain_records"),
            cache_get: script!("shares" "cache_state" "cache_get"),
            cache_put: script!("shares" "cache_state" "cache_put"),
            cache_clear: script!("shares" "cache_state" "cache_clear"),
            maintain_cache: script!("shares" "cache_state" "maintain_cache"),
        }
    }
}
