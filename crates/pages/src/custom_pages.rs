//! Pages that an application declares in `trefoil.toml`: its own view at its own path.

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use trefoil_application::{AllowedMethods, App, EndpointReply, TextEndpoint};
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_model::SourceFile;

use crate::Pages;
use crate::labels::path_heading;
use crate::view::{PageHead, PageLink};

impl Pages {
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

pub fn custom_view_names(app: &App) -> Vec<String> {
    app.view_names().map(str::to_owned).collect()
}

/// The template name and the text of a view.
pub fn template_source(view: &SourceFile) -> (String, String) {
    let name = view.name.strip_prefix("views/").unwrap_or(&view.name);
    (name.to_owned(), view.text.clone())
}

/// Navigation entries of the declared pages that respond to GET.
pub fn navigation_links(app: &App) -> impl Iterator<Item = PageLink> {
    let link = |endpoint: &TextEndpoint| match &endpoint.reply {
        EndpointReply::View(name) if app.has_view(name) && is_readable(&endpoint.methods) => {
            Some(PageLink { label: view_title(name), href: endpoint.path.clone() })
        }
        EndpointReply::View(_) | EndpointReply::Text(_) => None,
    };
    app.manifest.text_endpoints.iter().filter_map(link)
}

fn is_readable(methods: &AllowedMethods) -> bool {
    match methods {
        AllowedMethods::Any => true,
        AllowedMethods::Only(methods) => methods.iter().any(|method| method == "GET"),
    }
}

/// "Our team" for `about/our-team`.
fn view_title(name: &str) -> String {
    path_heading(name.rsplit('/').next().unwrap_or(name))
}

fn template_not_found(name: &str) -> Problem {
    let detail = format!("template not found: {name}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "TEMPLATE_NOT_FOUND", detail)
        .with_format(ErrorFormat::Text)
}
