//! What the reference says of scripts, beside the table of functions.

/// The variables of a script, with what they hold.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "input",
        "the arguments; a variable like any other, changing it changes nothing but what the script hands to `next`",
    ),
    ("tool", "the tool's name"),
    ("server", "the MCP server's name, or null"),
    ("id", "the call's id"),
    ("context", "what the host vouches for, an object"),
    ("session", "what the session had seen when the script began: `labels`, `facts`, `calls`"),
    ("annotations", "what the tool's server says of it, or null; untrusted"),
    ("options", "what the host passes to its executor, or null"),
];

/// The statements of a script, each by an example, with what they do.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("let x = 1;", "a variable; arrays and objects are copied, never shared"),
    ("const TOP = 100;", "a variable that cannot be changed"),
    (
        "input.limit = 10; input[\"cc\"] = []; let n = 1; n += 1;",
        "changes a variable or a place in it; also `-=`, `*=`, `/=`, `%=`, `**=`. A key may be new, what is before it must be there",
    ),
    ("if input.limit > 10 { \"many\" } else { \"few\" }", "a value as well; the condition must be a boolean"),
    (
        "for x in [1, 2] { audit(#{ n: x }); }",
        "over the elements of an array, or the sorted keys of an object; `for (x, i) in …` counts from 0",
    ),
    ("while input.n < 3 { input.n += 1; }", "as long as a condition holds"),
    (
        "loop { if random() < 0.5 { break; } }",
        "until `break` (with a value, if wanted) or `return`; `continue` starts the next round",
    ),
    (
        "fn double(x) { x * 2 }",
        "a function of the script's own; it sees its parameters and the variables above but `input`",
    ),
    (
        "input.list.filter(|x| x > 1)",
        "`|x| …` or `|x| { … }` stands in calls of `all`, `some`, `filter` and `map`",
    ),
    (
        "try { next(input) } catch (e) { throw e; }",
        "catches what effects throw, what the script throws, and its own errors (`kind` is then `script_error`); `e` has `message` and `kind`. \
         Limits are not caught",
    ),
    ("throw \"text\";", "ends the call with an error; also an object with `message` and perhaps `kind`"),
    (
        "return input;",
        "ends the script, or the function or closure it stands in; otherwise the value is that of the last statement",
    ),
];

/// What the reference says of numbers, in expressions and scripts alike.
pub const NUMBERS: &str = "\
Numbers are exact decimals of up to 34 significant digits, from 1e-6144 to 1e6144: `0.1 + 0.2 == 0.3` is true. The digits of a literal count \
as they are written. `+`, `-`, `*`, `%` and `**` (the exponent is a whole number from 0) give the exact result; one that needs more than 34 \
digits is an error, which leaves a condition undecided. `/` rounds half to even at 34 digits; round what it gives before you go on: \
`round(a / b, 10) * 1.19`. `round` rounds a half away from zero, as \
invoices do. JSON numbers of any size are compared exactly, but not calculated with beyond 34 digits. What is computed is written without \
trailing zeros after the point (`1.5`); what is passed on keeps its spelling (`1.50`).";
