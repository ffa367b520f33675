//! The one test root: every integration test is a module here, so that none is left uncompiled.

mod cases;
mod jsonpath_compliance;
mod layering;
