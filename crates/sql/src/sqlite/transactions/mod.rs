//! Transactions of several jobs, which the writer's thread holds open.

mod bulk_transaction;
mod request_transaction;
