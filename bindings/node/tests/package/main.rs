//! Tests of the npm package as users have it: built from this crate and the TypeScript, packed, and installed in a clean directory, beside
//! the frameworks at the versions pinned in `test/package.json`.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod documentation;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod installed_package;
#[cfg(test)]
mod suites;
