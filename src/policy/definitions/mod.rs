//! The names that a bundle defines: `groups`, `data`, `functions` and `let` of all rules files → [`Names`].

mod data;
mod functions;
mod groups;
mod lets;
mod results;
mod sections;
mod shapes;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use super::Defaults;
use crate::diagnostic::{Diagnostics, SourceMap};
use crate::script::Names;
use crate::source::LoadedFile;
use crate::tool_result::ResultFormats;

pub(super) use shapes::{DATA, FUNCTIONS, GROUPS, LETS, RESULTS, TOOLS};

pub(super) use data::exclude_data_files;
pub(super) use results::reject_in_layer as reject_results_in_layer;
pub use tools::DeclaredTools;
pub(super) use tools::reject_in_layer as reject_tools_in_layer;

/// Bundle-wide definitions, and the files that they were read from.
pub(super) struct Definitions {
    pub(super) names: Arc<Names>,
    pub(super) results: ResultFormats,
    pub(super) tools: DeclaredTools,
    pub(super) referenced_files: Vec<PathBuf>,
}

/// What reading a definition needs, and where it reports problems.
struct DefinitionReader<'a> {
    files: &'a [LoadedFile],
    inherited: &'a Names,
    defaults: Defaults,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Diagnostics,
    referenced_files: Vec<PathBuf>,
}

/// Reads the definitions of all files, in addition to those of a bundle that they may use and not redefine. Problems are reported; a
/// name whose definition has an error is known all the same.
pub(super) fn compile(
    files: &[LoadedFile],
    inherited: &Names,
    defaults: Defaults,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Definitions {
    let mut reader =
        DefinitionReader { files, inherited, defaults, sources, diagnostics, referenced_files: Vec::new() };
    let mut names = inherited.clone();
    groups::read(&mut reader, &mut names);
    data::read(&mut reader, &mut names);
    functions::read(&mut reader, &mut names);
    let names = lets::read(&mut reader, Arc::new(names));
    let results = results::read(&mut reader, &names);
    let tools = tools::read(&mut reader);
    Definitions { names, results, tools, referenced_files: reader.referenced_files }
}
