//! Pages that an application declares in `trefoil.toml`: a view of its own at a path of its own.

use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};

use crate::Served;
use crate::labels::heading;
use crate::view::{Head, Link};
use trefoil_application::{App, Methods, Reply, TextEndpoint};
use trefoil_http::errors::problem::{Problem, Voice};
use trefoil_model::SourceFile;

impl Served {
    /// The view `name` of the application; a built-in one needs what only its own pages have.
    pub fn own(&self, request: &Parts, name: &str) -> Response {
        if !self.own.iter().any(|own| own == name) {
            return no_template(name).into_response();
        }
        let head = Head::new(title(name), request.uri.path(), Vec::new());
        let reads = request.method == Method::GET || request.method == Method::HEAD;
        let nothing = HeaderMap::new();
        let headers = if reads { &request.headers } else { &nothing };
        let shown = self.show(headers, StatusCode::OK, head, name, &());
        shown.unwrap_or_else(IntoResponse::into_response)
    }
}

/// The names of the application's own views.
pub fn names(app: &App) -> Vec<String> {
    app.view_names().map(str::to_owned).collect()
}

/// A view by the name that templates know it by, and its text.
pub fn template(view: &SourceFile) -> (String, String) {
    let name = view.name.strip_prefix("views/").unwrap_or(&view.name);
    (name.to_owned(), view.text.clone())
}

/// The pages that one can go to, for the navigation.
pub fn links(app: &App) -> impl Iterator<Item = Link> {
    let link = |endpoint: &TextEndpoint| match &endpoint.reply {
        Reply::View(name) if app.has_view(name) && is_read(&endpoint.methods) => {
            Some(Link { label: title(name), href: endpoint.path.clone() })
        }
        Reply::View(_) | Reply::Text(_) => None,
    };
    app.manifest.texts.iter().filter_map(link)
}

fn is_read(methods: &Methods) -> bool {
    match methods {
        Methods::Any => true,
        Methods::Only(methods) => methods.iter().any(|method| method == "GET"),
    }
}

/// "Our team" for `about/our-team`.
fn title(name: &str) -> String {
    heading(name.rsplit('/').next().unwrap_or(name))
}

fn no_template(name: &str) -> Problem {
    let detail = format!("template not found: {name}");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "TEMPLATE_NOT_FOUND", detail).voice(Voice::Text)
}
