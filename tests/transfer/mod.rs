//! Backup, restore, move and reset of whole stores: what is served afterwards is what was served before.
//!
//! Every test runs the real binary. `site` is an application with a store on either database.

mod api_keys;
mod backups;
mod fakes;
mod full;
mod gate;
mod keys;
mod killed;
mod moves;
mod resets;
mod restores;
mod site;
mod wrong;
