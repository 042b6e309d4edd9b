//! Pages that an application declares in `trefoil.toml`: a view of its own at a path of its own.

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
    /// The view `name` of the application; a built-in one needs what only its own pages have.
    pub fn custom_page(&self, request: &Parts, name: &str) -> Response {
        if !self.custom_views.iter().any(|own| own == name) {
            return template_not_found(name).into_response();
        }
        let head = PageHead::new(view_title(name), request.uri.path(), Vec::new());
        let reads = request.method == Method::GET || request.method == Method::HEAD;
        let nothing = HeaderMap::new();
        let headers = if reads { &request.headers } else { &nothing };
        let shown = self.page_response(headers, StatusCode::OK, head, name, &());
        shown.unwrap_or_else(IntoResponse::into_response)
    }
}

/// The names of the application's own views.
pub fn custom_view_names(app: &App) -> Vec<String> {
    app.view_names().map(str::to_owned).collect()
}

/// A view by the name that templates know it by, and its text.
pub fn template_source(view: &SourceFile) -> (String, String) {
    let name = view.name.strip_prefix("views/").unwrap_or(&view.name);
    (name.to_owned(), view.text.clone())
}

/// The pages that one can go to, for the navigation.
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
