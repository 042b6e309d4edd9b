//! Power cuts and bad disks: nothing acknowledged is lost, nothing is claimed that is not so.

mod chance;
mod disk;
mod journal;
mod rig;
mod stand_in;
