//! The integration tests, as modules of one binary: linking once is what keeps them quick.

mod power;
