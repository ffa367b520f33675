//! The names of a bundle's definitions.

/// The name of a definition. Named values, constants, functions and groups have namespaces of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionName {
    /// `let`
    Let(String),
    /// `data`
    Data(String),
    /// `functions`
    Function(String),
    /// `groups`
    Group(String),
}

impl DefinitionName {
    /// The key of a rules file below which the name is defined.
    pub fn section(&self) -> &'static str {
        match self {
            Self::Let(_) => "let",
            Self::Data(_) => "data",
            Self::Function(_) => "functions",
            Self::Group(_) => "groups",
        }
    }

    /// The name itself.
    pub fn name(&self) -> &str {
        match self {
            Self::Let(name) | Self::Data(name) | Self::Function(name) | Self::Group(name) => name,
        }
    }
}
