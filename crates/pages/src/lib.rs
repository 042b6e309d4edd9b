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

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Path;
use axum::response::IntoResponse;
use axum::routing::get;
use http::HeaderMap;
use minijinja::Value;
use minijinja::value::Serde;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::Selection;
use trefoil_http::assets::{AssetFolder, ICON_TYPE, SCRIPT_TYPE, STYLE_TYPE, StaticAsset, plain_asset};
use trefoil_model::RecordTypeId;
use trefoil_resources::ServedResources;

use crate::detail::page::DetailLayout;
use crate::labels::ResourceLabels;
use crate::list::fragments::FragmentCache;
use crate::record_reading::RecordReading;
use crate::view::PageLink;
use crate::views::ViewTemplates;

pub use crate::check_views::check_views;

static ASSET_FILES: [StaticAsset; 3] = [
    plain_asset!("{{css}}", "app", "css", STYLE_TYPE),
    plain_asset!("{{js}}", "live", "js", SCRIPT_TYPE),
    plain_asset!("{{icon}}", "icon", "svg", ICON_TYPE),
];

static ASSETS: LazyLock<AssetFolder> = LazyLock::new(|| AssetFolder::new("/_/pages/", &ASSET_FILES));

/// What one application's pages are made of, ready to be filled.
pub struct Pages {
    name: String,
    /// None where the application has none of its own.
    views: Option<ViewTemplates>,
    site_view: crate::view::SiteView,
    /// The same as templates take it.
    site_value: Value,
    /// How each record type is spoken of, by [`TypeId`].
    labels: Vec<ResourceLabels>,
    /// The names of the application's own views.
    custom_views: Vec<String>,
    /// What is read of a record for its name, for a row and for its page, by [`TypeId`].
    name_selections: Vec<Arc<Selection>>,
    row_readings: Vec<RecordReading>,
    detail_layouts: Vec<DetailLayout>,
    /// What there is beside records.
    other_links: Vec<PageLink>,
    fragments: FragmentCache,
}

impl Pages {
    pub fn new(app: &App, site: &ServedResources, config: &Config) -> Pages {
        let subjects: Vec<ResourceLabels> =
            site.engine.model().records.iter().map(ResourceLabels::from_record).collect();
        let records = subjects.iter().map(|subject| &subject.resource);
        let records =
            records.map(|resource| PageLink { label: resource.plural.clone(), href: resource.path.clone() });
        let lists = app.manifest.plain_lists.iter().filter(|list| list.page);
        let lists = lists.map(|list| PageLink {
            label: crate::labels::path_heading(list.name()),
            href: list.path.clone(),
        });
        let shared = crate::view::SiteView {
            name: app.name.clone(),
            nav: records.chain(lists).chain(crate::custom::navigation_links(app)).collect(),
            css: ASSETS.fill_placeholders("{{css}}"),
            js: ASSETS.fill_placeholders("{{js}}"),
            icon: ASSETS.fill_placeholders("{{icon}}"),
            graphiql: config.graphiql,
        };
        let model = site.engine.model();
        let types = || (0..model.records.len()).map(RecordTypeId);
        let reading = |record: RecordTypeId| {
            let shown =
                crate::record_reading::list_columns(model.record(record), subjects[record.0].title_field);
            RecordReading::new(model, &subjects, record, &shown)
        };
        let readings: Vec<RecordReading> = types().map(reading).collect();
        Pages {
            name: app.name.clone(),
            views: compile_views(app),
            site_value: Value::from(Serde(&shared)),
            site_view: shared,
            fragments: FragmentCache::new(config.limits.page_parts),
            name_selections: types()
                .map(|record| Arc::new(crate::record_reading::name_selection(model, &subjects, record)))
                .collect(),
            detail_layouts: types()
                .map(|record| DetailLayout::new(model, &subjects, &readings, record))
                .collect(),
            row_readings: readings,
            labels: subjects,
            custom_views: crate::custom::custom_view_names(app),
            other_links: crate::home::other_links(&app.manifest),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn custom_views(&self) -> &[String] {
        &self.custom_views
    }

    /// The built-in ones alone are compiled for the first page, not at the start.
    fn views(&self) -> &ViewTemplates {
        self.views.as_ref().unwrap_or_else(|| ViewTemplates::built_in())
    }

    fn labels_of(&self, record: RecordTypeId) -> &ResourceLabels {
        &self.labels[record.0]
    }
}

/// The application's own in place of the built-in ones; what is broken is told in the log once.
fn compile_views(app: &App) -> Option<ViewTemplates> {
    if app.views.is_empty() {
        return None;
    }
    let views = ViewTemplates::with_files(app.views.iter().map(crate::custom::template_source));
    for broken in views.broken() {
        tracing::warn!("{broken}");
    }
    Some(views)
}

/// Style and script.
pub fn asset_router() -> Router {
    let file = async |Path(name): Path<String>, headers: HeaderMap| {
        ASSETS.respond(&name, &headers).map_err(IntoResponse::into_response)
    };
    Router::new().route("/_/pages/{name}", get(file))
}
