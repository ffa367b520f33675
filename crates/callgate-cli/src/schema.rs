//! `callgate schema`: JSON Schemas of Callgate's files, for validation and completion in editors.

use std::io::Write;

use clap::ValueEnum;

use super::exit::{CommandError, ExitStatus};
use super::output::Output;
use callgate::matcher::{CONDITION_RECORD, ELEMENTS_RECORD};
use callgate::middleware::KINDS;
use callgate::policy::rules_record;
use callgate::rules_schema::{KeyConstraint, json_schema};
use callgate_http::identity_record;
use callgate_mcp::config_record;
use callgate_policy_tests::test_file_record;
use callgate_server::notification_record;

/// Print the JSON Schema of rules, test, gateway or identity files, or of the lines of a decision log.
///
/// For the YAML language server, start a rules file with
/// `# yaml-language-server: $schema=rules.schema.json`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  callgate schema > rules.schema.json\n  callgate schema tests > tests.schema.json"
)]
pub(super) struct SchemaArgs {
    /// The kind of file
    #[arg(value_enum, default_value_t = SchemaKind::Rules)]
    of: SchemaKind,
}

/// Kinds of files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SchemaKind {
    /// Rules files
    Rules,
    /// Policy test files
    Tests,
    /// Config files of the gateway (`callgate proxy --config`)
    Gateway,
    /// Files that authenticate HTTP callers of the gateway (`callgate proxy --auth`)
    Identity,
    /// Files that say where messages about approvals are sent (`callgate serve --notify`)
    Notifications,
    /// Lines of a decision log (`--log FILE`)
    Events,
}

pub(super) fn schema(arguments: &SchemaArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let schema = match arguments.of {
        SchemaKind::Rules => rules_schema(),
        SchemaKind::Tests => tests_schema(),
        SchemaKind::Gateway => json_schema(config_record(), "Callgate gateway", &[]),
        SchemaKind::Identity => json_schema(identity_record(), "Callgate identity", &[]),
        SchemaKind::Notifications => json_schema(notification_record(), "Callgate notifications", &[]),
        SchemaKind::Events => callgate_log::event_schema(),
    };
    writeln!(output, "{schema:#}")?;
    Ok(ExitStatus::Success)
}

fn rules_schema() -> callgate::json::Value {
    let needing_a_matcher = KINDS.iter().filter(|kind| kind.needs_matcher);
    let policy = KeyConstraint {
        record: "policy",
        one_of: KINDS.iter().map(|kind| kind.name).collect(),
        any_of: Vec::new(),
        together: needing_a_matcher.map(|kind| (kind.name, vec!["match"])).collect(),
    };
    let rules = KeyConstraint {
        record: rules_record().name,
        one_of: Vec::new(),
        any_of: vec!["policies", "groups", "data", "let", "functions", "results", "defaults"],
        together: Vec::new(),
    };
    json_schema(rules_record(), "Callgate rules file", &[rules, policy, condition(), elements(), operand()])
}

fn tests_schema() -> callgate::json::Value {
    let step = KeyConstraint {
        record: "step",
        one_of: vec!["tool", "wait", "round", "approve", "deny", "edit", "answer", "cancel", "resume"],
        any_of: Vec::new(),
        together: Vec::new(),
    };
    json_schema(test_file_record(), "Callgate policy tests", &[step, condition(), elements(), operand()])
}

fn condition() -> KeyConstraint {
    let tests = CONDITION_RECORD.fields.iter().filter(|field| !CONDITION_FORMS.contains(&field.name));
    KeyConstraint {
        record: CONDITION_RECORD.name,
        one_of: CONDITION_FORMS.to_vec(),
        any_of: Vec::new(),
        together: tests.map(|field| (field.name, vec!["path", "expr"])).collect(),
    }
}

/// A condition on elements names them.
fn elements() -> KeyConstraint {
    KeyConstraint {
        record: ELEMENTS_RECORD.name,
        one_of: Vec::new(),
        any_of: vec!["path", "expr"],
        together: Vec::new(),
    }
}

/// An operand that is read on each call has a path or an expression.
fn operand() -> KeyConstraint {
    KeyConstraint {
        record: "path_operand",
        one_of: vec!["path", "expr"],
        any_of: Vec::new(),
        together: Vec::new(),
    }
}

/// The keys that determine the form of a condition; each condition has exactly one of them.
const CONDITION_FORMS: [&str; 9] = ["path", "all", "any", "not", "expr", "every", "any_of", "none", "shell"];
