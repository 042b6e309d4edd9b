//! Takes whole stores from one place to another: aside, back, and over to the other kind of database.
//!
//! A store is read in [`section`]s, each a table in the order of its key, and what is read is summed up; what was
//! written is read again and must sum up to the same. [`end`] is one side of a copy, on either database. Above them
//! stand [`backup`], [`restore`] and [`moving`]. What a store knows of itself ([`facts`]) goes with the rows.

mod application;
mod backup;
mod copy;
mod end;
mod examine;
mod facts;
mod failed;
mod file;
mod moving;
mod place;
mod postgres;
mod restore;
mod section;
mod sqlite;
mod state;

pub use application::Application;
pub use backup::{Aside, Label, backup, label};
pub use examine::{Contents, examine};
pub use facts::last_ids;
pub use failed::Failed;
pub use file::Partial;
pub use moving::{Moved, move_store, undo};
pub use place::Place;
pub use restore::{Restored, restore};
pub use section::Sum;
pub use state::Passage;
pub(super) use state::refuse as refuse_elsewhere;

/// Told how far the work is.
pub trait Progress {
    /// Something of so many rows (or pages of a file) begins; of nothing that is counted where there are none.
    fn begin(&mut self, task: &'static str, unit: &'static str, total: u64);
    /// So many more are done.
    fn advance(&mut self, done: u64);
}

/// Nobody looks.
impl Progress for () {
    fn begin(&mut self, _task: &'static str, _unit: &'static str, _total: u64) {}
    fn advance(&mut self, _done: u64) {}
}
