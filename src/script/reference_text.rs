//! Reference text on scripts (variables, statements, numbers), beside the table of functions.

/// The variables of a script and their content.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "input",
        "the arguments; an ordinary variable: a change to it takes effect only when the script passes it to `next`",
    ),
    ("tool", "the tool's name"),
    ("server", "the MCP server's name, or null"),
    ("id", "the call's id"),
    ("context", "trusted values from the host, an object"),
    ("session", "the session as it was when the script began: `labels`, `facts`, `calls`"),
    ("annotations", "the annotations that the tool's server declares, or null; untrusted"),
    ("options", "the options that the host passes to its executor, or null"),
];

/// The statements of a script: an example of each, and what it does.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("let x = 1;", "declares a variable; arrays and objects are copied, never shared"),
    ("const TOP = 100;", "declares a constant"),
    (
        "input.limit = 10; input[\"cc\"] = []; let n = 1; n += 1;",
        "assigns to a variable, or to a member or element of it; also `-=`, `*=`, `/=`, `%=`, `**=`. \
         The last key may be new, all before it must exist",
    ),
    (
        "if input.limit > 10 { \"many\" } else { \"few\" }",
        "also usable as a value; the condition must be a boolean",
    ),
    (
        "for x in [1, 2] { audit(#{ n: x }); }",
        "iterates over the elements of an array, a range of whole numbers (`1..5`, `1..=5`), or, in `around` scripts only, the sorted keys of an object; in \
         `for (x, i) in …`, `i` counts from 0",
    ),
    (
        "switch input.size { \"s\" | \"m\" => 1, \"l\" if input.n > 3 => 2, _ => 3 }",
        "takes the first arm with a case that the value equals and a condition that holds, else `_`, else null; a case is a string, a number, a \
         boolean, `()` or a range, and the value has the type of one of them",
    ),
    ("while input.n < 3 { input.n += 1; }", "repeats while a condition is true"),
    (
        "loop { if random() < 0.5 { break; } }",
        "repeats until `break` (optionally with a value) or `return`; `continue` starts the next iteration",
    ),
    (
        "fn double(x) { x * 2 }",
        "defines a function; it can read its parameters and the variables listed above except `input`",
    ),
    (
        "input.list.filter(|x| x > 1)",
        "`|x| …` or `|x| { … }` is an argument of a function on arrays; a second parameter is the index",
    ),
    (
        "let twice = |x| x * 2; twice.call(4);",
        "a variable can hold a closure: call it, or pass it to a function such as `map`. It is not a value: it cannot be stored in arrays, \
         passed to functions of the script or returned",
    ),
    ("input.name[0..3]", "the characters or elements with these indices"),
    (
        "try { next(input) } catch (e) { throw e; }",
        "catches errors of effects, errors that the script throws, and runtime errors (`kind` is then `script_error`); `e` has \
         `message` and `kind`. Exceeded limits are not caught. In `functions` and in scripts of `deny`, `halt` and `approval`, only what is \
         thrown is caught, so that nothing undecided becomes a value",
    ),
    (
        "throw \"text\";",
        "ends the call with an error; also takes an object with `message` and optional `kind`, and nothing else",
    ),
    (
        "return input;",
        "returns from the script, function or closure; without it, the value of the last statement is returned",
    ),
];

/// A script with another result than in Rhai.
#[derive(Debug)]
pub struct RhaiDifference {
    /// The script.
    pub script: &'static str,
    /// Its result in Rhai, as JSON; `error` if it fails.
    pub in_rhai: &'static str,
    /// Its result here.
    pub here: &'static str,
    /// The rule.
    pub rule: &'static str,
}

impl RhaiDifference {
    const fn new(
        script: &'static str,
        in_rhai: &'static str,
        here: &'static str,
        rule: &'static str,
    ) -> Self {
        Self { script, in_rhai, here, rule }
    }
}

/// What differs from Rhai and is not refused when the rules are loaded.
pub const DIFFERENCES: &[RhaiDifference] = &[
    RhaiDifference::new("7 / 2", "3", "3.5", "numbers are exact decimals, not integers and floats"),
    RhaiDifference::new(
        "switch 1.0 { 1 => \"one\", _ => \"other\" }",
        "\"other\"",
        "\"one\"",
        "1 and 1.0 are the same number",
    ),
    RhaiDifference::new(
        "9223372036854775807 + 1",
        "error",
        "9223372036854775808",
        "a result of up to 34 digits does not overflow",
    ),
    RhaiDifference::new("1 == \"1\"", "false", "error", "comparing values of different types is an error"),
    RhaiDifference::new(
        "switch 1 { \"a\" => 1, _ => 2 }",
        "2",
        "error",
        "the value of `switch` has the type of one of its cases",
    ),
    RhaiDifference::new("\"a\" + 1", "\"a1\"", "error", "`+` joins two strings, and adds two numbers"),
    RhaiDifference::new("let o = #{}; o.a", "null", "error", "a missing key is absent: write `o.a ?? ()`"),
    RhaiDifference::new("[1].find(|x| x > 1)", "null", "error", "`find` without a hit is absent"),
    RhaiDifference::new("[].pop()", "null", "error", "`pop` needs an element"),
    RhaiDifference::new(
        "let s = \" a \"; let t = s.trim(); s",
        "\"a\"",
        "\" a \"",
        "`trim` and `replace` return a new string. As a statement of its own, `s.trim();` is refused: write `s = s.trim();`",
    ),
    RhaiDifference::new(
        "let a = [2, 1]; let b = a.sort(); a",
        "[1, 2]",
        "[2, 1]",
        "`sort` and `reverse` return a new array. As a statement of its own, `a.sort();` is refused: write `a = a.sort();`",
    ),
    RhaiDifference::new(
        "let o = #{ a: 1 }; o.remove(\"a\")",
        "1",
        "true",
        "`remove` returns whether the key existed",
    ),
    RhaiDifference::new("try { 1 } catch { 2 }", "null", "1", "`try` has the value of its block"),
    RhaiDifference::new("type_of(1)", "\"i64\"", "\"number\"", "`type_of` returns the JSON type"),
    RhaiDifference::new(
        "`${[1, 2]} ${()}`",
        "\"[1, 2] \"",
        "\"[1,2] null\"",
        "arrays, objects and null are JSON in a text",
    ),
    RhaiDifference::new("[1, 2, 3][0..2]", "error", "[1, 2]", "an array can be indexed by a range, too"),
    RhaiDifference::new("1.5 in 1..5", "error", "true", "a range contains numbers with a fraction, too"),
    RhaiDifference::new(
        "let e = 0; try { throw \"no\"; } catch (thrown) { e = thrown; } e",
        "\"no\"",
        "{\"message\": \"no\", \"kind\": \"\"}",
        "what is caught is always an object with `message` and `kind`",
    ),
    RhaiDifference::new(
        "let x = 42; let e = 0; try { throw x; } catch (thrown) { e = thrown.kind; } e",
        "error",
        "\"script_error\"",
        "`throw` of anything but a string or such an object is an error of the script; where a literal is thrown, it is refused",
    ),
    RhaiDifference::new(
        "0 < 1e-16",
        "false",
        "true",
        "numbers are compared exactly, and not within the precision of floats",
    ),
    RhaiDifference::new(
        "4.0 ** 0.5",
        "2",
        "error",
        "the exponent is a whole number from 0; `sqrt` takes roots",
    ),
    RhaiDifference::new(
        "`${2.0 * 3}`",
        "\"6.0\"",
        "\"6\"",
        "a computed number is written without trailing zeros",
    ),
    RhaiDifference::new("true < false", "false", "error", "`<` compares two numbers or two strings"),
    RhaiDifference::new(
        "[1] + [2]",
        "[1, 2]",
        "error",
        "`+` takes no arrays or objects: use `push` and `merge`",
    ),
    RhaiDifference::new(
        "\"abc\" - \"b\"",
        "\"ac\"",
        "error",
        "`-` subtracts numbers; `replace` removes parts of a string",
    ),
    RhaiDifference::new("\"abc\".len", "3", "error", "functions need parentheses: `s.len()`"),
    RhaiDifference::new(
        "#{ a: 1 }.contains(\"a\")",
        "true",
        "error",
        "`contains` takes a string or an array: write `\"a\" in o`",
    ),
    RhaiDifference::new("\"abc\".index_of(\"c\")", "2", "error", "`index_of` searches arrays"),
    RhaiDifference::new("[1, 2].remove(0)", "1", "error", "`remove` takes an object and a key"),
    RhaiDifference::new(
        "[1, 2].all(|x| x)",
        "false",
        "error",
        "the closures of `all`, `some`, `filter` and `find` return a boolean",
    ),
    RhaiDifference::new("[]?[5] ?? 7", "error", "7", "`?[` takes an index out of range as absent"),
    RhaiDifference::new(
        "let list = [1, 2]; list.map(|x| x + list.len())",
        "error",
        "[3, 4]",
        "a closure may read the array that it is called for; the function sees the elements that it had before",
    ),
];

/// Reference text on numbers, in expressions and scripts alike.
pub const NUMBERS: &str = "\
Numbers are exact decimals of up to 34 significant digits, from 1e-6144 to 1e6144: `0.1 + 0.2 == 0.3` is true. Literals are \
read exactly. `+`, `-`, `*`, `%` and `**` (the exponent is a whole number from 0) return the exact result; one that needs more than \
34 digits is an error, which leaves a condition undecided. `/` rounds half to even at 34 digits; round the quotient before you use it: \
`round(a / b, 10) * 1.19`. `round` rounds a half away from zero, as invoices do. JSON numbers of any size are compared exactly, but \
arithmetic beyond 34 digits is an error. Computed numbers are written without \
trailing zeros after the point (`1.5`); numbers that are passed on unchanged keep their notation (`1.50`).";
