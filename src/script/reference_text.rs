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
        "iterates over the elements of an array, or the sorted keys of an object; in `for (x, i) in …`, `i` counts from 0",
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
        "`|x| …` or `|x| { … }` is an argument of `all`, `some`, `filter` and `map`",
    ),
    (
        "try { next(input) } catch (e) { throw e; }",
        "catches errors of effects, errors that the script throws, and runtime errors (`kind` is then `script_error`); `e` has \
         `message` and `kind`. Exceeded limits are not caught",
    ),
    (
        "throw \"text\";",
        "ends the call with an error; also takes an object with `message` and optional `kind`",
    ),
    (
        "return input;",
        "returns from the script, function or closure; without it, the value of the last statement is returned",
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
