//! Rules: who may do what, compared with an interpreter of rules that shares no code with the server.
//!
//! `shape`, `making` and `stock` make a schema with rules and records, `actors` who asks. `judge` says what each sees and
//! may do, and `stage` asks the server. `world` reads, `writes` writes, `events` listens, `secrets` looks for what must not be told,
//! `descriptions` for what is told of the schema: `deeds` are random writes, `verdicts` what must become of them.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test that meets what it does not know panics")]

mod actors;
mod asking;
mod coverage;
mod deeds;
mod descriptions;
mod events;
mod examples;
mod explaining;
mod judge;
mod making;
mod matrix;
mod never_allowed;
mod over_http;
mod repeated_patches;
mod rule_tree;
mod secrets;
mod seeds;
mod shape;
mod stage;
mod stock;
mod tokens;
mod verdicts;
mod world;
mod writes;
