//! The pages face: records as HTML for people, with forms that need no script.

mod check_views;
mod custom;
mod delete;
mod detail;
pub mod errors;
mod examples;
pub mod flash;
mod form;
mod home;
mod labels;
mod list;
mod multi_read;
mod phrases;
mod plain_list;
mod record_reading;
mod respond;
#[cfg(test)]
mod tests;
mod view;
pub mod views;

pub use crate::check_views::audit;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::get;
use http::HeaderMap;
use minijinja::Value;
use minijinja::value::Serde;

use crate::detail::page::Sheet;
use crate::labels::Subject;
use crate::list::fragments::Parts;
use crate::record_reading::Reading;
use crate::view::Link;
use crate::views::Views;
use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::Selection;
use trefoil_http::assets::{Asset, Assets, ICON, SCRIPT, STYLE, plain_asset};
use trefoil_model::TypeId;
use trefoil_resources::Site;

static OWN: [Asset; 3] = [
    plain_asset!("{{css}}", "app", "css", STYLE),
    plain_asset!("{{js}}", "live", "js", SCRIPT),
    plain_asset!("{{icon}}", "icon", "svg", ICON),
];

static ASSETS: LazyLock<Assets> = LazyLock::new(|| Assets::new("/_/pages/", &OWN));

/// What one application's pages are made of, ready to be filled.
pub struct Served {
    name: String,
    /// None where the application has none of its own.
    views: Option<Views>,
    site: crate::view::Site,
    /// The same as templates take it.
    site_value: Value,
    /// How each record type is spoken of, by [`TypeId`].
    subjects: Vec<Subject>,
    /// The names of the application's own views.
    own: Vec<String>,
    /// What is read of a record for its name, for a row and for its page, by [`TypeId`].
    names: Vec<Arc<Selection>>,
    readings: Vec<Reading>,
    sheets: Vec<Sheet>,
    /// What there is beside records.
    others: Vec<Link>,
    parts: Parts,
}

impl Served {
    pub fn new(app: &App, site: &Site, config: &Config) -> Served {
        let subjects: Vec<Subject> = site.engine.model().records.iter().map(Subject::of).collect();
        let records = subjects.iter().map(|subject| &subject.resource);
        let records =
            records.map(|resource| Link { label: resource.plural.clone(), href: resource.path.clone() });
        let lists = app.manifest.lists.iter().filter(|list| list.page);
        let lists =
            lists.map(|list| Link { label: crate::labels::heading(list.name()), href: list.path.clone() });
        let shared = crate::view::Site {
            name: app.name.clone(),
            nav: records.chain(lists).chain(crate::custom::links(app)).collect(),
            css: ASSETS.fill("{{css}}"),
            js: ASSETS.fill("{{js}}"),
            icon: ASSETS.fill("{{icon}}"),
            graphiql: config.graphiql,
        };
        let model = site.engine.model();
        let types = || (0..model.records.len()).map(TypeId);
        let reading = |record: TypeId| {
            let shown = crate::record_reading::columns(model.record(record), subjects[record.0].title);
            Reading::of(model, &subjects, record, &shown)
        };
        let readings: Vec<Reading> = types().map(reading).collect();
        Served {
            name: app.name.clone(),
            views: views(app),
            site_value: Value::from(Serde(&shared)),
            site: shared,
            parts: Parts::new(config.limits.page_parts),
            names: types()
                .map(|record| Arc::new(crate::record_reading::names(model, &subjects, record)))
                .collect(),
            sheets: types().map(|record| Sheet::of(model, &subjects, &readings, record)).collect(),
            readings,
            subjects,
            own: crate::custom::names(app),
            others: crate::home::others(&app.manifest),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn own_views(&self) -> &[String] {
        &self.own
    }

    /// The built-in ones alone are compiled for the first page, not at the start.
    fn views(&self) -> &Views {
        self.views.as_ref().unwrap_or_else(|| Views::built_in())
    }

    fn subject(&self, record: TypeId) -> &Subject {
        &self.subjects[record.0]
    }
}

/// The application's own in place of the built-in ones; what is broken is told in the log once.
fn views(app: &App) -> Option<Views> {
    if app.views.is_empty() {
        return None;
    }
    let views = Views::over(app.views.iter().map(crate::custom::template));
    for broken in views.broken() {
        tracing::warn!("{broken}");
    }
    Some(views)
}

/// Style and script.
pub fn assets() -> Router {
    let file = async |Path(name): Path<String>, headers: HeaderMap| {
        ASSETS.respond(&name, &headers).map_err(IntoResponse::into_response)
    };
    Router::new().route("/_/pages/{name}", get(file))
}
