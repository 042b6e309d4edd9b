//! Streams and their credentials: what a client hears over each transport until its right ends, and nothing after that.

mod downloads;
mod ends;
mod listener;
mod nodes;
mod site;
mod sockets;
mod updates;
