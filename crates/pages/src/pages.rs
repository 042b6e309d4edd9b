//! [`Pages`]: the templates, labels and field selections that all pages of one application share, and who looks at them.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use minijinja::Value;
use minijinja::value::Serde;
use parking_lot::Mutex;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::{AccessView, PreparedSelection};
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId};
use trefoil_resources::ServedResources;

use crate::assets::ASSETS;
use crate::detail::layout::DetailLayout;
use crate::labels::ResourceLabels;
use crate::list::fragments::FragmentCache;
use crate::list::navigation::navigation;
use crate::record_reading::{self, RecordReading};
use crate::site::declared_pages;
use crate::site::static_folder::StaticFolder;
use crate::summary::choices::GroupChoices;
use crate::template_data::{PageLink, SiteActor, SiteView};
use crate::templates::ViewTemplates;

/// Where people sign in.
pub(crate) const SIGN_IN_PATH: &str = "/_/sign-in";

/// Where they see their own account.
pub(crate) const ACCOUNT_PATH: &str = "/_/account";

/// The page of the audit.
pub const AUDIT_PATH: &str = "/_/audit";

/// The pages of so many classes of actors are kept.
const MAX_CLASSES: usize = 32;

/// The pages of one application as one actor sees them. Cheap to clone.
#[derive(Clone)]
pub struct Pages {
    parts: Arc<PageParts>,
    /// Who looks at them, if they have an account.
    pub(crate) account: Option<SignedInAccount>,
    /// Where they sign in, if they are nobody yet.
    pub(crate) sign_in: Option<String>,
    /// `site` in templates.
    pub(crate) site_value: Value,
}

/// An account that pages are made for.
#[derive(Debug, Clone)]
pub struct SignedInAccount {
    pub id: RecordId,
    pub label: String,
}

/// The pages of one class of actors, prepared at start-up or reload.
pub struct PageParts {
    pub(crate) name: String,
    /// `None` if the application has no views of its own.
    views: Option<Arc<ViewTemplates>>,
    pub(crate) site_view: SiteView,
    /// `site_view` as a template value.
    anonymous_site: Value,
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
    pub(crate) fragments: Arc<FragmentCache>,
    pub(crate) static_folder: Arc<StaticFolder>,
    /// How long a session lasts without a request.
    pub(crate) session_idle: Duration,
    /// The pages of the classes of actors that asked last, see [`Pages::of_actor`].
    of_classes: Mutex<VecDeque<(u128, Arc<PageParts>)>>,
}

impl Deref for Pages {
    type Target = PageParts;

    fn deref(&self) -> &PageParts {
        &self.parts
    }
}

/// What pages read and offer of each record type, by [`RecordTypeId`].
struct TypeParts {
    labels: Vec<ResourceLabels>,
    name_selections: Vec<Arc<PreparedSelection>>,
    row_readings: Vec<RecordReading>,
    detail_layouts: Vec<DetailLayout>,
    group_choices: Vec<Option<GroupChoices>>,
}

impl TypeParts {
    /// Of what the actor may see; of everything without a view.
    fn new(model: &Model, view: Option<&AccessView>) -> TypeParts {
        let types = || (0..model.records.len()).map(RecordTypeId);
        let is_shown =
            |record: RecordTypeId, field: &FieldId| view.is_none_or(|view| !view.hides_field(record, *field));
        let label = |record: RecordTypeId| {
            let mut labels = ResourceLabels::from_record(model, record);
            labels.sort_keys.retain(|key| {
                let hidden = view
                    .zip(key.value.path())
                    .and_then(|(view, path)| view.hidden_on_path(model, record, path));
                hidden.is_none()
            });
            ResourceLabels { title: labels.title.shown(|field| is_shown(record, &field)), ..labels }
        };
        let labels: Vec<ResourceLabels> = types().map(label).collect();
        let row_reading = |record: RecordTypeId| {
            let title = &labels[record.0].title;
            let columns =
                record_reading::list_columns(model.record(record), title, |field| is_shown(record, field));
            RecordReading::new(model, &labels, record, &columns)
        };
        let name_selection = |record| record_reading::name_selection(model, &labels, record);
        TypeParts {
            name_selections: types().map(|record| PreparedSelection::new(name_selection(record))).collect(),
            row_readings: types().map(row_reading).collect(),
            detail_layouts: { types() }
                .map(|record| DetailLayout::new((model, view), &labels, record))
                .collect(),
            group_choices: { types() }
                .map(|record| GroupChoices::new((model, view), &labels, record))
                .collect(),
            labels,
        }
    }
}

impl Pages {
    pub fn new(app: &App, resources: &ServedResources, config: &Config) -> Pages {
        let model = resources.engine.model();
        let parts = TypeParts::new(model, None);
        let static_folder = Arc::new(StaticFolder::new(app));
        let mut site_view = site_view(app, model, &parts.labels, config);
        site_view.styles = static_folder.styles();
        let logo = app.manifest.theme.logo().and_then(|logo| static_folder.address(logo));
        site_view.logo = logo.map(str::to_owned);
        let has_accounts = model.access.as_ref().is_some_and(|access| access.account.is_some());
        site_view.sign_in = has_accounts.then(|| SIGN_IN_PATH.to_owned());
        let fragments = Arc::new(FragmentCache::new(config.limits.page_parts));
        let views = compile_views(app, &static_folder).map(Arc::new);
        Pages::of_parts(Arc::new(PageParts {
            static_folder,
            session_idle: config.accounts.session_idle,
            custom_views: declared_pages::custom_view_names(app),
            other_links: declared_pages::other_links(&app.manifest),
            ..PageParts::new(app.name.clone(), views, site_view, parts, fragments)
        }))
    }

    /// As those without an account see them.
    fn of_parts(parts: Arc<PageParts>) -> Pages {
        let (site_value, sign_in) = (parts.anonymous_site.clone(), parts.site_view.sign_in.clone());
        Pages { parts, account: None, sign_in, site_value }
    }

    /// The pages with what the actor on whose behalf `resources` are may see.
    pub fn of_actor(&self, resources: &ServedResources) -> Pages {
        let Some(view) = resources.engine.access_view() else { return self.clone() };
        let pages = Pages::of_parts(self.of_class(resources, view));
        let identity = view.identity.as_ref();
        match identity.and_then(|identity| identity.account.as_ref()) {
            Some(account) => {
                pages.of_account(SignedInAccount { id: account.id.clone(), label: account.label.clone() })
            }
            // A program, or a person whom another server signed in.
            None if identity.is_some() => pages.with_site(None, None),
            None => pages,
        }
    }

    fn of_account(self, account: SignedInAccount) -> Pages {
        let actor = SiteActor { name: account.label.clone(), href: ACCOUNT_PATH.to_owned() };
        Pages { account: Some(account), ..self.with_site(Some(actor), None) }
    }

    fn with_site(self, actor: Option<SiteActor>, sign_in: Option<String>) -> Pages {
        let site_view = SiteView { actor, sign_in: sign_in.clone(), ..self.site_view.clone() };
        Pages { site_value: Value::from(Serde(&site_view)), sign_in, ..self }
    }

    fn of_class(&self, resources: &ServedResources, view: &AccessView) -> Arc<PageParts> {
        let of_classes = self.of_classes.lock();
        let known = of_classes.iter().find(|(class, _)| *class == view.class).cloned();
        drop(of_classes);
        if let Some((_, parts)) = known {
            return parts;
        }
        let parts = Arc::new(self.parts.for_class(resources, view));
        let mut of_classes = self.of_classes.lock();
        if of_classes.len() >= MAX_CLASSES {
            of_classes.pop_front();
        }
        of_classes.push_back((view.class, parts.clone()));
        parts
    }
}

impl PageParts {
    fn new(
        name: String,
        views: Option<Arc<ViewTemplates>>,
        site_view: SiteView,
        parts: TypeParts,
        fragments: Arc<FragmentCache>,
    ) -> PageParts {
        let TypeParts { labels, name_selections, row_readings, detail_layouts, group_choices } = parts;
        PageParts {
            name,
            views,
            anonymous_site: Value::from(Serde(&site_view)),
            site_view,
            labels,
            custom_views: Vec::new(),
            name_selections,
            row_readings,
            detail_layouts,
            other_links: Vec::new(),
            group_choices,
            fragments,
            static_folder: Arc::default(),
            session_idle: Duration::ZERO,
            of_classes: Mutex::default(),
        }
    }

    fn for_class(&self, resources: &ServedResources, view: &AccessView) -> PageParts {
        let mut site_view = self.site_view.clone();
        site_view.audit = resources.engine.check_audit().is_ok().then(|| AUDIT_PATH.to_owned());
        site_view.nav.retain(|link| resources.is_offered(&link.href));
        for menu in &mut site_view.menus {
            menu.links.retain(|link| resources.is_offered(&link.href));
        }
        site_view.menus.retain(|menu| !menu.links.is_empty());
        let parts = TypeParts::new(resources.engine.model(), Some(view));
        let (views, fragments) = (self.views.clone(), self.fragments.clone());
        let mut pages = PageParts::new(self.name.clone(), views, site_view, parts, fragments);
        pages.custom_views.clone_from(&self.custom_views);
        pages.static_folder = self.static_folder.clone();
        pages.session_idle = self.session_idle;
        pages.other_links =
            self.other_links.iter().filter(|link| resources.is_offered(&link.href)).cloned().collect();
        pages
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn custom_views(&self) -> &[String] {
        &self.custom_views
    }

    /// The templates. The built-in ones alone are compiled for the first page, not at start-up.
    pub(crate) fn views(&self) -> &ViewTemplates {
        self.views.as_deref().unwrap_or_else(|| ViewTemplates::built_in())
    }

    pub(crate) fn labels_of(&self, record: RecordTypeId) -> &ResourceLabels {
        &self.labels[record.0]
    }
}

/// The template data that is the same on every page: name, navigation and assets.
fn site_view(app: &App, model: &Model, labels: &[ResourceLabels], config: &Config) -> SiteView {
    let (nav, menus) = navigation(app, model, labels);
    SiteView {
        name: app.name.clone(),
        nav,
        menus,
        css: ASSETS.fill_placeholders("{{css}}"),
        styles: Vec::new(),
        logo: None,
        js: ASSETS.fill_placeholders("{{js}}"),
        icon: ASSETS.fill_placeholders("{{icon}}"),
        graphiql: config.graphiql,
        actor: None,
        sign_in: None,
        audit: None,
    }
}

/// The application's own views over the built-in ones. Broken views are logged once.
fn compile_views(app: &App, static_folder: &Arc<StaticFolder>) -> Option<ViewTemplates> {
    if app.views.is_empty() {
        return None;
    }
    let sources = app.views.iter().map(declared_pages::template_source);
    let views = ViewTemplates::with_files(sources, static_folder.clone());
    for broken in views.broken() {
        tracing::warn!("{broken}");
    }
    Some(views)
}
