//! What an application serves of its own: views at paths that `trefoil.toml` declares, and static files.

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use trefoil_http::errors::problem::{ErrorFormat, Problem};

use crate::Pages;
use crate::site::declared_pages::view_title;
use crate::template_data::PageHead;

impl Pages {
    /// A file of the application's folder `static/`.
    pub fn static_file(&self, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        self.static_folder.respond(name, headers)
    }

    /// Renders the application's view `name`. Built-in views need data that only their own pages have.
    pub fn custom_page(&self, request: &Parts, name: &str) -> Response {
        if !self.custom_views.iter().any(|view| view == name) {
            return template_not_found(name).into_response();
        }
        let head = PageHead::new(view_title(name), request.uri.path(), Vec::new());
        let is_read = request.method == Method::GET || request.method == Method::HEAD;
        let no_headers = HeaderMap::new();
        let headers = if is_read { &request.headers } else { &no_headers };
        let response = self.page_response(headers, StatusCode::OK, head, name, &());
        response.unwrap_or_else(IntoResponse::into_response)
    }
}

fn template_not_found(name: &str) -> Problem {
    let detail = format!("template not found: {name}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "TEMPLATE_NOT_FOUND", detail)
        .with_format(ErrorFormat::Text)
}
