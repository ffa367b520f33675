//! The one test root: every integration test is a module here, so that none is left uncompiled.
mod detect;
