//! The page of a plain list: its values by index, in parts, and the form that adds one.

use axum::response::Response;
use http::StatusCode;
use http::request::Parts;

use trefoil_engine::{Outcome, PlainListAction};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::Error;
use trefoil_resources::ServedResources;
use trefoil_resources::forms::form_input::KEY_CONTROL;
use trefoil_resources::list_query::page_and_size;
use trefoil_resources::plain_list::{
    PlainListResource, VALUE_CONTROL, cell_text, expected_versions, list_problem,
};
use trefoil_resources::write::see_other;

use crate::Pages;
use crate::examples::page::PageSubject;
use crate::flash::{self, FlashKind};
use crate::form::errors::capitalize;
use crate::form::keys;
use crate::labels::path_heading;
use crate::phrases::{counted_noun, cut_text, group_thousands};
use crate::snapshot_reads::{TEXT_PREVIEW_BYTES, read_snapshot};
use crate::template_data::{
    ControlView, EmptyView, FormView, IndexedValue, PageHead, PageLink, PagerView, PlainListPage,
};

/// Characters of a value that are shown.
const MAX_DISPLAY_LENGTH: usize = 500;

impl Pages {
    /// The page of the list. It is not cached, because each form needs its own key: two people who send a form with the
    /// same key count as one person who sends it twice.
    pub async fn plain_list_page(
        &self,
        resources: &ServedResources,
        list: &PlainListResource,
        head: &Parts,
    ) -> Result<Response, Problem> {
        self.plain_list_with_form(resources, list, head, StatusCode::OK, value_form(list, "", Vec::new()))
            .await
    }

    /// Appends the value of the form. Invalid input is shown again with its errors.
    pub async fn submit_value(
        &self,
        resources: &ServedResources,
        list: &PlainListResource,
        head: &Parts,
        pairs: &FormPairs,
        body: &[u8],
    ) -> Result<Response, Problem> {
        let last_value = |control: &str| {
            pairs.iter().rev().find(|(name, _)| name == control).map(|(_, text)| text.as_str())
        };
        let value = last_value(VALUE_CONTROL).unwrap_or_default();
        let key = keys::form_key(
            PlainListResource::idempotency_key(head, body)?,
            head,
            last_value(KEY_CONTROL),
            pairs,
        );
        match keys::append_once(&resources.engine, list, value, expected_versions(&head.headers), key).await {
            Ok(confirmed) => {
                let mut response = confirmed.mark_response(see_other(&list.path));
                flash::set_cookie(
                    &mut response,
                    head.extensions.get::<ClientInfo>(),
                    FlashKind::Added,
                    &list.path,
                    None,
                );
                Ok(response)
            }
            Err(Error::Invalid(violations)) => {
                let errors = violations.into_iter().map(|violation| capitalize(&violation.message)).collect();
                let form = value_form(list, value, errors);
                self.plain_list_with_form(resources, list, head, StatusCode::BAD_REQUEST, form).await
            }
            Err(error) => Err(list_problem(error)),
        }
    }

    /// The page with this form.
    pub async fn plain_list_with_form(
        &self,
        resources: &ServedResources,
        list: &PlainListResource,
        head: &Parts,
        status: StatusCode,
        form: FormView,
    ) -> Result<Response, Problem> {
        let (page, size) = page_and_size(&head.uri, resources.engine.limits())?;
        let index = page.saturating_sub(1).saturating_mul(size);
        let read = list.operation(PlainListAction::Slice { index, count: size });
        let found = read_snapshot(&resources.engine, vec![read], TEXT_PREVIEW_BYTES).await?.pop();
        let Some((Outcome::PlainList { length, .. }, rows)) = found.map(|found| (found.outcome, found.rows))
        else {
            return Err(Error::internal("unexpected outcome of a plain list").into());
        };
        let values: Vec<IndexedValue> = rows
            .iter()
            .zip(index..)
            .map(|(row, index)| IndexedValue {
                index: index.unsigned_abs(),
                text: shorten(cell_text(row.cells[0].as_cell())),
            })
            .collect();
        let is_default_size = size == resources.engine.limits().page_size;
        let base_url =
            if is_default_size { format!("{}?", list.path) } else { format!("{}?size={size}&", list.path) };
        let last = length.unsigned_abs().div_ceil(size.unsigned_abs().max(1)) as i64;
        let content = PlainListPage {
            heading: path_heading(&list.name),
            caption: values_caption(index, values.len(), length),
            empty: empty_view(&base_url, page, last),
            pager: pager_view(&base_url, page, last),
            values,
            form,
        };
        let mut page_head = PageHead::new(content.heading.clone(), &list.path, Vec::new());
        page_head.ways =
            Some(self.api_examples(resources, head, PageSubject::PlainList { path: &list.path }));
        self.page_response(&head.headers, status, page_head, "plain", &content)
    }
}

fn shorten(text: &str) -> String {
    match cut_text(text, MAX_DISPLAY_LENGTH) {
        Some(part) => format!("{part}…"),
        None => text.to_owned(),
    }
}

/// The form that adds a value, with the typed text and its errors.
pub fn value_form(list: &PlainListResource, typed: &str, errors: Vec<String>) -> FormView {
    let complaints =
        errors.iter().map(|error| PageLink { label: error.clone(), href: format!("#f-{VALUE_CONTROL}") });
    let complaints = complaints.collect();
    let control = ControlView {
        name: VALUE_CONTROL.to_owned(),
        id: format!("f-{VALUE_CONTROL}"),
        label: "Value".to_owned(),
        value: typed.to_owned(),
        errors,
        ..ControlView::default()
    };
    FormView {
        heading: "Add a value".to_owned(),
        action: list.path.clone(),
        submit: "Add value".to_owned(),
        cancel: list.path.clone(),
        key: keys::new_key(),
        version: None,
        base: None,
        complaints,
        controls: vec![control],
        conflict: None,
    }
}

fn values_caption(index: i64, shown: usize, length: i64) -> String {
    let total = counted_noun(length.unsigned_abs(), "value", "values");
    match shown as u64 {
        0 => total,
        shown => {
            let first = index.unsigned_abs() + 1;
            format!("{} to {} of {total}", group_thousands(first), group_thousands(first + shown - 1))
        }
    }
}

/// Explains why the page has no values, with a link elsewhere. An empty list needs no link: the form is on the page.
fn empty_view(base_url: &str, page: i64, last: i64) -> Option<EmptyView> {
    let (label, href) = match last {
        _ if page <= last => return None,
        0 => return Some(EmptyView { text: "No values yet.".to_owned(), link: None, is_beyond: false }),
        1 => ("Go to the list", base_url.trim_end_matches(['?', '&']).to_owned()),
        last => ("Go to the last page", format!("{base_url}page={last}")),
    };
    let text = format!("Page {page} is past the end of the list.");
    Some(EmptyView { text, link: Some(PageLink { label: label.to_owned(), href }), is_beyond: true })
}

/// `base_url` is the URL of the list, ready for the page parameter.
fn pager_view(base_url: &str, page: i64, last: i64) -> PagerView {
    if page > last {
        return PagerView::default();
    }
    let page_url = |page: i64| format!("{base_url}page={page}");
    PagerView {
        previous: (page > 1).then(|| page_url(page - 1)),
        next: (page < last).then(|| page_url(page + 1)),
        text: format!(
            "Page {} of {}",
            group_thousands(page.unsigned_abs()),
            group_thousands(last.unsigned_abs())
        ),
        ..PagerView::default()
    }
}
