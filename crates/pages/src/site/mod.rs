//! What an application brings for its pages: views, pages of its own, files and colours.

pub mod check_views;
mod custom_pages;
pub mod declared_pages;
pub mod site_style;
pub mod static_folder;
