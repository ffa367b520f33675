//! Table of diagnostic codes. Append only: a released number never gets another meaning.
//!
//! Ranges: CG0xx files, CG1xx YAML, CG2xx shape (keys and types), CG3xx values (patterns, paths, expressions), CG4xx the
//! bundle as a whole, CG5xx lints (warnings), CG6xx policy tests.

use super::Severity;

/// A stable code with its name and its page.
#[derive(Debug, PartialEq, Eq)]
pub struct Code {
    /// `CG201`.
    pub id: &'static str,
    /// `unknown-key`.
    pub name: &'static str,
    /// The severity of its diagnostics.
    pub severity: Severity,
    /// The page that `callgate rule` prints: Markdown with a bad and a good example.
    pub page: &'static str,
}

macro_rules! codes {
    ($($constant:ident = $id:literal $name:literal;)*) => {
        $(
            #[doc = concat!("`", $id, "` ", $name, ".")]
            pub static $constant: Code = Code {
                id: $id,
                name: $name,
                severity: severity($id),
                page: include_str!(concat!("pages/", $id, ".md")),
            };
        )*
        /// Every code, in the order of their numbers.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

codes! {
    UNREADABLE_FILE = "CG001" "unreadable-file";
    MISSING_PATH = "CG002" "missing-path";
    NO_RULES_FILES = "CG003" "no-rules-files";
    FILE_TOO_LARGE = "CG004" "file-too-large";
    NOT_UTF8 = "CG005" "not-utf8";
    OUTSIDE_BUNDLE = "CG006" "outside-bundle";
    BUNDLE_TOO_LARGE = "CG007" "bundle-too-large";
    PROBLEMS_LEFT_OUT = "CG008" "problems-left-out";

    YAML_SYNTAX = "CG101" "yaml-syntax";
    DUPLICATE_KEY = "CG102" "duplicate-key";
    SEVERAL_DOCUMENTS = "CG103" "several-documents";
    EMPTY_FILE = "CG104" "empty-file";
    YAML_FEATURE = "CG105" "unsupported-yaml-feature";
    YAML_LIMIT = "CG106" "yaml-limit";
    BAD_ALIAS = "CG107" "bad-alias";

    UNKNOWN_KEY = "CG201" "unknown-key";
    MISSING_KEY = "CG202" "missing-key";
    WRONG_TYPE = "CG203" "wrong-type";
    UNKNOWN_VALUE = "CG204" "unknown-value";
    OUT_OF_RANGE = "CG205" "out-of-range";
    EMPTY_VALUE = "CG206" "empty-value";
    CONFLICTING_KEYS = "CG207" "conflicting-keys";
    KIND_COUNT = "CG208" "one-kind-per-policy";
    UNSUPPORTED_VERSION = "CG209" "unsupported-version";

    INVALID_REGEX = "CG301" "invalid-regex";
    INVALID_PATH = "CG302" "invalid-path";
    INVALID_DURATION = "CG303" "invalid-duration";
    INVALID_SCHEMA = "CG304" "invalid-schema";
    INVALID_SCRIPT = "CG305" "invalid-script";
    INVALID_TEMPLATE = "CG306" "invalid-template";
    INVALID_PATTERN = "CG307" "invalid-tool-pattern";
    PATH_NOT_HERE = "CG308" "path-not-available-here";
    INVALID_OPERAND = "CG309" "invalid-operand";
    UNKNOWN_NAME = "CG310" "unknown-name";
    IMPOSSIBLE_TYPE = "CG311" "impossible-type";
    INVALID_DATA = "CG313" "invalid-data";
    MINIMUM_NEEDED = "CG314" "minimum-needed";
    FOLDING_PERMITS = "CG315" "folding-permits";

    DUPLICATE_ID = "CG401" "duplicate-id";
    DEFAULTS_DISAGREE = "CG402" "defaults-disagree";
    MISSING_QUANTIFIER = "CG403" "quantifier-needed";
    MISSING_MATCHER = "CG404" "matcher-needed";
    DUPLICATE_NAME = "CG405" "duplicate-name";
    CYCLIC_DEFINITION = "CG406" "cyclic-definition";

    CONTRADICTING_TESTS = "CG501" "contradicting-tests";
    UNKNOWN_TOOL = "CG502" "unknown-tool";
    UNKNOWN_ARGUMENT = "CG503" "unknown-argument";
    TEST_OF_WRONG_TYPE = "CG504" "test-of-wrong-type";
    UNKNOWN_ENUM_VALUE = "CG505" "unknown-enum-value";
    SHADOWED_POLICY = "CG506" "shadowed-policy";
    DUPLICATE_POLICY = "CG507" "duplicate-policy";
    OVERLAPPING_POLICIES = "CG508" "overlapping-policies";
    MOOT_BEHIND_RESPOND = "CG509" "moot-behind-respond";
    GATE_BEHIND_TRANSFORM = "CG510" "gate-behind-transform";
    ESCAPE_BY_ABSENCE = "CG511" "escape-by-absence";
    ANY_OF_SEVERAL = "CG512" "any-of-several";
    UNANCHORED_REGEX = "CG513" "unanchored-regex";
    COSTLY_REGEX = "CG514" "costly-regex";
    COSTLY_SCRIPT = "CG515" "costly-script";
    CACHE_OF_CHANGES = "CG516" "cache-of-changes";
    CACHE_SHARED_TOO_WIDELY = "CG517" "cache-shared-too-widely";
    KEY_CHOSEN_BY_CLIENT = "CG518" "key-chosen-by-client";
    SECRET_IN_RULES = "CG519" "secret-in-rules";
    QUESTION_SHOWS_REDACTED = "CG520" "question-shows-redacted";
    NOTHING_RESTRICTED = "CG521" "nothing-restricted";
    UNTESTED_POLICY = "CG522" "untested-policy";
    ALLOWANCE_WITHOUT_REASON = "CG523" "allowance-without-reason";
    UNUSED_ALLOWANCE = "CG524" "unused-allowance";
    APPROVER_NAMES_ROLE = "CG525" "approver-names-role";
    UNWRITTEN_NAME = "CG526" "unwritten-fact-or-label";
    UNUSED_NAME = "CG527" "unused-name";
    SLASHES_IN_REGEX = "CG528" "slashes-in-regex";
    PATTERN_IN_LITERAL = "CG529" "pattern-in-literal";
    LINE_BREAK_IN_PATTERN = "CG530" "line-break-in-pattern";
    SUBSTRING_PROVENANCE = "CG531" "substring-provenance";
    SHADOWED_NAME = "CG532" "shadowed-name";
    OPTIONAL_NULL_LIST = "CG533" "optional-null-list";
    UNTRUSTED_SOURCE = "CG534" "untrusted-source";
    OUTPUT_OF_DECLARED_RESULT = "CG535" "output-of-declared-result";
    TASK_NEVER_SET = "CG536" "task-never-set";
    UNKNOWN_MEMBER = "CG537" "unknown-member";

    INVALID_TIME = "CG601" "invalid-time";
    INVALID_TOOLS = "CG602" "invalid-tools";
    NOTHING_EXPECTED = "CG603" "nothing-expected";
    NOTHING_CALLED = "CG604" "nothing-called";
    DUPLICATE_CASE = "CG605" "duplicate-case";
    UNKNOWN_POLICY = "CG606" "unknown-policy";
}

/// Problems found by loading are errors, problems found by a lint are warnings.
const fn severity(id: &str) -> Severity {
    match id.as_bytes() {
        [b'C', b'G', b'5', ..] => Severity::Warning,
        _ => Severity::Error,
    }
}

/// Returns the code with this id (`CG201`) or name (`unknown-key`), case-insensitive.
pub fn find_code(word: &str) -> Option<&'static Code> {
    ALL.iter()
        .copied()
        .find(|code| code.id.eq_ignore_ascii_case(word) || code.name.eq_ignore_ascii_case(word))
}
