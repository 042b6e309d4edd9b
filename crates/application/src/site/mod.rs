//! What an application brings for its pages: files, colours and pages of its own.

mod color_contrast;
pub(crate) mod site_theme;
mod static_files;

pub use self::site_theme::{SiteTheme, ThemeColor};
pub use self::static_files::StaticFile;
pub(crate) use self::static_files::read_static_folder;
