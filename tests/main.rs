//! Every test that needs more than one module, as one binary.

mod cli;
mod docs;
mod power;
mod support;
mod tidy;
