//! Routes the paths of an application, which can change on reload, to REST and pages.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::body::Bytes;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::Method;
use http::header::{ACCEPT, HOST};
use http::request::Parts;
use http_body::Body as _;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::{Engine, SchemaGate};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::{ErrorFormat, Problem, not_found};
use trefoil_http::errors::render::FormatPolicy;
use trefoil_http::monitoring::metrics::MetricsCheck;
use trefoil_http::negotiation::accept::AcceptHeader;
use trefoil_http::negotiation::format::{FormatChoice, ResponseFormat};
use trefoil_http::response_cache::{CacheKey, ResponseCache};
use trefoil_http::routing::ServedRoute;
use trefoil_http::service::{ErrorPageRenderer, HandlerResponse, RequestHandler, RouteInfo, RouteLookup};
use trefoil_resources::collection::{Collection, SubPath};
use trefoil_resources::plain_list::{PlainListResource, allowed_methods};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::{ServedResources, body_text};
use trefoil_rest::{TextPath, plain_lists};

use crate::accounts::application_accounts::ApplicationAccounts;

/// The resources of one application, ready to serve. Replaced as a whole on reload.
pub struct ResourceState {
    pub(crate) catalog: ServedResources,
    pub(crate) rest: trefoil_rest::RestState,
    pub(crate) pages: trefoil_pages::Pages,
    /// `None` if the schema has no accounts.
    pub(crate) accounts: Option<Arc<ApplicationAccounts>>,
    /// The paths in the order of manifest and schema, for the start page and suggestions.
    pub(super) addresses: Vec<(String, &'static str)>,
    /// The maximum number of requests in a batch.
    pub(crate) max_batch: usize,
}

/// The router of the current [`ResourceState`].
#[derive(Clone)]
pub struct ResourceRouter(Arc<RouterState>);

struct RouterState {
    current: ArcSwap<ResourceState>,
    /// Every request enters it before it loads the current state.
    gate: SchemaGate,
}

/// The resource at a path.
pub(crate) enum MatchedResource<'s> {
    Text(&'s TextPath),
    List(&'s Arc<PlainListResource>),
    /// The segment below a list: an index, if it is valid.
    ListValue(&'s Arc<PlainListResource>, &'s str),
    Records(&'s Collection, SubPath<'s>),
}

impl ResourceState {
    pub fn new(
        app: &App,
        engine: Engine,
        response_cache: Arc<ResponseCache>,
        store: &str,
        streams: trefoil_rest::StreamSettings,
        config: &Config,
    ) -> ResourceState {
        let manifest = &app.manifest;
        let mut addresses = Vec::new();
        for endpoint in &manifest.text_endpoints {
            if !addresses.iter().any(|(path, _)| *path == endpoint.path) {
                addresses.push((endpoint.path.clone(), "text"));
            }
        }
        addresses.extend(manifest.plain_lists.iter().map(|list| (list.path.clone(), "a plain list")));
        let catalog = ServedResources::new(manifest, engine, response_cache, store);
        addresses.extend(catalog.collections.iter().map(|collection| (collection.path.clone(), "records")));
        let rest = trefoil_rest::RestState::new(app, streams);
        let pages = trefoil_pages::Pages::new(app, &catalog, config);
        ResourceState { catalog, rest, pages, accounts: None, addresses, max_batch: config.limits.batch }
    }

    pub fn with_accounts(self, accounts: Option<Arc<ApplicationAccounts>>) -> ResourceState {
        ResourceState { accounts, ..self }
    }

    /// Finds the resource at exactly this path.
    pub(crate) fn match_path<'s>(&'s self, path: &'s str) -> Option<MatchedResource<'s>> {
        if let Some(text) = self.rest.text_paths.get(path) {
            return Some(MatchedResource::Text(text));
        }
        if let Some(list) = self.catalog.plain_list(path) {
            return Some(MatchedResource::List(list));
        }
        if let Some((parent, last)) = path.rsplit_once('/')
            && let Some(list) = self.catalog.plain_list(parent).filter(|_| !last.is_empty())
        {
            return Some(MatchedResource::ListValue(list, last));
        }
        self.catalog
            .find_path(path)
            .map(|(collection, sub_path)| MatchedResource::Records(collection, sub_path))
    }

    fn route_info(&self, path: &str) -> Option<RouteInfo> {
        let matched = self.match_path(path)?;
        let is_public = matches!(matched, MatchedResource::Text(text) if text.is_public());
        let (route, format_policy) = match matched {
            MatchedResource::Text(_) => (path.to_owned(), FormatPolicy::Always(ErrorFormat::Text)),
            MatchedResource::List(list) if list.has_page => {
                (path.to_owned(), FormatPolicy::Fallback(ErrorFormat::Text))
            }
            MatchedResource::List(_) => (path.to_owned(), FormatPolicy::Always(ErrorFormat::Text)),
            MatchedResource::ListValue(list, _) => {
                (format!("{}/{{index}}", list.path), FormatPolicy::Always(ErrorFormat::Text))
            }
            MatchedResource::Records(collection, sub_path) => {
                let fallback = match sub_path {
                    SubPath::List if collection.texts.is_some() => ErrorFormat::Text,
                    SubPath::New | SubPath::Summary | SubPath::Edit(_) | SubPath::Delete(_) => {
                        ErrorFormat::Html
                    }
                    SubPath::List | SubPath::Record(_) | SubPath::Nested(..) | SubPath::NestedRecord(..) => {
                        if collection.default_format == ResponseFormat::Html {
                            ErrorFormat::Html
                        } else {
                            ErrorFormat::Json
                        }
                    }
                };
                (collection.route_pattern(sub_path), FormatPolicy::Fallback(fallback))
            }
        };
        Some(RouteInfo { route: route.into(), format_policy, is_public })
    }

    /// The response of a text endpoint, if it is ready without waiting for a body or anything else.
    fn immediate_text(&self, request: &Request) -> Option<Response> {
        let text =
            self.rest.text_paths.get(request.uri().path()).filter(|_| request.body().is_end_stream())?;
        text.respond_immediately(request.method(), request.headers())
    }

    /// A cached response that is still exact, or a new one.
    pub(crate) async fn respond(
        &self,
        mut head: Parts,
        body: Option<Result<Bytes, Problem>>,
        client: ClientInfo,
    ) -> Response {
        let resources = &*self.catalog.for_actor(|| client.actor());
        let (response_cache, has_body) = (&resources.response_cache, body.is_some());
        let class = resources.engine.access_class();
        if !has_body
            && let Some(key) = self.cache_key(class, &head, &client)
            && let Some(cached) = response_cache.find(&key, &head.headers, client.data_version).await
        {
            return cached;
        }
        head.extensions.insert(client.clone());
        let body = body.unwrap_or_else(|| Ok(Bytes::new()));
        let resource = self.match_path(head.uri.path());
        let form = self.form_to_return(&head, &client, &body);
        let response = Box::pin(self.respond_uncached(resources, resource, &head, body)).await;
        let response = match form {
            Some(form) => self.return_form(resources, &head, &client, (form, response)),
            None => response,
        };
        let response = self.check_overtaken(&head.method, response);
        match self.cache_key(class, &head, &client).filter(|_| !has_body) {
            Some(key) => response_cache.store(&key, response).await,
            None => response,
        }
    }

    /// Refuses a response that a reload overtook, since it may be wrong; but writes are done and their responses stay.
    fn check_overtaken(&self, method: &Method, response: Response) -> Response {
        if method.is_safe() || response.status().is_server_error() {
            self.catalog
                .engine
                .check_tables()
                .map_or_else(|error| Problem::from(error).into_response(), |()| response)
        } else {
            response
        }
    }

    /// Everything that determines the response to a read. The host is part of links. The only cookie that pages use
    /// reports the last action once; requests with it are not cached.
    fn cache_key<'r>(
        &self,
        class: Option<u128>,
        head: &'r Parts,
        client: &'r ClientInfo,
    ) -> Option<CacheKey<'r>> {
        let is_reading = head.method == Method::GET || head.method == Method::HEAD;
        let has_flash = || trefoil_pages::flash::cookie_value(&head.headers).is_some();
        match self.match_path(head.uri.path()).filter(|_| is_reading && !has_flash())? {
            MatchedResource::List(_) | MatchedResource::ListValue(..) | MatchedResource::Records(..) => {
                let text = head.uri.path_and_query()?.as_str().as_bytes();
                let [scheme, host] = client.forwarded_origin();
                let actor = client.page_actor(&head.headers);
                CacheKey::new(class, &[b"front", text, scheme, host, actor], &head.headers, &[ACCEPT, HOST])
            }
            // Finding a cached text takes as long as making it.
            MatchedResource::Text(_) => None,
        }
    }

    async fn respond_uncached(
        &self,
        resources: &ServedResources,
        resource: Option<MatchedResource<'_>>,
        head: &Parts,
        body: Result<Bytes, Problem>,
    ) -> Response {
        match resource {
            Some(MatchedResource::Text(text)) => {
                let request = ClientInfo::request_of(&head.extensions);
                let view = |view: &str| self.pages.of_actor(resources).custom_page(head, view);
                let check = |position| resources.engine.check_text(position);
                text.respond(&head.method, &head.headers, request, view, check).await
            }
            Some(MatchedResource::List(list)) => {
                match self.plain_list_page(resources, list, head, &body).await {
                    Some(page) => {
                        let page = page.unwrap_or_else(IntoResponse::into_response);
                        plain_lists::with_etag(&resources.engine, list, page).await
                    }
                    None => plain_lists::respond(resources, list, None, head, body).await,
                }
            }
            Some(MatchedResource::ListValue(list, index)) => {
                plain_lists::respond(resources, list, Some(index), head, body).await
            }
            Some(MatchedResource::Records(collection, sub_path)) => {
                let request = ResourceRequest { resources, collection, head };
                self.handle_records(&request, sub_path, body)
                    .await
                    .unwrap_or_else(IntoResponse::into_response)
            }
            None => not_found().into_response(),
        }
    }

    /// The response of a plain list's page, if the request is a read that prefers HTML or the page's form.
    async fn plain_list_page(
        &self,
        resources: &ServedResources,
        list: &Arc<PlainListResource>,
        head: &Parts,
        body: &Result<Bytes, Problem>,
    ) -> Option<Result<Response, Problem>> {
        match (&head.method, body) {
            (&Method::GET | &Method::HEAD, _) => {
                let format = list
                    .offered_formats()
                    .choose(&AcceptHeader::from_headers(&head.headers), FormatChoice::Unspecified);
                if format == Some(ResponseFormat::Html) {
                    Some(self.pages.of_actor(resources).plain_list_page(resources, list, head).await)
                } else {
                    None
                }
            }
            (&Method::POST, Ok(body)) => {
                let response = match list.parse_form(&head.headers, body) {
                    Ok(pairs) => {
                        let pages = self.pages.of_actor(resources);
                        pages.submit_value(resources, list, head, &pairs?, body).await
                    }
                    Err(problem) => Err(problem),
                };
                Some(response.map_err(|problem| problem.with_format(ErrorFormat::Html)))
            }
            (_, _) => None,
        }
    }
}

impl ResourceRouter {
    pub fn new(state: ResourceState) -> ResourceRouter {
        let gate = state.catalog.engine.feed().gate().clone();
        ResourceRouter(Arc::new(RouterState { current: ArcSwap::from_pointee(state), gate }))
    }

    /// Serves this state from the next request on.
    pub fn swap(&self, state: ResourceState) {
        self.0.current.store(Arc::new(state));
    }

    pub(super) async fn respond(&self, request: Request, client: ClientInfo) -> Response {
        let (head, body) = request.into_parts();
        let body = if body.is_end_stream() {
            None
        } else if self.has_path(head.uri.path()).await {
            // Read before the gate is entered, so that a reload does not wait for slow senders.
            Some(body_text::read_body(body).await)
        } else {
            return not_found().into_response();
        };
        let _lease = self.0.gate.enter().await;
        let state = self.0.current.load_full();
        state.respond(head, body, client).await
    }

    /// What is served now. Who answers from it has entered the gate before.
    pub(crate) fn current(&self) -> Arc<ResourceState> {
        self.0.current.load_full()
    }

    pub(crate) fn gate(&self) -> &SchemaGate {
        &self.0.gate
    }

    async fn has_path(&self, path: &str) -> bool {
        let _lease = self.0.gate.enter().await;
        self.0.current.load().match_path(path).is_some()
    }

    /// With rules, the metrics are for this machine and for whom the setting allows.
    pub fn metrics_check(&self) -> MetricsCheck {
        let router = self.clone();
        Arc::new(move |extensions, headers| {
            let client = ClientInfo::of(extensions);
            if client.is_local(headers) {
                return Ok(());
            }
            let state = router.0.current.load();
            state.catalog.for_actor(|| client.actor()).engine.check_metrics()
        })
    }

    /// The paths of the application as it is now.
    pub fn resource_routes(&self) -> Vec<ServedRoute> {
        let state = self.0.current.load();
        let texts = state.rest.text_paths.iter();
        let mut routes: Vec<ServedRoute> =
            texts.map(|(path, text)| ServedRoute::new(path, text.allowed_methods())).collect();
        for list in state.catalog.plain_lists.iter() {
            routes.push(ServedRoute::new(&list.path, allowed_methods(None)));
            routes.push(ServedRoute::new(format!("{}/{{index}}", list.path), allowed_methods(Some("1"))));
        }
        routes.extend(state.catalog.collections.iter().flat_map(Collection::routes));
        routes
    }

    /// Finds the resource of a path for the HTTP service.
    pub fn route_lookup(&self) -> RouteLookup {
        let router = self.clone();
        Arc::new(move |path| router.0.current.load().route_info(path))
    }

    /// Handles the paths of resources for the HTTP service.
    pub fn request_handler(&self) -> RequestHandler {
        let router = self.clone();
        Arc::new(move |request, client| {
            if router.0.gate.is_open()
                && let Some(response) = router.0.current.load().immediate_text(&request)
            {
                return HandlerResponse::Ready(response);
            }
            let router = router.clone();
            HandlerResponse::Pending(Box::pin(async move { router.respond(request, client).await }))
        })
    }

    /// Renders error pages for the HTTP service.
    pub fn error_page_renderer(&self) -> ErrorPageRenderer {
        let router = self.clone();
        // Panics are caught here, because no layer outside of this one would answer.
        Arc::new(move |problem, context, request_id| {
            let page = || router.0.current.load().error_page(problem, context, request_id);
            catch_unwind(AssertUnwindSafe(page))
                .unwrap_or_else(|_| trefoil_pages::errors::last_resort(problem, request_id))
        })
    }
}
