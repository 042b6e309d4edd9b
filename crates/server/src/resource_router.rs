//! The front door of REST and pages: which resource is at a path, and which of the two faces a request means.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{ACCEPT, ALLOW, HOST};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body::Body as _;

use trefoil_application::App;
use trefoil_config::Config;
use trefoil_engine::{Engine, SchemaGate};
use trefoil_http::client::ClientInfo;
use trefoil_http::errors::problem::{ErrorFormat, Problem, method_not_allowed, not_found};
use trefoil_http::errors::render::{ErrorContext, FormatPolicy};
use trefoil_http::etags;
use trefoil_http::negotiation::accept;
use trefoil_http::negotiation::format::{
    COLLECTION_FORMATS, FormatChoice, PAGE_ONLY, RECORD_FORMATS, ResponseFormat, wants_no_content,
};
use trefoil_http::response_cache::{CacheKey, ResponseCache};
use trefoil_http::service::{ErrorPageRenderer, HandlerResponse, RequestHandler, RouteInfo, RouteLookup};
use trefoil_model::naming::names;
use trefoil_resources::ServedResources;
use trefoil_resources::collection::{Collection, SubPath};
use trefoil_resources::parsed_body::{BodyKind, ParsedBody};
use trefoil_resources::plain_list::PlainListResource;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::{body_text, form_input};
use trefoil_rest::plain_lists;
use trefoil_rest::{TextPath, as_json_problem};

/// What one application declares, ready to be served. Swapped whole on reload.
pub struct ResourceFaces {
    catalog: ServedResources,
    rest: trefoil_rest::RestState,
    pages: trefoil_pages::Pages,
    /// In the order of manifest and schema, for people.
    addresses: Vec<(String, &'static str)>,
}

/// The door, whatever is behind it at the moment.
#[derive(Clone)]
pub struct ResourceRouter(Arc<FrontState>);

struct FrontState {
    served: ArcSwap<ResourceFaces>,
    /// Passed by every request before it takes what is served.
    gate: SchemaGate,
}

/// The server's own addresses that people go to.
const RESERVED: [&str; 3] = ["/graphql", "/docs", "/openapi.json"];

/// Who answers at a path.
enum MatchedResource<'s> {
    Text(&'s TextPath),
    List(&'s Arc<PlainListResource>),
    /// What stands below a list: an index, if it is one.
    ListValue(&'s Arc<PlainListResource>, &'s str),
    Records(&'s Collection, SubPath<'s>),
}

impl ResourceFaces {
    pub fn new(
        app: &App,
        engine: Engine,
        answers: Arc<ResponseCache>,
        store: &str,
        streams: trefoil_rest::StreamSettings,
        config: &Config,
    ) -> ResourceFaces {
        let manifest = &app.manifest;
        let mut addresses = Vec::new();
        for endpoint in &manifest.text_endpoints {
            if !addresses.iter().any(|(path, _)| *path == endpoint.path) {
                addresses.push((endpoint.path.clone(), "text"));
            }
        }
        addresses.extend(manifest.plain_lists.iter().map(|list| (list.path.clone(), "a plain list")));
        let site = ServedResources::new(manifest, engine, answers, store);
        addresses.extend(site.collections.iter().map(|collection| (collection.path.clone(), "records")));
        let rest = trefoil_rest::RestState::new(app, streams);
        let pages = trefoil_pages::Pages::new(app, &site, config);
        ResourceFaces { catalog: site, rest, pages, addresses }
    }

    /// Paths match exactly.
    fn match_path<'s>(&'s self, path: &'s str) -> Option<MatchedResource<'s>> {
        if let Some(text) = self.rest.text_paths.get(path) {
            return Some(MatchedResource::Text(text));
        }
        if let Some(list) = self.catalog.plain_list(path) {
            return Some(MatchedResource::List(list));
        }
        if let Some((above, last)) = path.rsplit_once('/')
            && let Some(list) = self.catalog.plain_list(above).filter(|_| !last.is_empty())
        {
            return Some(MatchedResource::ListValue(list, last));
        }
        self.catalog.find_path(path).map(|(collection, below)| MatchedResource::Records(collection, below))
    }

    fn route_info(&self, path: &str) -> Option<RouteInfo> {
        let (route, speaks) = match self.match_path(path)? {
            MatchedResource::Text(_) => (path.to_owned(), FormatPolicy::Always(ErrorFormat::Text)),
            MatchedResource::List(list) if list.has_page => {
                (path.to_owned(), FormatPolicy::Fallback(ErrorFormat::Text))
            }
            MatchedResource::List(_) => (path.to_owned(), FormatPolicy::Always(ErrorFormat::Text)),
            MatchedResource::ListValue(list, _) => {
                (format!("{}/{{index}}", list.path), FormatPolicy::Always(ErrorFormat::Text))
            }
            MatchedResource::Records(collection, below) => {
                let is_texts = collection.texts.is_some() && matches!(below, SubPath::List);
                let otherwise = if is_texts { ErrorFormat::Text } else { ErrorFormat::Html };
                (collection.route_pattern(below), FormatPolicy::Fallback(otherwise))
            }
        };
        Some(RouteInfo { route: route.into(), format_policy: speaks })
    }

    fn error_page(&self, problem: &Problem, asker: &ErrorContext, request_id: &str) -> String {
        let path = asker.uri.path();
        let found = self.match_path(path);
        let near = if found.is_none() { self.nearest_address(path) } else { None };
        let collection = match found {
            Some(MatchedResource::Records(collection, _)) => Some(collection),
            Some(MatchedResource::Text(_) | MatchedResource::List(_) | MatchedResource::ListValue(..))
            | None => None,
        };
        let ways = self.pages.error_examples(&self.catalog, problem, asker);
        // Two slashes at its beginning would lead to another site.
        let address = asker.uri.path_and_query().filter(|address| !address.as_str().starts_with("//"));
        let again = address.filter(|_| asker.method.is_safe()).map(ToString::to_string);
        self.pages.error_page(problem, collection, near.as_deref(), again, ways, request_id)
    }

    /// What was perhaps meant by a path that leads nowhere.
    fn nearest_address(&self, path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let plain = format!("/{}", segments.join("/")).to_lowercase();
        let leads = |path: &String| self.match_path(path).is_some();
        let known = self.addresses.iter().map(|(path, _)| path.as_str());
        let nearest =
            |path: &str| names::nearest_name(path, known.clone().chain(RESERVED)).map(str::to_owned);
        let below = || {
            let (first, rest) = segments.split_first().filter(|(_, rest)| !rest.is_empty())?;
            Some(format!("{}/{}", nearest(&format!("/{first}"))?, rest.join("/"))).filter(leads)
        };
        Some(plain.clone()).filter(leads).or_else(|| nearest(&plain)).or_else(below)
    }

    /// The answer of a text endpoint, where neither its body nor anything else has to be waited for.
    fn immediate_text(&self, request: &Request) -> Option<Response> {
        let text =
            self.rest.text_paths.get(request.uri().path()).filter(|_| request.body().is_end_stream())?;
        text.respond_immediately(request.method(), request.headers())
    }

    /// What was answered before and is still exact, or an answer made now.
    async fn respond(
        &self,
        mut head: Parts,
        body: Option<Result<Bytes, Problem>>,
        client: ClientInfo,
    ) -> Response {
        let (answers, has_body) = (&self.catalog.response_cache, body.is_some());
        if !has_body
            && let Some(asked) = self.cache_key(&head, &client)
            && let Some(repeated) = answers.find(&asked, &head.headers).await
        {
            return repeated;
        }
        head.extensions.insert(client.clone());
        let body = body.unwrap_or_else(|| Ok(Bytes::new()));
        let made = Box::pin(self.respond_uncached(self.match_path(head.uri.path()), &head, body)).await;
        let made = self.unless_overtaken(&head.method, made);
        match self.cache_key(&head, &client).filter(|_| !has_body) {
            Some(asked) => answers.store(&asked, made).await,
            None => made,
        }
    }

    /// What a reload overtook may be anything; but what is written is written.
    fn unless_overtaken(&self, method: &Method, made: Response) -> Response {
        if method.is_safe() || made.status().is_server_error() {
            self.catalog
                .engine
                .check_tables()
                .map_or_else(|error| Problem::from(error).into_response(), |()| made)
        } else {
            made
        }
    }

    /// Everything of a reading that lists and pages look at. The host is in links. Of cookies they know one alone, which
    /// tells what was just done and is for one page.
    fn cache_key<'r>(&self, head: &'r Parts, client: &'r ClientInfo) -> Option<CacheKey<'r>> {
        let is_reading = head.method == Method::GET || head.method == Method::HEAD;
        let tells = || trefoil_pages::flash::cookie_value(&head.headers).is_some();
        match self.match_path(head.uri.path()).filter(|_| is_reading && !tells())? {
            MatchedResource::List(_) | MatchedResource::ListValue(..) | MatchedResource::Records(..) => {
                let text = head.uri.path_and_query()?.as_str().as_bytes();
                let [scheme, host] = client.forwarded_origin();
                CacheKey::new(&[b"front", text, scheme, host], &head.headers, &[ACCEPT, HOST])
            }
            // A text is sent as quickly as it is found.
            MatchedResource::Text(_) => None,
        }
    }

    async fn respond_uncached(
        &self,
        found: Option<MatchedResource<'_>>,
        head: &Parts,
        body: Result<Bytes, Problem>,
    ) -> Response {
        match found {
            Some(MatchedResource::Text(text)) => {
                let request = ClientInfo::request_of(&head.extensions);
                text.respond(&head.method, &head.headers, request, |view| self.pages.custom_page(head, view))
                    .await
            }
            Some(MatchedResource::List(list)) => match self.plain_list_page(list, head, &body).await {
                Some(page) => {
                    let page = page.unwrap_or_else(IntoResponse::into_response);
                    plain_lists::with_etag(&self.catalog.engine, list, page).await
                }
                None => plain_lists::respond(&self.catalog, list, None, head, body).await,
            },
            Some(MatchedResource::ListValue(list, index)) => {
                plain_lists::respond(&self.catalog, list, Some(index), head, body).await
            }
            Some(MatchedResource::Records(collection, below)) => {
                let ask = ResourceRequest { resources: &self.catalog, collection, head };
                self.handle_records(&ask, below, body).await.unwrap_or_else(IntoResponse::into_response)
            }
            None => not_found().into_response(),
        }
    }

    /// What the page of a plain list answers: reading it where that is preferred, and its form.
    async fn plain_list_page(
        &self,
        list: &Arc<PlainListResource>,
        head: &Parts,
        body: &Result<Bytes, Problem>,
    ) -> Option<Result<Response, Problem>> {
        match (&head.method, body) {
            (&Method::GET | &Method::HEAD, _) => {
                let wanted = list
                    .offered_formats()
                    .choose(&accept::AcceptHeader::from_headers(&head.headers), FormatChoice::Unspecified);
                if wanted == Some(ResponseFormat::Html) {
                    Some(self.pages.plain_list_page(&self.catalog, list, head).await)
                } else {
                    None
                }
            }
            (&Method::POST, Ok(body)) => {
                let done = match list.parse_form(&head.headers, body) {
                    Ok(pairs) => self.pages.submit_value(&self.catalog, list, head, &pairs?, body).await,
                    Err(problem) => Err(problem),
                };
                Some(done.map_err(|problem| problem.with_format(ErrorFormat::Html)))
            }
            (_, _) => None,
        }
    }

    async fn handle_records(
        &self,
        ask: &ResourceRequest<'_>,
        below: SubPath<'_>,
        body: Result<Bytes, Problem>,
    ) -> Result<Response, Problem> {
        let method = match &ask.head.method {
            &Method::HEAD => &Method::GET,
            other => other,
        };
        match (method, below) {
            (&Method::OPTIONS, below) => Ok(options_response(ask, below)),
            (&Method::GET, below) => self.handle_read(ask, below).await,
            (&Method::POST, SubPath::List) => self.handle_create(ask, &body?).await,
            (&Method::POST | &Method::PUT, SubPath::Record(id)) => {
                self.handle_replace(ask, ask.parse_id(id)?, &body?).await
            }
            (&Method::PATCH, SubPath::Record(id)) => {
                let (id, body) = (ask.parse_id(id)?, body?);
                match parse_body(ask, BodyKind::Patch, &body)? {
                    ParsedBody::Record(object) => trefoil_rest::patch_record(ask, id, object, &body).await,
                    ParsedBody::Records(_) | ParsedBody::Form(_) | ParsedBody::Text(_) => {
                        Err(unsupported_body())
                    }
                }
            }
            (&Method::DELETE, SubPath::Record(id)) => {
                let id = ask.parse_id(id)?;
                let is_json = wants_no_content(ask.headers());
                if is_json {
                    trefoil_rest::delete_record(ask, id).await
                } else {
                    self.pages.delete_record(ask, id).await
                }
            }
            (&Method::POST, SubPath::Delete(id)) => {
                self.pages.submit_delete(ask, ask.parse_id(id)?, &body?).await
            }
            (_, below) => Err(method_not_allowed(below.allowed_methods())),
        }
    }

    async fn handle_read(&self, ask: &ResourceRequest<'_>, below: SubPath<'_>) -> Result<Response, Problem> {
        let (headers, pages) = (ask.headers(), &self.pages);
        match below {
            SubPath::List => {
                match ask.collection.offered_formats().negotiate(headers, ask.list_format_choice())? {
                    ResponseFormat::Html => pages.list_page(ask).await,
                    wanted @ (ResponseFormat::Json
                    | ResponseFormat::TextLines
                    | ResponseFormat::Ndjson
                    | ResponseFormat::Csv
                    | ResponseFormat::EventStream) => {
                        trefoil_rest::read_list(ask, wanted, &self.rest.streams).await
                    }
                }
            }
            SubPath::Record(id) => {
                match (ask.parse_id(id)?, RECORD_FORMATS.negotiate(headers, ask.record_format_choice())?) {
                    (id, ResponseFormat::Html) => pages.detail_page(ask, id).await,
                    (
                        id,
                        ResponseFormat::Json
                        | ResponseFormat::TextLines
                        | ResponseFormat::Ndjson
                        | ResponseFormat::Csv
                        | ResponseFormat::EventStream,
                    ) => trefoil_rest::read_record(ask, id).await,
                }
            }
            SubPath::Nested(above, nested) => {
                match (ask.parse_id(above)?, COLLECTION_FORMATS.negotiate(headers, ask.list_format_choice())?)
                {
                    (above, ResponseFormat::Html) => pages.nested_list_page(ask, above, nested).await,
                    (
                        above,
                        wanted @ (ResponseFormat::Json
                        | ResponseFormat::TextLines
                        | ResponseFormat::Ndjson
                        | ResponseFormat::Csv
                        | ResponseFormat::EventStream),
                    ) => trefoil_rest::read_nested_list(ask, above, nested, wanted).await,
                }
            }
            SubPath::NestedRecord(above, nested, id) => {
                match (
                    ask.parse_id(above)?,
                    ask.parse_id(id)?,
                    RECORD_FORMATS.negotiate(headers, ask.record_format_choice())?,
                ) {
                    (above, id, ResponseFormat::Html) => {
                        pages.nested_detail_page(ask, above, nested, id).await
                    }
                    (
                        above,
                        id,
                        ResponseFormat::Json
                        | ResponseFormat::TextLines
                        | ResponseFormat::Ndjson
                        | ResponseFormat::Csv
                        | ResponseFormat::EventStream,
                    ) => trefoil_rest::read_nested_record(ask, above, nested, id).await,
                }
            }
            SubPath::New => {
                PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                pages.new_form_page(ask).await
            }
            SubPath::Edit(id) => {
                let id = ask.parse_id(id)?;
                PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                pages.edit_form_page(ask, id).await
            }
            SubPath::Delete(id) => {
                let id = ask.parse_id(id)?;
                PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                pages.delete_page(ask, id).await
            }
        }
    }

    async fn handle_create(&self, ask: &ResourceRequest<'_>, bytes: &Bytes) -> Result<Response, Problem> {
        match parse_body(ask, ask.post_body_kind(), bytes)? {
            ParsedBody::Record(object) => trefoil_rest::create_one(ask, object, bytes)
                .await
                .map_err(|problem| trefoil_rest::json_problem(ask, bytes, problem)),
            ParsedBody::Records(objects) => trefoil_rest::create_many(ask, objects, bytes)
                .await
                .map_err(|problem| trefoil_rest::json_problem(ask, bytes, problem)),
            ParsedBody::Form(pairs) => self.pages.submit_new(ask, &pairs, bytes).await,
            ParsedBody::Text(text) => trefoil_rest::create_from_text(ask, text, bytes)
                .await
                .map_err(|problem| problem.with_format(ErrorFormat::Text)),
        }
    }

    async fn handle_replace(
        &self,
        ask: &ResourceRequest<'_>,
        id: i64,
        bytes: &Bytes,
    ) -> Result<Response, Problem> {
        match parse_body(ask, BodyKind::Record, bytes)? {
            ParsedBody::Record(object) => trefoil_rest::replace_record(ask, id, object, bytes).await,
            ParsedBody::Form(pairs) => self.pages.submit_edit(ask, id, &pairs, bytes).await,
            ParsedBody::Records(_) | ParsedBody::Text(_) => Err(unsupported_body()),
        }
    }
}

/// What a body means; what cannot even be read is told in the form that it was sent in.
fn parse_body(ask: &ResourceRequest<'_>, place: BodyKind, bytes: &[u8]) -> Result<ParsedBody, Problem> {
    let is_field = |name: &str| form_input::control_field(ask.record(), name).is_some();
    let sent = place
        .parse(ask.headers(), bytes, is_field)
        .and_then(|sent| check_preconditions(ask, place).map(|()| sent));
    sent.map_err(|problem| match body_text::media_type(ask.headers()).as_str() {
        essence if essence.contains("json") => as_json_problem(problem),
        // A patch is never the form of a page.
        "application/x-www-form-urlencoded" | "multipart/form-data" if place != BodyKind::Patch => {
            problem.with_format(ErrorFormat::Html)
        }
        _ => problem,
    })
}

/// A collection has no version that a write could be held to: its tags are those of one part in one form.
fn check_preconditions(ask: &ResourceRequest<'_>, place: BodyKind) -> Result<(), Problem> {
    match place {
        BodyKind::Collection | BodyKind::TextCollection => etags::check_if_match(ask.headers(), None),
        BodyKind::Record | BodyKind::Patch => Ok(()),
    }
}

fn unsupported_body() -> Problem {
    Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn options_response(ask: &ResourceRequest<'_>, below: SubPath<'_>) -> Response {
    let mut response = (StatusCode::NO_CONTENT, [(ALLOW, below.allowed_methods())]).into_response();
    let places = match below {
        SubPath::List => &[ask.post_body_kind()][..],
        SubPath::Record(_) => &[BodyKind::Record, BodyKind::Patch],
        SubPath::New
        | SubPath::Edit(_)
        | SubPath::Delete(_)
        | SubPath::Nested(..)
        | SubPath::NestedRecord(..) => &[],
    };
    response.headers_mut().extend(places.iter().map(|place| place.accept_header()));
    response
}

impl ResourceRouter {
    pub fn new(served: ResourceFaces) -> ResourceRouter {
        let gate = served.catalog.engine.feed().gate().clone();
        ResourceRouter(Arc::new(FrontState { served: ArcSwap::from_pointee(served), gate }))
    }

    /// From the next request on, this is served.
    pub fn swap(&self, served: ResourceFaces) {
        self.0.served.store(Arc::new(served));
    }

    async fn answer(&self, request: Request, client: ClientInfo) -> Response {
        let (head, body) = request.into_parts();
        let body = if body.is_end_stream() {
            None
        } else if self.knows(head.uri.path()).await {
            // Before the gate is passed: a reload waits for nobody who sends slowly.
            Some(body_text::taken(body).await)
        } else {
            return not_found().into_response();
        };
        let _lease = self.0.gate.enter().await;
        let served = self.0.served.load_full();
        served.respond(head, body, client).await
    }

    async fn knows(&self, path: &str) -> bool {
        let _lease = self.0.gate.enter().await;
        self.0.served.load().match_path(path).is_some()
    }

    /// A fallback and no routes for what is declared, because that can change while the server runs.
    pub fn router(&self) -> Router {
        let own = Router::new().route("/", get(serve_home)).route("/openapi.json", get(serve_openapi));
        own.fallback(serve_fallback)
            .with_state(self.clone())
            .merge(trefoil_rest::docs_router())
            .merge(trefoil_pages::asset_router())
    }

    /// Tells the foundation whose paths these are.
    pub fn route_lookup(&self) -> RouteLookup {
        let front = self.clone();
        Arc::new(move |path| front.0.served.load().route_info(path))
    }

    /// Answers for the foundation at the paths that have an owner.
    pub fn request_handler(&self) -> RequestHandler {
        let front = self.clone();
        Arc::new(move |request, client| {
            if front.0.gate.is_open()
                && let Some(response) = front.0.served.load().immediate_text(&request)
            {
                return HandlerResponse::Ready(response);
            }
            let front = front.clone();
            HandlerResponse::Pending(Box::pin(async move { front.answer(request, client).await }))
        })
    }

    /// Tells the foundation how an error looks to people.
    pub fn error_page_renderer(&self) -> ErrorPageRenderer {
        let front = self.clone();
        // Nothing stands around this that could answer in its place.
        Arc::new(move |problem, asker, request_id| {
            let page = || front.0.served.load().error_page(problem, asker, request_id);
            catch_unwind(AssertUnwindSafe(page))
                .unwrap_or_else(|_| trefoil_pages::errors::last_resort(problem, request_id))
        })
    }
}

/// What is served here and where to go: a page for people, lines for shells.
async fn serve_home(State(front): State<ResourceRouter>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    body_text::ignore(body).await;
    let _lease = front.0.gate.enter().await;
    let served = front.0.served.load_full();
    if accept::AcceptHeader::from_headers(&head.headers).prefers_html() {
        return served
            .pages
            .home_page(&served.catalog, &head)
            .await
            .unwrap_or_else(IntoResponse::into_response);
    }
    crate::home_text::home_text(&head.headers, served.pages.name(), &served.addresses)
}

async fn serve_openapi(State(front): State<ResourceRouter>, headers: HeaderMap) -> Response {
    let _lease = front.0.gate.enter().await;
    let served = front.0.served.load();
    served.rest.openapi_response(&served.catalog, served.pages.custom_views(), &headers)
}

async fn serve_fallback(State(front): State<ResourceRouter>, mut request: Request) -> Response {
    let client = request.extensions_mut().remove().unwrap_or_default();
    front.answer(request, client).await
}
