//! Runs the suites in `test/` with Node's test runner, and the command line of the package.

use std::process::Command;

use crate::installed_package::{application, run};

fn suite(name: &str) {
    let application = application();
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=spec"]).arg(format!("{name}.test.mjs"));
    run(node.current_dir(application));
}

#[test]
fn the_package_evaluates_calls_in_process() {
    suite("package");
}

#[test]
fn stores_of_an_application_keep_the_state() {
    suite("stores");
}

#[test]
fn calls_leave_nothing_in_memory() {
    suite("memory");
}

#[test]
fn ai_sdk_agents_obey_the_rules() {
    suite("ai-sdk");
}

#[test]
fn the_support_desk_continues_after_a_restart() {
    suite("support-desk");
}

#[test]
fn agents_of_the_openai_sdk_obey_the_rules() {
    suite("openai-agents");
}

#[test]
fn mastra_agents_obey_the_rules() {
    suite("mastra");
}

#[test]
fn langchain_agents_obey_the_rules() {
    suite("langchain");
}

#[test]
fn servers_of_the_mcp_sdk_obey_the_rules() {
    suite("mcp");
}

#[test]
fn chats_of_tanstack_ai_obey_the_rules() {
    suite("tanstack-ai");
}

#[test]
fn policies_for_the_model_apply_in_chats_of_tanstack_ai() {
    suite("tanstack-ai-run");
}

#[test]
fn npx_runs_the_command_line() {
    let version =
        run(Command::new("npx").args(["--no-install", "callgate", "--version"]).current_dir(application()));
    assert_eq!(version.trim(), format!("callgate {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_typescript_program_compiles_against_the_declarations() {
    let application = application();
    let compiler = application.join("../source/node_modules/typescript/bin/tsc");
    let compiler = if compiler.exists() {
        compiler
    } else {
        application.join("../source/bindings/node/node_modules/typescript/bin/tsc")
    };
    let types = application.join("../source/bindings/node/node_modules/@types");
    for (file, module) in [("program.mts", "NodeNext"), ("program.cts", "NodeNext")] {
        let mut tsc = Command::new("node");
        tsc.arg(&compiler).args(["--noEmit", "--strict", "--target", "ES2022", "--module", module]);
        tsc.arg("--typeRoots").arg(&types).args(["--types", "node"]).arg(file);
        run(tsc.current_dir(&application));
    }
}
