//! Rendered pages as responses: template context, flash message, tag and headers.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use minijinja::Value;
use minijinja::value::Serde;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::etags;
use trefoil_model::error::ErrorSource;

use crate::template_data::{PageHead, PageLink};
use crate::templates::{TemplateError, ViewTemplates};
use crate::{Pages, flash};

impl Pages {
    /// Renders `content`, under the name `name`, with the view `name.html`.
    pub fn page_response(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        mut head: PageHead,
        name: &str,
        content: &impl Serialize,
    ) -> Result<Response, Problem> {
        let code = flash::cookie_for_page(headers);
        head.flash = head.flash.or_else(|| code.and_then(|code| self.flash_view(code)));
        let html = self.render_view(self.views(), &head, name, content).map_err(template_problem)?;
        let mut response = if status == StatusCode::OK && head.flash.is_none() {
            tagged_page(headers, html)?
        } else {
            let mut response = html_response(status, html);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        };
        if code.is_some() {
            flash::clear_cookie(response.headers_mut());
        }
        Ok(response)
    }

    pub fn render_view(
        &self,
        views: &ViewTemplates,
        head: &PageHead,
        name: &str,
        content: &impl Serialize,
    ) -> Result<String, TemplateError> {
        views.render(&format!("{name}.html"), self.template_context(head, name, content))
    }

    pub fn template_context(&self, head: &PageHead, name: &str, content: &impl Serialize) -> Value {
        // The last of equal names wins: an application's own view may be called `site` or `head`.
        Value::from_pairs([
            (name, Value::from(Serde(content))),
            ("site", self.site_value.clone()),
            ("head", Value::from(Serde(head))),
        ])
    }
}

fn html_response(status: StatusCode, html: String) -> Response {
    (status, [(CONTENT_TYPE, "text/html; charset=utf-8"), (VARY, "accept")], html).into_response()
}

/// A successful page, tagged with a hash of its bytes, so that any change alters the tag.
pub fn tagged_page(headers: &HeaderMap, html: String) -> Result<Response, Problem> {
    let tag = format!("\"{:032x}\"", xxh3_128(html.as_bytes()));
    etags::check_if_match(headers, Some(&tag))?;
    let mut response = html_response(StatusCode::OK, html);
    let tag = HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes");
    response.headers_mut().insert(ETAG, tag);
    Ok(etags::not_modified_if_known(headers, response))
}

impl PageHead {
    /// The head of a page below the start page; `section` is its navigation entry.
    pub fn new(here: impl Into<String>, section: &str, parents: Vec<PageLink>) -> PageHead {
        let here = here.into();
        let home = PageLink { label: "Home".to_owned(), href: "/".to_owned() };
        let crumbs = std::iter::once(home).chain(parents).collect();
        PageHead { title: here.clone(), crumbs, here, section: section.to_owned(), flash: None, ways: None }
    }
}

/// The template error as a response, for the author of the view. It is also logged with the request id.
pub fn template_problem(broken: TemplateError) -> Problem {
    let detail = format!("cannot render the template: {broken}");
    let problem = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "TEMPLATE_BROKEN", detail.as_str());
    Problem { cause: Some(ErrorSource::new(detail)), ..problem.with_format(ErrorFormat::Html) }
}
