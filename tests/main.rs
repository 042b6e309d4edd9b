//! Every test that needs more than one module, as one binary.

mod cli;
mod docs;
mod hostile;
mod http;
mod model;
mod power;
mod start;
mod store;
mod support;
mod tidy;
