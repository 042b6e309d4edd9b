//! Where the rows of a list page are for programs: the same page, and all that matches, as CSV, NDJSON and JSON.

use trefoil_model::RecordType;
use trefoil_resources::list_query::{ExportExtent, ListQuery};

use crate::view::{DownloadLinks, PageLink};

/// JSON is of a part: all of a list is for what can be read line by line.
const PAGE_FORMATS: [(&str, &str); 3] = [("CSV", "csv"), ("NDJSON", "ndjson"), ("JSON", "json")];
const ALL_FORMATS: [(&str, &str); 2] = [("CSV", "csv"), ("NDJSON", "ndjson")];

/// How much of the list is on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCoverage {
    Nothing,
    Part,
    All,
}

pub fn download_links(
    record: &RecordType,
    path: &str,
    query: &ListQuery,
    on_page: PageCoverage,
) -> Vec<DownloadLinks> {
    let download = |label: &str, extent: ExportExtent, formats: &[(&str, &str)]| {
        let link = |(label, format): &(&str, &str)| PageLink {
            label: (*label).to_owned(),
            href: query.export_url(record, path, format, extent),
        };
        DownloadLinks { label: label.to_owned(), links: formats.iter().map(link).collect() }
    };
    match on_page {
        PageCoverage::Nothing => Vec::new(),
        PageCoverage::All => vec![download("This list", ExportExtent::Page, &PAGE_FORMATS)],
        PageCoverage::Part => {
            vec![
                download("This page", ExportExtent::Page, &PAGE_FORMATS),
                download("All pages", ExportExtent::All, &ALL_FORMATS),
            ]
        }
    }
}
