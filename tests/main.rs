//! The one integration binary: each module tests one stage from outside.

mod model;
