//! The single root of the integration tests: every test is a module here, so that all are compiled.

#[cfg(test)]
mod adapters;
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod arguments;
#[cfg(test)]
mod arithmetic;
#[cfg(test)]
mod attempted_facts;
#[cfg(test)]
mod around_journal;
#[cfg(test)]
mod around_scripts;
#[cfg(test)]
mod assistant;
#[cfg(test)]
mod broken_rules;
#[cfg(test)]
mod broken_yaml;
#[cfg(test)]
mod bundles;
#[cfg(test)]
mod candidate;
#[cfg(test)]
mod caching;
#[cfg(test)]
mod cards;
#[cfg(test)]
mod cases;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod claims_over_earlier_reads;
#[cfg(test)]
mod coding_agent;
#[cfg(test)]
mod concurrent;
#[cfg(test)]
mod confidentiality;
#[cfg(test)]
mod corrupted_stores;
#[cfg(test)]
mod constructs;
#[cfg(test)]
mod coverage;
#[cfg(test)]
mod cutting_proxy;
#[cfg(test)]
mod definitions;
#[cfg(test)]
mod design_examples;
#[cfg(test)]
mod detect;
#[cfg(test)]
mod dialects;
#[cfg(test)]
mod diff;
#[cfg(test)]
mod distribution;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod editors;
#[cfg(test)]
mod elements;
#[cfg(test)]
mod embedding;
#[cfg(test)]
mod engine_events;
#[cfg(test)]
mod execution;
#[cfg(test)]
mod explaining;
#[cfg(test)]
mod expressions;
#[cfg(test)]
mod failing_hosts;
#[cfg(test)]
mod file_store;
#[cfg(test)]
mod fixtures;
mod functions;
#[cfg(test)]
mod gateway;
#[cfg(test)]
mod gateway_http;
#[cfg(test)]
mod history_corpus;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod invariants;
#[cfg(test)]
mod json;
#[cfg(test)]
mod jsonpath_compliance;
#[cfg(test)]
mod layering;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod lint_claims;
#[cfg(test)]
mod lints;
#[cfg(test)]
mod mutants;
#[cfg(test)]
mod packages;
#[cfg(test)]
mod pages;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod payments;
#[cfg(test)]
mod pii;
#[cfg(test)]
mod predicates;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod principals;
#[cfg(test)]
mod published_rules;
#[cfg(test)]
mod python;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod recorded_calls;
#[cfg(test)]
mod redis;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod referenced_files;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod repeating;
#[cfg(test)]
mod result_schemas;
#[cfg(test)]
mod retail;
#[cfg(test)]
mod rules_at_large;
#[cfg(test)]
mod rules_bounds;
#[cfg(test)]
mod rules_sandbox;
#[cfg(test)]
mod run_cost;
#[cfg(test)]
mod scripting;
#[cfg(test)]
mod seals;
#[cfg(test)]
mod seeds;
#[cfg(test)]
mod server;
#[cfg(test)]
mod store_contract;
#[cfg(test)]
mod store_faults;
#[cfg(test)]
mod store_parts;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod suites;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod tenants;
#[cfg(test)]
mod times;
#[cfg(test)]
mod terminology;
#[cfg(test)]
mod type_check;
