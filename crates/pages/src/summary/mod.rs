//! The summary of a list: its records in groups, as a table and a chart.

// What records can be grouped by, and what can be computed of a group.
pub(crate) mod choices;

// The query of the page: filters of the list and parameters of groups.
pub(crate) mod query;

// The records of a group as filters of the list.
pub(crate) mod group_filters;

// The groups with their texts, numbers and links.
pub(crate) mod groups;

// Bars and lines.
pub(crate) mod chart;

// The operations behind the page.
pub(crate) mod read;

// The view of the page.
pub(crate) mod page;

// The data of its template.
pub(crate) mod view;
