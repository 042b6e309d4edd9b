//! Errors as pages. They must render when a template or the store is broken, so the last resort needs neither.

use super::Served;
use crate::faces::problem::Problem;

impl Served {
    pub fn error(&self, problem: &Problem, request_id: &str) -> String {
        bare(problem, request_id)
    }
}

/// Needs nothing that could be broken.
fn bare(problem: &Problem, request_id: &str) -> String {
    let title = escape(&format!("{} {}", problem.status.as_u16(), problem.title()));
    let detail = escape(&problem.detail);
    let mut rows = String::new();
    for violation in &problem.violations {
        rows.push_str(&format!("<li>{}</li>\n", escape(&violation.message)));
    }
    let list = if rows.is_empty() { rows } else { format!("<ul>\n{rows}</ul>\n") };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n<p>{detail}</p>\n{list}\
         <p><small>Request id: <code>{}</code></small></p>\n<p><a href=\"/\">Start page</a></p>\n</main>\n</body>\n</html>\n",
        escape(request_id)
    )
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}
