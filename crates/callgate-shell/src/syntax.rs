//! Syntax tree of shell text: lists, pipelines, compound commands, words and their expansions.

/// A parsed text.
#[derive(Debug, Default)]
pub(crate) struct SyntaxTree {
    pub(crate) list: List,
    /// The bodies of here-documents, by their number.
    pub(crate) documents: Vec<Word>,
}

/// Commands, one after the other.
pub(crate) type List = Vec<ListItem>;

/// A command of a list.
#[derive(Debug)]
pub(crate) struct ListItem {
    pub(crate) node: Node,
    /// Whether it ends with `&`.
    pub(crate) is_background: bool,
}

/// A command with its redirections, if it is a compound one.
#[derive(Debug)]
pub(crate) enum Node {
    Simple(SimpleCommand),
    /// `a | b`
    Pipeline(Vec<Node>),
    /// `a && b`
    And(Box<Node>, Box<Node>),
    /// `a || b`
    Or(Box<Node>, Box<Node>),
    /// `! a`
    Not(Box<Node>),
    Compound(Compound, Vec<Redirection>),
}

/// A compound command.
#[derive(Debug)]
pub(crate) enum Compound {
    /// `( list )`
    Subshell(List),
    /// `{ list; }`
    Group(List),
    If {
        branches: Vec<(List, List)>,
        otherwise: List,
    },
    /// `while` and `until`.
    While {
        condition: List,
        body: List,
    },
    /// `for` and `select`; `for ((…))` has no name and its expressions as words.
    For {
        name: Option<String>,
        words: Vec<Word>,
        body: List,
    },
    Case {
        subject: Word,
        /// The patterns of an arm, and its commands.
        arms: Vec<(Vec<Word>, List)>,
    },
    Function {
        name: String,
        body: Box<Node>,
    },
    /// `(( expression ))`
    Arithmetic(Word),
    /// `[[ expression ]]`
    Test(Vec<Word>),
}

/// A command of assignments, words and redirections.
#[derive(Debug, Default)]
pub(crate) struct SimpleCommand {
    pub(crate) assignments: Vec<Assignment>,
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
}

/// `NAME=value`
#[derive(Debug)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// Whether the result differs from the value: `+=`, an element of an array, or a whole array.
    pub(crate) is_partial: bool,
    /// The value; of an array, its words. The index of an element is among them.
    pub(crate) values: Vec<Word>,
}

/// What a redirection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedirectionKind {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`
    Write,
    /// `<>`
    ReadWrite,
    /// `<&`, `>&` with a word that may be a number or a file.
    Duplicate,
    /// `<<<`
    HereString,
    /// `<<`, with the number of the document.
    HereDocument(usize),
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct Redirection {
    pub(crate) kind: RedirectionKind,
    pub(crate) target: Word,
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Word {
    pub(crate) parts: Vec<Part>,
}

/// A part of a word.
#[derive(Debug)]
pub(crate) enum Part {
    /// Unquoted text, in which patterns, braces and `~` have their meanings.
    Bare(String),
    /// Quoted text.
    Quoted(String),
    /// `$NAME`, `${…}`
    Parameter(Parameter),
    /// `$(…)`, `` `…` ``
    Substitution { list: List, is_quoted: bool },
    /// `$((…))`
    Arithmetic(Word),
    /// `<(…)`, and `>(…)`.
    Process { list: List, is_input: bool },
}

/// An expansion of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// Whether it is `$NAME` or `${NAME}`, with nothing that changes its value.
    pub(crate) is_plain: bool,
    /// Whether its result is evaluated again: `${!NAME}`, `${NAME@P}`.
    pub(crate) is_indirect: bool,
    /// Whether it can assign: `${NAME:=word}`.
    pub(crate) assigns: bool,
    /// The words in it: index, default, pattern.
    pub(crate) argument: Word,
    pub(crate) is_quoted: bool,
}

impl Clone for Part {
    /// Only words without commands are copied, when braces are expanded.
    fn clone(&self) -> Self {
        match self {
            Self::Bare(text) => Self::Bare(text.clone()),
            Self::Quoted(text) => Self::Quoted(text.clone()),
            Self::Parameter(parameter) => Self::Parameter(parameter.clone()),
            Self::Arithmetic(word) => Self::Arithmetic(word.clone()),
            Self::Substitution { is_quoted, .. } => {
                Self::Substitution { list: Vec::new(), is_quoted: *is_quoted }
            }
            Self::Process { is_input, .. } => Self::Process { list: Vec::new(), is_input: *is_input },
        }
    }
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bare(a), Self::Bare(b)) | (Self::Quoted(a), Self::Quoted(b)) => a == b,
            (Self::Parameter(a), Self::Parameter(b)) => a == b,
            _ => false,
        }
    }
}

impl Word {
    /// A word that is quoted text.
    pub(crate) fn quoted(text: impl Into<String>) -> Self {
        Self { parts: vec![Part::Quoted(text.into())] }
    }

    /// The text of a word without quotes and expansions.
    pub(crate) fn as_bare(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Bare(text)] => Some(text),
            _ => None,
        }
    }
}
