//! Every test that needs more than one module, as one binary.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod answers;
mod cases;
mod changes;
mod cli;
mod coerce;
mod data;
mod docs;
mod embedding;
mod forms;
mod graphql;
mod hostile;
mod http;
mod json_values;
mod live;
mod migrate;
mod model;
mod nodes;
mod openapi;
mod operations;
mod pages;
mod postgres;
mod power;
mod records;
mod rest;
mod start;
mod store;
mod subscribe;
mod support;
mod tidy;
mod transfer;
mod views;
mod ways;
