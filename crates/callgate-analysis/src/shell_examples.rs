//! Example texts for `shell` conditions: for each test, a text with a command that probably passes it.

use callgate::json::Value;
use callgate::source::YamlNode;

/// The maximum number of texts of one condition.
const MAX_TEXTS: usize = 32;

/// The texts for the tests of a condition.
pub(crate) fn example_texts(shell: &YamlNode) -> Vec<Value> {
    let quantifiers = ["any", "all", "every", "none"];
    let tests = quantifiers.iter().filter_map(|key| shell.get(key).and_then(YamlNode::items)).flatten();
    let texts = tests.flat_map(|test| {
        let command = command_text(test);
        // A command in the directory of the text, and one elsewhere.
        ["", " example", " /etc/example"].map(|operand| Value::from(format!("{command}{operand}")))
    });
    texts.take(MAX_TEXTS).chain([Value::from("true")]).collect()
}

/// A program with the subcommand and the flags of a test.
fn command_text(test: &YamlNode) -> String {
    let first = |key: &str| {
        let node = test.get(key)?;
        node.as_str().or_else(|| node.items()?.first()?.as_str())
    };
    let mut words = vec![first("program").filter(|name| is_plain(name)).unwrap_or("example")];
    words.extend(first("subcommand"));
    if let Some(flags) = test.get("flags") {
        words
            .extend(flags.items().unwrap_or(std::slice::from_ref(flags)).iter().filter_map(YamlNode::as_str));
    }
    words.retain(|word| is_plain(word));
    words.join(" ")
}

/// Whether a pattern is a name.
fn is_plain(pattern: &str) -> bool {
    !pattern.starts_with(['/', '@']) && !pattern.contains('*')
}
