//! The Rust examples of the documentation, which run as doc tests.

#[doc = include_str!("../README.md")]
struct Readme;

#[doc = include_str!("../docs/guides/embed-in-rust.md")]
struct EmbedInRust;

#[doc = include_str!("../docs/concepts/task.md")]
struct WhatTheUserAskedFor;
