//! Parts that many policies of a bundle have in common. Each is kept once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::path::{ArgumentNames, Path, PathError};

/// The parts of the policies that were read.
#[derive(Debug, Default)]
pub struct SharedParts {
    /// By text.
    paths: HashMap<String, Path>,
    argument_names: HashSet<Arc<ArgumentNames>>,
}

impl SharedParts {
    /// Parses a path, or returns the same one again.
    pub(super) fn path(&mut self, text: &str) -> Result<Path, PathError> {
        if let Some(path) = self.paths.get(text) {
            return Ok(path.clone());
        }
        let path = Path::parse(text)?;
        self.paths.insert(text.to_owned(), path.clone());
        Ok(path)
    }

    /// The same names, shared by all who have them.
    pub fn argument_names(&mut self, mut names: ArgumentNames) -> Arc<ArgumentNames> {
        if let Some(shared) = self.argument_names.get(&names) {
            return Arc::clone(shared);
        }
        names.shrink_to_fit();
        let shared = Arc::new(names);
        self.argument_names.insert(Arc::clone(&shared));
        shared
    }
}
