//! Functions on addresses, on tokens of texts, and on sensitive data.

use crate::script::function_library::{addresses, tokens};
use crate::script::script_function::{Implementation, ScriptFunction};

pub(super) const FUNCTIONS: &[ScriptFunction] = &[
    ScriptFunction::new(
        "amounts",
        &["string", "decimal mark?"],
        "the amounts of money in a text, as `#{ value, currency }`; undecided as `numbers`",
        Implementation::OneOrTwo(tokens::amounts),
    ),
    ScriptFunction::new(
        "detects",
        &["value", "\"detector\""],
        "whether a detector, or one of an array of detectors, finds sensitive data in a string, in a number, or anywhere in an array or object",
        Implementation::Detects,
    ),
    ScriptFunction::new(
        "domain",
        &["addresses", "patterns?"],
        "the mail domain of an address; with a pattern or an array of patterns, whether the domain of every address matches one, as the test `domain` does. Undecided for a list that programs read differently",
        Implementation::OneOrTwo(addresses::domain),
    ),
    ScriptFunction::new(
        "emails",
        &["string"],
        "the e-mail addresses in a text, in normal form",
        Implementation::One(tokens::emails),
    ),
    ScriptFunction::new(
        "host",
        &["url", "patterns?"],
        "the host of a URL; with a pattern or an array of patterns, whether it matches one, as the test `host` does. Undecided for a URL that programs read differently",
        Implementation::OneOrTwo(addresses::host),
    ),
    ScriptFunction::new(
        "hosts",
        &["string"],
        "the hosts of URLs, the bare host names and the IP addresses in a text. A name such as `report.pdf`, whose ending is that of a file and no top-level domain, is no host; `invoice.zip` is one, because `zip` is a top-level domain",
        Implementation::One(tokens::hosts),
    ),
    ScriptFunction::new(
        "ibans",
        &["string"],
        "the valid bank account numbers (IBAN) in a text, without separators",
        Implementation::One(tokens::ibans),
    ),
    ScriptFunction::new(
        "inside",
        &["path", "directories"],
        "whether an absolute path is in a directory, or in one of an array, as the test `inside` does. Undecided for a path that programs read differently",
        Implementation::Two(addresses::inside),
    ),
    ScriptFunction::new(
        "mentioned",
        &["value", "source", "\"kind\"", "\"decimal mark\"?"],
        "whether a value equals a whole token of a string, or of any string in an array or object, as the test `mentioned_in` does. The kinds are `email`, `url`, `host`, `iban`, `number`, `path` and `word`. Undecided if the value is not exactly one token",
        Implementation::Mentioned,
    ),
    ScriptFunction::new(
        "numbers",
        &["string", "decimal mark?"],
        "the numbers in a text. Undecided for a number with two readings such as `1.234`, unless the decimal mark is given: `\".\"` or `\",\"`",
        Implementation::OneOrTwo(tokens::numbers),
    ),
    ScriptFunction::new("paths", &["string"], "the file paths in a text", Implementation::One(tokens::paths)),
    ScriptFunction::new(
        "urls",
        &["string"],
        "the URLs in a text, in normal form; a bare host is one with `http` and one with `https`, a file name such as `report.pdf` none",
        Implementation::One(tokens::urls),
    ),
];
