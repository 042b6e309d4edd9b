//! One record with everything it holds and what refers to it.

pub(crate) mod display;
pub(crate) mod page;
