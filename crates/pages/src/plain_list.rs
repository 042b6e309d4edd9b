//! A plain list as a page: its values by index, a part at a time, and the form that adds one.

use axum::response::Response;
use http::StatusCode;
use http::request::Parts;

use crate::Served;
use crate::examples::page::About;
use crate::flash;
use crate::flash::Deed;
use crate::form::errors::sentence;
use crate::form::keys;
use crate::labels::heading;
use crate::multi_read::{PART, look};
use crate::phrases::{counted, cut, grouped};
use crate::view::{Control, Empty, Form, Head, Indexed, Link, Pager, Plain};
use trefoil_engine::{ListAct, Outcome};
use trefoil_http::client::Client;
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::Pairs;
use trefoil_model::error::Error;
use trefoil_resources::Site;
use trefoil_resources::form_input::KEY;
use trefoil_resources::list_query::page_and_size;
use trefoil_resources::plain_list::{CONTROL, List, expected, refusal, shown};
use trefoil_resources::write::see_other;

/// How many characters of a value are shown.
const SHOWN: usize = 500;

impl Served {
    /// Never kept as the list is: two that send a form with one key are taken for one that sends it twice.
    pub async fn plain(&self, site: &Site, list: &List, head: &Parts) -> Result<Response, Problem> {
        self.plain_with(site, list, head, StatusCode::OK, form(list, "", Vec::new())).await
    }

    /// What the form does. One that does not pass comes back with the page.
    pub async fn append(
        &self,
        site: &Site,
        list: &List,
        head: &Parts,
        pairs: &Pairs,
        body: &[u8],
    ) -> Result<Response, Problem> {
        let sent =
            |wanted: &str| pairs.iter().rev().find(|(name, _)| name == wanted).map(|(_, text)| text.as_str());
        let value = sent(CONTROL).unwrap_or_default();
        let key = keys::key(List::key(head, body)?, head, sent(KEY), pairs);
        match keys::append(&site.engine, list, value, expected(&head.headers), key).await {
            Ok(confirmed) => {
                let mut response = confirmed.marked(see_other(&list.path));
                flash::tell(&mut response, head.extensions.get::<Client>(), Deed::Added, &list.path, 0);
                Ok(response)
            }
            Err(Error::Invalid(violations)) => {
                let errors = violations.into_iter().map(|violation| sentence(&violation.message)).collect();
                let form = form(list, value, errors);
                self.plain_with(site, list, head, StatusCode::BAD_REQUEST, form).await
            }
            Err(error) => Err(refusal(error)),
        }
    }

    /// The page with this form on it.
    pub async fn plain_with(
        &self,
        site: &Site,
        list: &List,
        head: &Parts,
        status: StatusCode,
        form: Form,
    ) -> Result<Response, Problem> {
        let (page, size) = page_and_size(&head.uri, site.engine.limits())?;
        let index = page.saturating_sub(1).saturating_mul(size);
        let read = list.operation(ListAct::Slice { index, count: size });
        let found = look(&site.engine, vec![read], PART).await?.pop();
        let Some((Outcome::Plain { length, .. }, rows)) = found.map(|found| (found.outcome, found.rows))
        else {
            return Err(Error::internal("a plain list ended as something else").into());
        };
        let values: Vec<Indexed> = rows
            .iter()
            .zip(index..)
            .map(|(row, index)| Indexed {
                index: index.unsigned_abs(),
                text: brief(shown(row.cells[0].as_cell())),
            })
            .collect();
        let is_usual = size == site.engine.limits().page_size;
        let address =
            if is_usual { format!("{}?", list.path) } else { format!("{}?size={size}&", list.path) };
        let last = length.unsigned_abs().div_ceil(size.unsigned_abs().max(1)) as i64;
        let content = Plain {
            heading: heading(&list.name),
            caption: caption(index, values.len(), length),
            empty: empty(&address, page, last),
            pager: pager(&address, page, last),
            values,
            form,
        };
        let mut frame = Head::new(content.heading.clone(), &list.path, Vec::new());
        frame.ways = Some(self.ways(site, head, About::Plain { path: &list.path }));
        self.show(&head.headers, status, frame, "plain", &content)
    }
}

fn brief(text: &str) -> String {
    match cut(text, SHOWN) {
        Some(part) => format!("{part}…"),
        None => text.to_owned(),
    }
}

/// The form that adds a value: what was typed, and what is wrong with it.
pub fn form(list: &List, typed: &str, errors: Vec<String>) -> Form {
    let complaints = errors.iter().map(|error| Link { label: error.clone(), href: format!("#f-{CONTROL}") });
    let complaints = complaints.collect();
    let control = Control {
        name: CONTROL.to_owned(),
        id: format!("f-{CONTROL}"),
        label: "Value".to_owned(),
        value: typed.to_owned(),
        errors,
        ..Control::default()
    };
    Form {
        heading: "Add a value".to_owned(),
        action: list.path.clone(),
        submit: "Add value".to_owned(),
        cancel: list.path.clone(),
        key: keys::fresh(),
        version: None,
        complaints,
        controls: vec![control],
        conflict: None,
    }
}

fn caption(index: i64, shown: usize, length: i64) -> String {
    let all = counted(length.unsigned_abs(), "value", "values");
    match shown as u64 {
        0 => all,
        shown => {
            let first = index.unsigned_abs() + 1;
            format!("{} to {} of {all}", grouped(first), grouped(first + shown - 1))
        }
    }
}

/// Why there are no values on this page, and the way out; the form that adds one is on the page itself.
fn empty(address: &str, page: i64, last: i64) -> Option<Empty> {
    let (label, href) = match last {
        _ if page <= last => return None,
        0 => return Some(Empty { text: "No values yet.".to_owned(), link: None, is_beyond: false }),
        1 => ("To the list", address.trim_end_matches(['?', '&']).to_owned()),
        last => ("To the last page", format!("{address}page={last}")),
    };
    let text = format!("There is nothing on page {page}: the list ends before it.");
    Some(Empty { text, link: Some(Link { label: label.to_owned(), href }), is_beyond: true })
}

/// `address` is the page's, up to where its number goes.
fn pager(address: &str, page: i64, last: i64) -> Pager {
    if page > last {
        return Pager::default();
    }
    let at = |page: i64| format!("{address}page={page}");
    Pager {
        previous: (page > 1).then(|| at(page - 1)),
        next: (page < last).then(|| at(page + 1)),
        text: format!("Page {} of {}", grouped(page.unsigned_abs()), grouped(last.unsigned_abs())),
    }
}
