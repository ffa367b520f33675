//! `callgate schema`: what editors check and complete rules files and test files by.

use std::io::Write;

use clap::ValueEnum;

use super::exit::{Exit, Stop};
use super::output::Output;
use crate::authoring::{Constraint, json_schema};
use crate::matcher::CONDITION;
use crate::mcp::{config_record, identity_record};
use crate::middleware::KINDS;
use crate::policy::rules_record;
use crate::suite::tests_record;

/// Print the JSON Schema of rules files, of test files, or of gateway files, for editors.
///
/// With the YAML language server, begin a rules file with
/// `# yaml-language-server: $schema=rules.schema.json`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  callgate schema > rules.schema.json\n  callgate schema tests > tests.schema.json"
)]
pub(super) struct Schema {
    /// Of which files
    #[arg(value_enum, default_value_t = Subject::Rules)]
    of: Subject,
}

/// The files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// Rules files
    Rules,
    /// Policy tests
    Tests,
    /// The servers behind a gateway (`callgate proxy --config`)
    Gateway,
    /// Who calls a gateway over HTTP (`callgate proxy --auth`)
    Identity,
}

pub(super) fn schema(arguments: &Schema, output: &mut Output) -> Result<Exit, Stop> {
    let schema = match arguments.of {
        Subject::Rules => rules_schema(),
        Subject::Tests => tests_schema(),
        Subject::Gateway => json_schema(config_record(), "Callgate gateway", &[]),
        Subject::Identity => json_schema(identity_record(), "Callgate identity", &[]),
    };
    writeln!(output, "{schema:#}")?;
    Ok(Exit::Done)
}

fn rules_schema() -> crate::json::Value {
    let needing_a_matcher = KINDS.iter().filter(|kind| kind.needs_matcher);
    let policy = Constraint {
        record: "policy",
        one_of: KINDS.iter().map(|kind| kind.name).collect(),
        together: needing_a_matcher.map(|kind| (kind.name, "match")).collect(),
    };
    json_schema(rules_record(), "Callgate rules file", &[policy, condition()])
}

fn tests_schema() -> crate::json::Value {
    let step = Constraint {
        record: "step",
        one_of: vec!["tool", "wait", "round", "approve", "deny", "edit", "answer", "cancel", "resume"],
        together: Vec::new(),
    };
    json_schema(tests_record(), "Callgate policy tests", &[step, condition()])
}

fn condition() -> Constraint {
    let tests = CONDITION.fields.iter().filter(|field| !FORMS.contains(&field.name));
    Constraint {
        record: CONDITION.name,
        one_of: FORMS.to_vec(),
        together: tests.map(|field| (field.name, "path")).collect(),
    }
}

/// The keys of a condition of which exactly one says what it is.
const FORMS: [&str; 5] = ["path", "all", "any", "not", "expr"];
