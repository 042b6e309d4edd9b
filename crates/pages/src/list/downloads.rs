//! Where the rows of a list page are for programs: the same page, and all that matches, as CSV, NDJSON and JSON.

use crate::view::{Download, Link};
use trefoil_model::RecordType;
use trefoil_resources::list_query::{Extent, Query};

/// JSON is of a part: all of a list is for what can be read line by line.
const OF_PAGE: [(&str, &str); 3] = [("CSV", "csv"), ("NDJSON", "ndjson"), ("JSON", "json")];
const OF_ALL: [(&str, &str); 2] = [("CSV", "csv"), ("NDJSON", "ndjson")];

/// How much of the list is on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnPage {
    Nothing,
    Part,
    All,
}

pub fn downloads(record: &RecordType, path: &str, query: &Query, on_page: OnPage) -> Vec<Download> {
    let download = |label: &str, extent: Extent, formats: &[(&str, &str)]| {
        let link = |(label, format): &(&str, &str)| Link {
            label: (*label).to_owned(),
            href: query.exported(record, path, format, extent),
        };
        Download { label: label.to_owned(), links: formats.iter().map(link).collect() }
    };
    match on_page {
        OnPage::Nothing => Vec::new(),
        OnPage::All => vec![download("This list", Extent::Page, &OF_PAGE)],
        OnPage::Part => {
            vec![download("This page", Extent::Page, &OF_PAGE), download("All pages", Extent::All, &OF_ALL)]
        }
    }
}
