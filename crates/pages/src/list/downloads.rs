//! Download links of a list page: this page and all pages, as CSV, NDJSON and JSON.

use trefoil_model::{Model, RecordType};
use trefoil_resources::list_query::{ExportExtent, ListQuery};

use crate::template_data::{DownloadLinks, PageLink};

/// JSON only for a page: a whole list is offered in formats that can be read line by line.
const PAGE_FORMATS: [(&str, &str); 3] = [("CSV", "csv"), ("NDJSON", "ndjson"), ("JSON", "json")];
const ALL_FORMATS: [(&str, &str); 2] = [("CSV", "csv"), ("NDJSON", "ndjson")];

/// The part of the list that is on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCoverage {
    Nothing,
    Part,
    All,
}

pub fn download_links(
    model: &Model,
    record: &RecordType,
    path: &str,
    query: &ListQuery,
    coverage: PageCoverage,
) -> Vec<DownloadLinks> {
    let download = |label: &str, extent: ExportExtent, formats: &[(&str, &str)]| {
        let link = |(label, format): &(&str, &str)| PageLink {
            label: (*label).to_owned(),
            href: query.export_url(model, record, path, format, extent),
        };
        DownloadLinks { label: label.to_owned(), links: formats.iter().map(link).collect() }
    };
    match coverage {
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
