//! Files that Callgate relies on: whether anyone else can write them. Names rustix, as `mcp` does.

mod private;

pub(crate) use private::{PrivateError, check_private, check_private_directory};
