//! A list page put together from parts: the frame that its address has, with its rows filled in.

use std::cell::LazyCell;
use std::sync::Arc;

use axum::response::Response;
use http::header::HOST;
use minijinja::Value;
use minijinja::value::Serde;

use crate::list::fragments::MadeFrom;
use crate::list::page::Listed;
use crate::respond::{broken, tagged};
use crate::view::TableRow;
use crate::views::{Broken, HOLE};
use trefoil_engine::OwnedRow;
use trefoil_http::client::Client;
use trefoil_http::errors::problem::Problem;

impl Listed<'_> {
    /// What the whole page would be, rendered at once; a test compares the two.
    pub fn put_together(&self) -> Result<Response, Problem> {
        let parts = &self.served.parts;
        let frame = parts.part(&self.frame_made_from(), || self.frame()).map_err(broken)?;
        let Some((before, after)) = frame.split_once(HOLE) else {
            return tagged(self.ask.headers(), frame.to_string());
        };
        let rows = self.rendered_rows().map_err(broken)?;
        let mut html = String::with_capacity(frame.len() + rows.iter().map(|row| row.len()).sum::<usize>());
        html.push_str(before);
        rows.iter().for_each(|row| html.push_str(row));
        html.push_str(after);
        tagged(self.ask.headers(), html)
    }

    fn rendered_rows(&self) -> Result<Vec<Arc<str>>, Broken> {
        let width = self.served.readings[self.place.record.0].selection.columns.len();
        let table = LazyCell::new(|| self.bare_table());
        let mut from = MadeFrom::default();
        let start = from.text("row").text(&self.place.path).length();
        let mut rows = Vec::with_capacity(self.rows.rows.len());
        for row in &self.rows.rows {
            // Behind the columns stands what is only read for the way to the next page.
            from.cut(start).cells(&row.cells[..width]).children(row);
            rows.push(self.served.parts.part(&from, || self.rendered_row(row, &table))?);
        }
        Ok(rows)
    }

    /// All that the page around the rows depends on, within one application and its views.
    fn frame_made_from(&self) -> MadeFrom {
        let (head, rows) = (self.ask.head, &self.rows);
        let mut from = MadeFrom::default();
        let origin = head.extensions.get::<Client>().map(|client| client.origin(head.headers.get(HOST)));
        from.text("frame").text(&origin.unwrap_or_default()).text(self.address());
        if let Some(above) = &self.above {
            from.row(above);
        }
        for found in &self.choices {
            from.found(found);
        }
        from.number(rows.rows.len()).number(rows.total as usize).number(usize::from(rows.more));
        // The way to the next page is made of the last row.
        if let Some(last) = rows.rows.last().filter(|_| rows.more) {
            from.cells(&last.cells[last.cells.len() - self.filters.query.listing.order.len() - 1..]);
        }
        from
    }

    fn frame(&self) -> Result<String, Broken> {
        let stand_in = self.rows.rows.first().map(|_| TableRow::default());
        let list = self.view(stand_in.into_iter().collect());
        let context = self.served.context(&self.head(&list), "list", &list);
        self.served.views().render_frame("list.html", context)
    }

    /// As much of the table as a row may look at.
    fn bare_table(&self) -> Value {
        let columns = self.served.columns(self.ask.site, &self.columns(), None);
        Value::from_pairs([("columns", Value::from(Serde(columns)))])
    }

    fn rendered_row(&self, row: &OwnedRow, table: &Value) -> Result<String, Broken> {
        let row = Value::from(Serde(self.served.row(self.ask.site, &self.columns(), row)));
        let context = Value::from_pairs([("row", row), ("table", table.clone())]);
        self.served.views().render("_row.html", context)
    }
}
