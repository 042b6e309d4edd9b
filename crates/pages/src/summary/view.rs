//! The data of `summary.html`.

use serde::Serialize;

use crate::template_data::{ColumnView, ControlView, EmptyView, PageLink, ResourceView, SearchView};

/// `summary.html`: `summary` in the template.
#[derive(Debug, Serialize)]
pub struct SummaryView {
    pub resource: ResourceView,
    /// Search and filters, as on the list.
    pub search: SearchView,
    /// The group keys and the measure.
    pub controls: Vec<ControlView>,
    /// Mistakes in parameters that have no control.
    pub errors: Vec<String>,
    /// `None` if there is nothing to draw.
    pub chart: Option<ChartView>,
    /// `None` if there are no groups.
    pub table: Option<GroupTable>,
    /// Explains why there are no groups; `None` if there are some.
    pub empty: Option<EmptyView>,
    /// The same groups from the API.
    pub downloads: Vec<PageLink>,
    /// The list with the same filters.
    pub list: PageLink,
}

#[derive(Debug, Serialize)]
pub struct GroupTable {
    /// "12 groups".
    pub caption: String,
    /// The group keys, then the measures.
    pub columns: Vec<ColumnView>,
    pub rows: Vec<GroupRowView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupRowView {
    /// At least one.
    pub keys: Vec<String>,
    /// As many as there are measures.
    pub values: Vec<String>,
    /// The list of its records; `None` if no filter selects them.
    pub href: Option<String>,
}

/// Coordinates are percentages of width and height, so that texts keep their size on any screen.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct ChartView {
    /// "Number of orders by status".
    pub label: String,
    /// In pixels.
    pub height: usize,
    /// Horizontal bars, each below its label.
    pub bars: Vec<ChartBar>,
    /// The lines over time.
    pub series: Vec<ChartSeries>,
    /// Lines across, or the line at zero of bars.
    pub rules: Vec<ChartRule>,
    /// The times below the lines.
    pub ticks: Vec<ChartTick>,
    /// What the chart leaves out; empty if nothing.
    pub notes: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ChartBar {
    pub label: String,
    pub value: String,
    pub href: Option<String>,
    /// Pixels from the top.
    pub top: usize,
    pub left: f64,
    pub width: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ChartSeries {
    /// Empty if there is only one.
    pub label: String,
    pub tone: usize,
    /// x and y of both ends.
    pub segments: Vec<[f64; 4]>,
    pub points: Vec<ChartPoint>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ChartPoint {
    pub x: f64,
    pub y: f64,
    /// "Nov 2026: 12".
    pub label: String,
    pub href: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ChartRule {
    /// From the left for bars, else from the top.
    pub at: f64,
    /// The value; empty for bars.
    pub label: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub struct ChartTick {
    pub x: f64,
    /// `start`, `middle` or `end`.
    pub anchor: &'static str,
    pub label: String,
}
