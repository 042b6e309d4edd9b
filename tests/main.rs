//! The integration tests, as one binary; `tests/cases` is another.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod access;
mod actor_rules;
mod answers;
mod changes;
mod child_forms;
mod claims;
mod cli;
mod coerce;
mod conditions;
mod corpus;
mod credentials;
mod data;
mod docs;
mod embedding;
mod folders;
mod forms;
mod graphql;
mod hostile;
mod http;
mod interfaces;
mod json_values;
mod live;
mod locked;
mod migrate;
mod model;
mod nodes;
mod openapi;
mod operations;
mod pages;
mod postgres;
mod power;
mod records;
mod reload;
mod rest;
mod rules;
mod start;
mod store;
mod subscribe;
#[allow(dead_code, reason = "the case files need more of it")]
mod support;
mod tidy;
mod transfer;
mod views;
mod ways;
mod whole_writes;
