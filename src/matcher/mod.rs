//! Matchers.
