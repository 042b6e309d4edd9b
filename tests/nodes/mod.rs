//! Several nodes on one database, in processes of their own, while things break.
//!
//! `node` is a process that comes back on its port, `proxy` stands where a network would break, `writers` and
//! `followers` are the clients, `check` is the verdict, and `trial` puts them together.

mod balancer;
mod check;
mod faults;
mod followers;
mod node;
mod order;
pub mod proxy;
mod starts;
mod trial;
mod writers;
