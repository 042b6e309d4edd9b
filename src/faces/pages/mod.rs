//! The pages face: records as HTML for people, with forms that need no script.

#[cfg(test)]
mod rendered;
#[cfg(test)]
mod sample_forms;
#[cfg(test)]
mod samples;
pub mod view;
pub mod views;
