//! Records as HTML pages with forms that work without a script: home, lists, details, forms, deletion, plain lists, errors
//! and pages that an application declares itself. The server crate routes a request to a method of [`Pages`] after content
//! negotiation; each page is read in one snapshot, turned into a view of plain data, and rendered by a template.

// State shared by all pages.
mod pages;

// Data that templates receive.
mod template_data;

// The templates: built-in and the application's own.
pub mod templates;

// Names of record types and fields for people.
mod labels;

// Numbers and texts in sentences.
mod phrases;

// The results of several operations from one snapshot.
mod snapshot_reads;

// The selection behind some fields of a record, and their display.
mod record_reading;

// The start page.
mod home;

// Lists of records: search, table, pager, downloads.
mod list;

// The groups of a list: table and chart.
mod summary;

// A record with the records related to it.
mod detail;

// Forms for new and edited records.
mod form;

// The page that confirms a deletion.
mod delete;

// Plain lists, with a form that adds a value.
mod plain_list;

// What the application brings: views, pages, files and colours of its own.
mod site;

// The same request in GraphQL, REST and HTML, shown below a page.
mod examples;

// Signing in, and one's own account.
pub mod account;

// The message shown once after a write.
pub mod flash;

// Rendered pages as responses.
mod respond;

// Error pages.
pub mod errors;

// Style sheet, script and icon.
mod assets;

#[cfg(test)]
mod tests;

pub use crate::assets::asset_routes;
pub use crate::list::filters::unindexed_filters;
pub use crate::pages::Pages;
pub use crate::site::check_views::check_views;
