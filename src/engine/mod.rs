//! What is done, without HTTP and without SQL: operations in, outcomes out.

pub mod operation;
pub mod plan;
pub mod store;

pub use operation::{Child, Condition, Deed, Listing, Op, Operation, Order, Outcome, Selection, Slice};
pub use plan::Plan;
pub use store::{Answer, Cancel, Done, Job, Key, Row, Store};
