//! The pages face: records as HTML for people, with forms that need no script.

pub mod view;
pub mod views;
