//! Every test that needs more than one module, as one binary.

mod cli;
mod docs;
mod model;
mod power;
mod store;
mod support;
mod tidy;
