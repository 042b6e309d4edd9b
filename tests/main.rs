//! Every test that needs more than one module, as one binary.

mod cli;
