//! `Pages`: the templates, labels and field selections that all pages of one application share.

use std::sync::Arc;

use minijinja::Value;
use minijinja::value::Serde;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::PreparedSelection;
use trefoil_model::RecordTypeId;
use trefoil_resources::ServedResources;

use crate::assets::ASSETS;
use crate::declared_pages;
use crate::detail::layout::DetailLayout;
use crate::labels::{ResourceLabels, path_heading};
use crate::list::fragments::FragmentCache;
use crate::record_reading::{self, RecordReading};
use crate::summary::choices::GroupChoices;
use crate::template_data::{PageLink, SiteView};
use crate::templates::ViewTemplates;

/// The pages of one application, prepared at start-up or reload.
pub struct Pages {
    pub(crate) name: String,
    /// `None` if the application has no views of its own.
    views: Option<ViewTemplates>,
    pub(crate) site_view: SiteView,
    /// `site_view` as a template value.
    pub(crate) site_value: Value,
    /// By [`RecordTypeId`].
    pub(crate) labels: Vec<ResourceLabels>,
    /// The names of the application's own views.
    pub(crate) custom_views: Vec<String>,
    /// Id and title of a record, by [`RecordTypeId`].
    pub(crate) name_selections: Vec<Arc<PreparedSelection>>,
    /// The columns of a list, by [`RecordTypeId`].
    pub(crate) row_readings: Vec<RecordReading>,
    /// By [`RecordTypeId`].
    pub(crate) detail_layouts: Vec<DetailLayout>,
    /// Links to plain lists and text endpoints.
    pub(crate) other_links: Vec<PageLink>,
    /// What a summary offers, by [`RecordTypeId`]; `None` if there is nothing to group by.
    pub(crate) group_choices: Vec<Option<GroupChoices>>,
    pub(crate) fragments: FragmentCache,
}

impl Pages {
    pub fn new(app: &App, resources: &ServedResources, config: &Config) -> Pages {
        let model = resources.engine.model();
        let labels: Vec<ResourceLabels> = model.records.iter().map(ResourceLabels::from_record).collect();
        let site_view = site_view(app, &labels, config);
        let types = || (0..model.records.len()).map(RecordTypeId);
        let row_reading = |record: RecordTypeId| {
            let columns = record_reading::list_columns(model.record(record), labels[record.0].title_field);
            RecordReading::new(model, &labels, record, &columns)
        };
        let row_readings: Vec<RecordReading> = types().map(row_reading).collect();
        Pages {
            name: app.name.clone(),
            views: compile_views(app),
            site_value: Value::from(Serde(&site_view)),
            site_view,
            fragments: FragmentCache::new(config.limits.page_parts),
            name_selections: types()
                .map(|record| PreparedSelection::new(record_reading::name_selection(model, &labels, record)))
                .collect(),
            detail_layouts: types().map(|record| DetailLayout::new(model, &labels, record)).collect(),
            group_choices: types().map(|record| GroupChoices::new(model, &labels, record)).collect(),
            row_readings,
            labels,
            custom_views: declared_pages::custom_view_names(app),
            other_links: declared_pages::other_links(&app.manifest),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn custom_views(&self) -> &[String] {
        &self.custom_views
    }

    /// The templates. The built-in ones alone are compiled for the first page, not at start-up.
    pub(crate) fn views(&self) -> &ViewTemplates {
        self.views.as_ref().unwrap_or_else(|| ViewTemplates::built_in())
    }

    pub(crate) fn labels_of(&self, record: RecordTypeId) -> &ResourceLabels {
        &self.labels[record.0]
    }
}

/// The template data that is the same on every page: name, navigation and assets.
fn site_view(app: &App, labels: &[ResourceLabels], config: &Config) -> SiteView {
    let records = labels
        .iter()
        .map(|labels| PageLink { label: labels.resource.plural.clone(), href: labels.resource.path.clone() });
    let lists = app.manifest.plain_lists.iter().filter(|list| list.page);
    let lists = lists.map(|list| PageLink { label: path_heading(list.name()), href: list.path.clone() });
    SiteView {
        name: app.name.clone(),
        nav: records.chain(lists).chain(declared_pages::navigation_links(app)).collect(),
        css: ASSETS.fill_placeholders("{{css}}"),
        js: ASSETS.fill_placeholders("{{js}}"),
        icon: ASSETS.fill_placeholders("{{icon}}"),
        graphiql: config.graphiql,
    }
}

/// The application's own views over the built-in ones. Broken views are logged once.
fn compile_views(app: &App) -> Option<ViewTemplates> {
    if app.views.is_empty() {
        return None;
    }
    let views = ViewTemplates::with_files(app.views.iter().map(declared_pages::template_source));
    for broken in views.broken() {
        tracing::warn!("{broken}");
    }
    Some(views)
}
