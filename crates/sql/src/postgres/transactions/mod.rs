//! Transactions of several jobs, each on a connection of its own.

mod bulk_transaction;
mod request_transaction;
