//! The `callgate` commands of a shell script that is shown and does not run: each must exist, with all its options.

/// A word, or an operator such as `|` and `>`.
#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Operator(String),
}

/// Splits a script into words and operators. Quotes are removed; comments and continued lines' ends are left out.
fn tokens(script: &str) -> Vec<Token> {
    let script = script.replace("\\\n", " ");
    let mut tokens = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = script.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let inside = characters.by_ref().take_while(|next| *next != character);
                word.get_or_insert_default().extend(inside);
            }
            '#' if word.is_none() => while characters.next_if(|next| *next != '\n').is_some() {},
            '\\' => word.get_or_insert_default().extend(characters.next()),
            ' ' | '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')' => {
                tokens.extend(word.take().map(Token::Word));
                if character != ' ' {
                    let mut operator = String::from(character);
                    operator.extend(characters.next_if_eq(&character));
                    tokens.push(Token::Operator(operator));
                }
            }
            _ => word.get_or_insert_default().push(character),
        }
    }
    tokens.extend(word.map(Token::Word));
    tokens
}

/// The simple commands of a script, without redirections.
fn simple_commands(script: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut is_target = false;
    for token in tokens(script) {
        match token {
            Token::Operator(operator) if operator.starts_with(['<', '>']) => is_target = true,
            Token::Operator(_) => commands.push(Vec::new()),
            Token::Word(_) if is_target => is_target = false,
            Token::Word(word) => commands.last_mut().unwrap().push(word),
        }
    }
    commands
}

/// The part of a command that starts `callgate`: the command itself, or what another program starts after `--`.
fn callgate_arguments(words: &[String]) -> Option<&[String]> {
    let begin = words.iter().position(|word| !word.contains('='))?;
    let starts = |index: usize| index == begin || words[index - 1] == "--";
    (begin..words.len())
        .find(|index| words[*index] == "callgate" && starts(*index))
        .map(|index| &words[index..])
}

/// Returns what is wrong with the `callgate` commands of a script.
pub fn errors(script: &str) -> Vec<String> {
    let commands = simple_commands(script);
    let parsed = commands.iter().filter_map(|words| callgate_arguments(words)).map(|arguments| {
        let result = callgate_cli::command().try_get_matches_from(arguments);
        result.err().filter(clap::Error::use_stderr).map(|error| format!("{}: {error}", arguments.join(" ")))
    });
    parsed.flatten().collect()
}

#[test]
fn unknown_commands_and_options_are_found_wherever_a_command_stands() {
    let right = "KEY=1 callgate check 'my rules' > out # callgate nothing\n\
        npx inspector -- callgate proxy --policies a \\\n  -- npx -y server --no-option-of-ours | tee log\necho callgate nothing";
    assert_eq!(errors(right), Vec::<String>::new());
    for wrong in
        ["callgate chek a", "true && callgate check --dney a", "npx a -- callgate proxy --polices a -- b"]
    {
        assert_eq!(errors(wrong).len(), 1, "{wrong}");
    }
}
