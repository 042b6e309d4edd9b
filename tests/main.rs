//! The one integration binary: each module below tests one part of the server from outside.

mod http;
