//! Power cuts and bad disks: nothing acknowledged is lost, and no false success is reported.
//!
//! `rig` runs a program on the disk that `tests/disk/disk.c` simulates, `journal` reads what it did, and `disk` says
//! what a cut leaves of it. `stand_in` proves these three with a bare SQLite; `cuts` and `faults` use them on the
//! server, with `load` for writers, `follower` for subscribers, `client` for their connections and `check` for the verdict.

mod accounts;
pub mod chance;
mod check;
pub mod client;
mod cuts;
mod disk;
mod faults;
mod follower;
mod journal;
pub mod load;
pub mod rig;
mod server;
mod stand_in;
