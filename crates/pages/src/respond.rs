//! A page on its way out: the view filled in, with the headers that every page has.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::Served;
use crate::flash;
use crate::view::{Head, Link};
use crate::views::{Broken, Views};
use trefoil_http::errors::problem::{Problem, Voice};
use trefoil_http::etags;
use trefoil_model::error::Cause;

impl Served {
    /// Shows `content` under `name` in the view `name.html`.
    pub fn show(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        mut head: Head,
        name: &str,
        content: &impl Serialize,
    ) -> Result<Response, Problem> {
        let code = flash::given(headers);
        head.flash = head.flash.or_else(|| code.and_then(|code| self.flash(code)));
        let html = self.render(self.views(), &head, name, content).map_err(broken)?;
        let mut response = if status == StatusCode::OK && head.flash.is_none() {
            tagged(headers, html)?
        } else {
            let mut response = page(status, html);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        };
        if code.is_some() {
            flash::clear(response.headers_mut());
        }
        Ok(response)
    }

    pub fn render(
        &self,
        views: &Views,
        head: &Head,
        name: &str,
        content: &impl Serialize,
    ) -> Result<String, Broken> {
        views.render(&format!("{name}.html"), self.context(head, name, content))
    }

    pub fn context(&self, head: &Head, name: &str, content: &impl Serialize) -> Value {
        // The later one of a name counts: a view of the application's own may be called like a part of the frame.
        Value::from_pairs([
            (name, Value::from(Serde(content))),
            ("site", self.site_value.clone()),
            ("head", Value::from(Serde(head))),
        ])
    }
}

fn page(status: StatusCode, html: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8"), (VARY, "accept")], html).into_response()
}

/// A page that succeeds has a tag: of its bytes, so that it is exact whatever changed.
pub fn tagged(headers: &HeaderMap, html: String) -> Result<Response, Problem> {
    let tag = format!("\"{:032x}\"", xxh3_128(html.as_bytes()));
    etags::allow(headers, Some(&tag))?;
    let mut response = page(StatusCode::OK, html);
    let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes");
    response.headers_mut().insert(ETAG, tag);
    Ok(etags::unless_known(headers, response))
}

impl Head {
    /// A page below the start page; `section` is its entry in the navigation.
    pub fn new(here: impl Into<String>, section: &str, above: Vec<Link>) -> Head {
        let here = here.into();
        let home = Link { label: "Home".to_owned(), href: "/".to_owned() };
        let crumbs = std::iter::once(home).chain(above).collect();
        Head { title: here.clone(), crumbs, here, section: section.to_owned(), flash: None, ways: None }
    }
}

/// Whoever wrote the view reads it here; the log has it too, with the request's id.
pub fn broken(broken: Broken) -> Problem {
    let detail = format!("the template is broken: {broken}");
    let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "TEMPLATE_BROKEN", detail.as_str());
    Problem { cause: Some(Cause::new(detail)), ..problem.voice(Voice::Html) }
}
