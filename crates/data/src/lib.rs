//! Export and import: the records and plain lists of a store as NDJSON or CSV, in files, folders and pipes.
//!
//! The commands `export` and `import` use it; other long commands use its progress line.

// The resources of an application and the columns of their rows.
mod resource_catalog;

mod file_columns;

// Export: rows as text, and where they go.
pub mod export;

pub mod export_target;
mod row_encoder;
mod spooled_pipe;

// Import: where rows come from, and text as rows.
pub mod import;

mod csv_reader;
pub mod import_source;
mod row_errors;
mod row_parser;
mod source_reader;
pub mod text_decoder;
mod upsert;
mod value_spellings;

// The progress line on the terminal.
pub mod progress_line;

use std::path::Path;

pub use crate::resource_catalog::{DataResource, ResourceCatalog};

/// The file format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataFormat {
    /// One JSON value per line.
    Ndjson,
    /// RFC 4180 with a byte order mark, as spreadsheets expect it.
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

    /// The format of a file to import, by its name. A CSV reader finds out by itself that cells are separated by tabs.
    pub fn of_import(path: &Path) -> Option<DataFormat> {
        let is_tsv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"));
        if is_tsv { Some(DataFormat::Csv) } else { DataFormat::from_path(path) }
    }

    /// The format by the file name's extension.
    pub fn from_path(path: &Path) -> Option<DataFormat> {
        DataFormat::from_name(path.extension()?.to_str()?)
    }
}
