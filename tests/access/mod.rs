//! Rules: who may do what, compared with an interpreter of rules that shares no code with the server.
//!
//! `shape`, `making` and `stock` make a schema with rules and records, `actors` who asks. `judge` says what each sees and
//! may do, and `stage` asks the server. `world` reads, `writes` writes, `events` listens, `pages` looks at pages, `secrets` looks for what must not be told,
//! `descriptions` for what is told of the schema: `deeds` are random writes, `verdicts` what must become of them.

#![allow(clippy::wildcard_enum_match_arm, reason = "a test that meets what it does not know panics")]

mod actors;
mod asked_again;
mod asking;
mod coverage;
mod deeds;
mod descriptions;
mod events;
mod examples;
mod explaining;
mod judge;
mod looked_up_keys;
mod making;
mod matrix;
mod metrics;
mod never_allowed;
mod order;
mod over_http;
mod pages;
mod protected;
mod repeated_writes;
mod replays;
mod resolvers;
mod rule_tree;
mod searches;
mod secrets;
mod seeds;
mod shape;

mod stage;
mod stock;
mod tokens;
mod unreadable_parts;
mod verdicts;
mod world;
mod writes;
