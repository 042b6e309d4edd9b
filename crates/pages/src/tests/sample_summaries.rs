//! Sample summaries: bars, lines, mistakes and nothing.

use crate::summary::view::*;
use crate::template_data::*;
use crate::tests::samples::{choices, control, link, list, pair, resource};

fn select(name: &str, id: &str, errors: &[&str]) -> ControlView {
    ControlView {
        id: id.to_owned(),
        options: choices(1),
        errors: errors.iter().map(|error| (*error).to_owned()).collect(),
        ..control(ControlKind::Select, name, "PAID")
    }
}

fn bar(label: &str, value: &str, top: usize, href: Option<&str>) -> ChartBar {
    ChartBar {
        label: label.to_owned(),
        value: value.to_owned(),
        href: href.map(str::to_owned),
        top,
        left: 12.5,
        width: 87.5,
    }
}

fn row(keys: &[&str], value: &str, href: Option<&str>) -> GroupRowView {
    GroupRowView {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        values: vec![value.to_owned()],
        href: href.map(str::to_owned),
    }
}

fn column(label: &str, now: Option<&'static str>) -> ColumnView {
    let sort = now.map(|now| SortLink { href: format!("?sort={label}"), now });
    ColumnView { label: label.to_owned(), numeric: label == "Number", sort }
}

pub fn summary() -> SummaryView {
    SummaryView {
        resource: resource(),
        search: SearchView { hidden: vec![pair("having", "count.gte=2")], ..list().search },
        controls: vec![select("group", "group", &[]), select("aggregate", "measure", &[])],
        errors: Vec::new(),
        chart: Some(ChartView {
            label: "Number of orders by status".to_owned(),
            height: 88,
            bars: vec![bar("Paid", "12", 0, Some("/orders?status=PAID")), bar("New", "-3", 44, None)],
            rules: vec![ChartRule { at: 12.5, label: String::new() }],
            notes: vec!["The table has all 120 groups.".to_owned()],
            ..ChartView::default()
        }),
        table: Some(GroupTable {
            caption: "2 groups".to_owned(),
            columns: vec![
                column("Status", Some("ascending")),
                column("Year", None),
                column("Number", Some("none")),
            ],
            rows: vec![
                row(&["Paid", "2026"], "12", Some("/orders?status=PAID")),
                row(&["New", "Not set"], "", None),
            ],
        }),
        empty: None,
        downloads: vec![link("CSV", "/orders?aggregate=count&format=csv")],
        list: link("List of orders", "/orders"),
    }
}

pub fn lines() -> SummaryView {
    let series = |tone: usize, label: &str, href: Option<&str>| ChartSeries {
        label: label.to_owned(),
        tone,
        segments: vec![[2.0, 10.0, 98.0, 88.0]],
        points: vec![ChartPoint {
            x: 2.0,
            y: 10.0,
            label: "2026: 3".to_owned(),
            href: href.map(str::to_owned),
        }],
    };
    let tick = |x: f64, anchor| ChartTick { x, anchor, label: "2026".to_owned() };
    let chart = ChartView {
        label: "Number of orders by year".to_owned(),
        height: 260,
        series: vec![series(0, "Paid", Some("/orders")), series(1, "New", None)],
        rules: vec![ChartRule { at: 10.0, label: "3".to_owned() }],
        ticks: vec![tick(2.0, "start"), tick(98.0, "end")],
        ..ChartView::default()
    };
    SummaryView { chart: Some(chart), ..summary() }
}

pub fn no_groups() -> SummaryView {
    SummaryView {
        search: SearchView { has_texts: false, filters: Vec::new(), active: 0, ..list().search },
        chart: None,
        table: None,
        empty: Some(EmptyView { text: "No orders yet.".to_owned(), link: None, is_beyond: false }),
        downloads: Vec::new(),
        ..summary()
    }
}

pub fn rejected() -> SummaryView {
    SummaryView {
        controls: vec![select("group", "group", &["Order has no field `statsu` to group by"])],
        errors: vec!["having: `coutn` is not a measure".to_owned()],
        empty: None,
        ..no_groups()
    }
}
