//! Error pages. They must render even if a template or the store is broken, so the last resort needs neither.

use http::StatusCode;
use http::header::RETRY_AFTER;

use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::percent_encode;
use trefoil_resources::collection::Collection;

use crate::Pages;
use crate::template_data::{ApiExamples, ErrorView, PageHead, PageLink};
use crate::templates::ViewTemplates;

impl Pages {
    /// The error page, made without the store, which may have failed. `near` is a similar path that exists, `again` the
    /// requested URL if requesting it has no side effect.
    pub fn error_page(
        &self,
        problem: &Problem,
        collection: Option<&Collection>,
        near: Option<&str>,
        again: Option<String>,
        examples: ApiExamples,
        request_id: &str,
    ) -> String {
        let resource = collection.map(|collection| &self.labels_of(collection.record).resource);
        let parent =
            resource.map(|resource| PageLink { label: resource.plural.clone(), href: resource.path.clone() });
        let section = parent.as_ref().map_or_else(String::new, |parent| parent.href.clone());
        let near = near.map(|path| PageLink { label: path.to_owned(), href: path.to_owned() });
        let is_for_others = [StatusCode::UNAUTHORIZED, StatusCode::NOT_FOUND].contains(&problem.status);
        let sign_in = self.sign_in.as_ref().filter(|_| is_for_others).map(|page| match &again {
            Some(address) => format!("{page}?next={}", percent_encode(address)),
            None => page.clone(),
        });
        let again = again.filter(|_| is_temporary(problem));
        let advice = match (&sign_in, problem.status) {
            (Some(_), StatusCode::UNAUTHORIZED) => "Sign in, then try again.".to_owned(),
            (Some(_) | None, _) => advice(problem),
        };
        let error = ErrorView { near, again, sign_in, advice, ..error_view(problem, request_id) };
        let mut head = PageHead::new(&error.title, &section, parent.into_iter().collect());
        head.ways = Some(examples);
        match self.render_view(self.views(), &head, "error", &error) {
            Ok(html) => html,
            Err(broken) => {
                tracing::error!(request_id, "cannot render the error page: {broken}");
                let built_in = self.render_view(ViewTemplates::built_in(), &head, "error", &error);
                built_in.unwrap_or_else(|_| bare_page(&error))
            }
        }
    }
}

/// A page without any template.
pub fn last_resort(problem: &Problem, request_id: &str) -> String {
    bare_page(&error_view(problem, request_id))
}

fn error_view(problem: &Problem, request_id: &str) -> ErrorView {
    let (title, detail) = title_and_detail(problem);
    ErrorView {
        status: problem.status.as_u16(),
        title: title.to_owned(),
        detail: full_sentence(detail),
        violations: problem.violations.iter().map(|violation| violation.message.clone()).collect(),
        advice: advice(problem),
        near: None,
        again: None,
        sign_in: None,
        request_id: request_id.to_owned(),
    }
}

/// Title and detail for people who do not know HTTP and cannot change a setting: without names of limits.
fn title_and_detail(problem: &Problem) -> (&'static str, &str) {
    // Without a suffix such as `(limits.body)`.
    let plain = problem.detail.split(" (limits.").next().unwrap_or_default();
    match (problem.status, &*problem.code) {
        (StatusCode::BAD_REQUEST, _) => ("Invalid request", plain),
        (StatusCode::FORBIDDEN, "CROSS_SITE") => {
            ("Nothing was done", "The form was sent from a page of another site, which is not allowed")
        }
        (StatusCode::UNAUTHORIZED, _) => ("This is not for everybody", plain),
        (StatusCode::FORBIDDEN, "FORBIDDEN") => ("You may not do this", plain),
        (StatusCode::NOT_FOUND, _) => ("Not found", plain),
        (StatusCode::METHOD_NOT_ALLOWED, _) => {
            ("Nothing was done", "This page does not accept what was sent")
        }
        (StatusCode::PAYLOAD_TOO_LARGE, _) => ("Too much data", plain),
        (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL") => {
            ("Something went wrong", "An error occurred on the server")
        }
        (StatusCode::INTERNAL_SERVER_ERROR, _) => ("Something went wrong", plain),
        (StatusCode::SERVICE_UNAVAILABLE, _) => ("Temporarily unavailable", plain),
        _ => (problem.title(), plain),
    }
}

/// Advice on what to do next.
fn advice(problem: &Problem) -> String {
    let retry_after = problem.headers.iter().find(|(name, _)| *name == RETRY_AFTER);
    let retry_after = retry_after.and_then(|(_, seconds)| seconds.to_str().ok());
    let retry = match retry_after {
        Some("1") => "Try again in a second.".to_owned(),
        Some(seconds) => format!("Try again in {seconds} seconds."),
        None => "Try again in a moment.".to_owned(),
    };
    let text = match problem.status {
        StatusCode::BAD_REQUEST => "Check the address and your input, then try again.",
        StatusCode::UNAUTHORIZED => {
            "Send an API key or a token with the request, in the header Authorization: Bearer."
        }
        StatusCode::FORBIDDEN if problem.code == "FORBIDDEN" => {
            "Ask whoever runs this application, if you need to."
        }
        StatusCode::FORBIDDEN => "Open the page on this site and send it from there.",
        StatusCode::NOT_FOUND => "Check the address, or start from the home page.",
        StatusCode::METHOD_NOT_ALLOWED => "Go back and use the links and buttons on the page.",
        StatusCode::NOT_ACCEPTABLE => "Open the address in a browser, or request application/json.",
        StatusCode::REQUEST_TIMEOUT => "Check the connection, then send it again.",
        StatusCode::CONFLICT => "Go back, reload the page and check the current values.",
        StatusCode::PRECONDITION_FAILED => "Reload the page: somebody else has changed the record.",
        StatusCode::PAYLOAD_TOO_LARGE => "Go back and send less data.",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "Send a form or JSON.",
        StatusCode::UNPROCESSABLE_ENTITY => "Go back, reload the form and send it again.",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "Delete the cookies of this site, or shorten the address."
        }
        _ if is_temporary(problem) => return retry,
        status if status.is_server_error() => {
            "Try again later. If the problem persists, report the request id below to the operator of this server."
        }
        _ => "Go back and try again.",
    };
    text.to_owned()
}

/// True if the error passes by itself.
fn is_temporary(problem: &Problem) -> bool {
    matches!(problem.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// A detail as a sentence: with a capital and a full stop.
fn full_sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let sentence: String = match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    };
    if sentence.is_empty() || sentence.ends_with(['.', '!', '?', ':']) { sentence } else { sentence + "." }
}

/// The page without a template, which could be broken.
fn bare_page(error: &ErrorView) -> String {
    let title = escape_html(&format!("{} {}", error.status, error.title));
    let (detail, advice) = (escape_html(&error.detail), escape_html(&error.advice));
    let mut rows = String::new();
    for violation in &error.violations {
        rows.push_str(&format!("<li>{}</li>\n", escape_html(violation)));
    }
    let list = if rows.is_empty() { rows } else { format!("<ul>\n{rows}</ul>\n") };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n<p>{detail}</p>\n{list}<p>{advice}</p>\n\
         <p><small>Request id: <code>{}</code></small></p>\n<p><a href=\"/\">Home</a></p>\n</main>\n</body>\n</html>\n",
        escape_html(&error.request_id)
    )
}

fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_page_is_complete_and_escaped() {
        let failure = ErrorView {
            status: 500,
            title: "Internal Server Error".to_owned(),
            detail: "<b>".to_owned(),
            violations: vec!["'x' & \"y\"".to_owned()],
            advice: "Try again.".to_owned(),
            near: None,
            again: None,
            sign_in: None,
            request_id: "id-1".to_owned(),
        };
        let html = bare_page(&failure);
        for part in ["500 Internal", "&lt;b&gt;", "&#39;x&#39; &amp; &quot;y&quot;", "Try again.", "id-1"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<b>"));
    }
}
