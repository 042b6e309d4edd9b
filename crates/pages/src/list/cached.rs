//! Assembles a list page from cached fragments: the frame for its URL, with the rows filled in.

use std::cell::LazyCell;
use std::sync::Arc;

use axum::response::Response;
use http::header::HOST;
use minijinja::Value;
use minijinja::value::Serde;

use trefoil_engine::OwnedRow;
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;

use crate::list::fragments::FragmentKey;
use crate::list::page::ListPage;
use crate::record_reading::row_id;
use crate::respond::{tagged_page, template_problem};
use crate::template_data::TableRow;
use crate::templates::{ROW_PLACEHOLDER, TemplateError};

impl ListPage<'_> {
    /// The same bytes as rendering the whole page at once, which a test compares.
    pub fn cached_response(&self) -> Result<Response, Problem> {
        let fragments = &self.pages.fragments;
        let frame =
            fragments.get_or_render(&self.frame_key(), || self.render_frame()).map_err(template_problem)?;
        let Some((before, after)) = frame.split_once(ROW_PLACEHOLDER) else {
            return tagged_page(self.request.headers(), frame.to_string());
        };
        let rows = self.render_rows().map_err(template_problem)?;
        let mut html = String::with_capacity(frame.len() + rows.iter().map(|row| row.len()).sum::<usize>());
        html.push_str(before);
        rows.iter().for_each(|row| html.push_str(row));
        html.push_str(after);
        tagged_page(self.request.headers(), html)
    }

    fn render_rows(&self) -> Result<Vec<Arc<str>>, TemplateError> {
        let width = self.pages.row_readings[self.target.record.0].selection.columns.len();
        let table = LazyCell::new(|| self.row_table());
        let mut key = FragmentKey::of_class(self.request.resources.engine.access_class());
        let start = key.add_text("row").add_text(&self.target.path).byte_length();
        let mut rows = Vec::with_capacity(self.rows.rows.len());
        for row in &self.rows.rows {
            // The cells after the columns are only for the cursor of the next page.
            let is_editable = self.editable.contains(&row_id(row));
            key.truncate(start).add_number(usize::from(is_editable));
            key.add_cells(&row.cells[..width]).add_children(row);
            rows.push(self.pages.fragments.get_or_render(&key, || self.render_row(row, &table))?);
        }
        Ok(rows)
    }

    /// Everything that the frame depends on, within one application and its views.
    fn frame_key(&self) -> FragmentKey {
        let (head, rows) = (self.request.head, &self.rows);
        let mut key = FragmentKey::of_class(self.request.resources.engine.access_class());
        let origin = head.extensions.get::<ClientInfo>().map(|client| client.origin(head.headers.get(HOST)));
        key.add_text("frame").add_text(&origin.unwrap_or_default()).add_text(self.address());
        if let Some(account) = &self.pages.account {
            key.add_text(&account.id.to_string()).add_text(&account.label);
        }
        if let Some(parent_row) = &self.parent_row {
            key.add_row(parent_row);
        }
        if let Some(sums) = &self.sums {
            key.add_row(sums);
        }
        for found in &self.filter_choices {
            key.add_found_rows(found);
        }
        key.add_number(rows.rows.len())
            .add_number(rows.total as usize)
            .add_number(usize::from(rows.has_more));
        // The link to the next page has the cursor of the last row.
        if let Some(last) = rows.rows.last().filter(|_| rows.has_more) {
            key.add_cells(&last.cells[last.cells.len() - self.filters.query.listing.sort_keys.len() - 1..]);
        }
        key
    }

    fn render_frame(&self) -> Result<String, TemplateError> {
        let placeholder = self.rows.rows.first().map(|_| TableRow::default());
        let list = self.list_view(placeholder.into_iter().collect());
        let context = self.pages.template_context(&self.page_head(&list), "list", &list);
        self.pages.views().render_frame("list.html", context)
    }

    /// The part of the table that the template of a row can see.
    fn row_table(&self) -> Value {
        let columns = self.pages.column_views(self.request.resources, &self.table_columns(), None);
        Value::from_pairs([("columns", Value::from(Serde(columns)))])
    }

    fn render_row(&self, row: &OwnedRow, table: &Value) -> Result<String, TemplateError> {
        let row =
            Value::from(Serde(self.pages.table_row(self.request.resources, &self.table_columns(), row)));
        let context = Value::from_pairs([("row", row), ("table", table.clone())]);
        self.pages.views().render("_row.html", context)
    }
}
