//! Cline: its hook files, those of the user and those of the project in this directory.

use std::path::{Path, PathBuf};

use super::canary::{HookProgram, fire};
use super::permissions::{files_of, writable_by_others};
use super::{DoctorArgs, Finding, NOT_RUN, NOTHING_RUN, Owner, version};
use crate::agent_hooks::BACKUP_SUFFIX;
use crate::agent_hooks::cline_hooks::{
    EVENTS, PROGRAM, is_executable, is_own, project_directory, user_directories,
};
use crate::edited_file::EditedFile;
use crate::exit::CommandError;
use callgate_hooks::Agent;

/// Examines the hook files. `None` if there are none of ours.
pub(super) fn examine(arguments: &DoctorArgs) -> Result<Option<Vec<Finding>>, CommandError> {
    let directories: Vec<(PathBuf, Owner)> = user_directories()
        .into_iter()
        .map(|directory| (directory, Owner::User))
        .chain([(project_directory(Path::new("")), Owner::Project)])
        .collect();
    let mut findings = Vec::new();
    let (mut installed, mut run) = (0, 0);
    for (directory, owner) in &directories {
        let mut own = Vec::new();
        for event in EVENTS {
            let file = EditedFile::open(directory.join(event), BACKUP_SUFFIX)?;
            if is_own(&file.text) {
                own.push((event, file));
            }
        }
        let Some((first, file)) = own.first() else { continue };
        let shown = directory.display();
        if *first != EVENTS[0] {
            findings.push(Finding::Failed(format!("`{shown}` has no `{}`, so no tool is denied", EVENTS[0])));
            continue;
        }
        installed += 1;
        findings.push(Finding::Passed(format!("`{shown}` calls Callgate before every tool")));
        for event in EVENTS.iter().filter(|event| own.iter().all(|(known, _)| known != *event)) {
            findings.push(Finding::Failed(format!("`{shown}` has no `{event}`; install the hooks again")));
        }
        for (event, file) in &own {
            if !is_executable(&file.display_path) {
                findings.push(Finding::Failed(format!(
                    "Cline does not run `{shown}/{event}`: it is not executable"
                )));
            }
            findings.extend(writable_by_others(&file.display_path));
        }
        findings.extend(writable_by_others(directory));
        findings.extend(files_of(&file.text).iter().filter_map(|path| writable_by_others(path)));
        // Anybody can write a project's hooks.
        if arguments.project || *owner != Owner::Project {
            run += 1;
            let program = HookProgram::File(&file.display_path);
            findings.extend(fire(Agent::Cline, EVENTS[0], program, &arguments.canary));
        } else {
            findings.push(Finding::Noted(NOT_RUN.to_owned()));
        }
    }
    if installed == 0 && findings.is_empty() {
        return Ok(None);
    }
    if installed > 1 {
        findings.push(Finding::Noted(
            "Cline runs the hooks of every directory, so a call is decided and counted more than once; uninstall all but one".to_owned(),
        ));
    }
    if run == 0 {
        findings.push(Finding::Failed(NOTHING_RUN.to_owned()));
    }
    findings
        .push(Finding::Noted("whether hooks are switched on in Cline's settings was not checked".to_owned()));
    findings.insert(0, version::examine(Agent::Cline.title(), PROGRAM));
    Ok(Some(findings))
}
