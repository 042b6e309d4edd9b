//! Records and lists on their way out of a store and into another, as files and through pipes.
//!
//! In reading order: [`inventory`] (what there is, and in which order), [`columns`] (what a row is made of), [`encode`]
//! and [`csv`] (a row as text), [`target`] (where it goes), [`export`]; then [`source`] (where rows come from), [`rows`]
//! (a text as a row), [`import`]; [`progress`] tells how far it is.

mod csv_reader;
pub mod export;
pub mod export_target;
mod file_columns;
pub mod import;
pub mod import_source;
pub mod progress_line;
mod resource_catalog;
mod row_encoder;
mod row_errors;
mod row_parser;
mod source_reader;
mod spooled_pipe;
mod upsert;

use std::path::Path;

pub use crate::resource_catalog::{DataResource, ResourceCatalog};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// A JSON value a line.
    Ndjson,
    /// RFC 4180 with a byte order mark, as spreadsheets take it.
    Csv,
}

impl DataFormat {
    pub fn extension(self) -> &'static str {
        match self {
            DataFormat::Ndjson => "ndjson",
            DataFormat::Csv => "csv",
        }
    }

    pub fn from_name(name: &str) -> Option<DataFormat> {
        match name.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Some(DataFormat::Ndjson),
            "csv" => Some(DataFormat::Csv),
            _ => None,
        }
    }

    /// What a file's name says.
    pub fn from_path(path: &Path) -> Option<DataFormat> {
        DataFormat::from_name(path.extension()?.to_str()?)
    }
}
