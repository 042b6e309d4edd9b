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
use trefoil_http::client::Client;
use trefoil_http::errors::problem::{Problem, Voice, method_not_allowed, not_found};
use trefoil_http::errors::render::{Asker, Speaks};
use trefoil_http::etags;
use trefoil_http::negotiation::accept;
use trefoil_http::negotiation::format::{COLLECTION, Chosen, FORM, RECORD, Wanted, wants_no_content};
use trefoil_http::response_cache::{Answers, Asked};
use trefoil_http::service::{Answer, ErrorPage, Handler, Owner, Owners};
use trefoil_model::naming::names;
use trefoil_resources::Site;
use trefoil_resources::collection::{Below, Collection};
use trefoil_resources::parsed_body::{Place, Sent};
use trefoil_resources::plain_list::List;
use trefoil_resources::request::Ask;
use trefoil_resources::{body_text, form_input};
use trefoil_rest::plain_lists;
use trefoil_rest::{TextPath, in_json};

/// What one application declares, ready to be served. Swapped whole on reload.
pub struct Served {
    site: Site,
    rest: trefoil_rest::Served,
    pages: trefoil_pages::Served,
    /// In the order of manifest and schema, for people.
    addresses: Vec<(String, &'static str)>,
}

/// The door, whatever is behind it at the moment.
#[derive(Clone)]
pub struct Front(Arc<FrontState>);

struct FrontState {
    served: ArcSwap<Served>,
    /// Passed by every request before it takes what is served.
    gate: SchemaGate,
}

/// The server's own addresses that people go to.
const RESERVED: [&str; 3] = ["/graphql", "/docs", "/openapi.json"];

/// Who answers at a path.
enum Found<'s> {
    Text(&'s TextPath),
    List(&'s Arc<List>),
    /// What stands below a list: an index, if it is one.
    Value(&'s Arc<List>, &'s str),
    Records(&'s Collection, Below<'s>),
}

impl Served {
    pub fn new(
        app: &App,
        engine: Engine,
        answers: Arc<Answers>,
        store: &str,
        streams: trefoil_rest::Streams,
        config: &Config,
    ) -> Served {
        let manifest = &app.manifest;
        let mut addresses = Vec::new();
        for endpoint in &manifest.texts {
            if !addresses.iter().any(|(path, _)| *path == endpoint.path) {
                addresses.push((endpoint.path.clone(), "text"));
            }
        }
        addresses.extend(manifest.lists.iter().map(|list| (list.path.clone(), "a plain list")));
        let site = Site::new(manifest, engine, answers, store);
        addresses.extend(site.collections.iter().map(|collection| (collection.path.clone(), "records")));
        let rest = trefoil_rest::Served::new(app, streams);
        let pages = trefoil_pages::Served::new(app, &site, config);
        Served { site, rest, pages, addresses }
    }

    /// Paths match exactly.
    fn find<'s>(&'s self, path: &'s str) -> Option<Found<'s>> {
        if let Some(text) = self.rest.texts.get(path) {
            return Some(Found::Text(text));
        }
        if let Some(list) = self.site.list(path) {
            return Some(Found::List(list));
        }
        if let Some((above, last)) = path.rsplit_once('/')
            && let Some(list) = self.site.list(above).filter(|_| !last.is_empty())
        {
            return Some(Found::Value(list, last));
        }
        self.site.find(path).map(|(collection, below)| Found::Records(collection, below))
    }

    fn owner(&self, path: &str) -> Option<Owner> {
        let (route, speaks) = match self.find(path)? {
            Found::Text(_) => (path.to_owned(), Speaks::Always(Voice::Text)),
            Found::List(list) if list.page => (path.to_owned(), Speaks::Otherwise(Voice::Text)),
            Found::List(_) => (path.to_owned(), Speaks::Always(Voice::Text)),
            Found::Value(list, _) => (format!("{}/{{index}}", list.path), Speaks::Always(Voice::Text)),
            Found::Records(collection, below) => {
                let is_texts = collection.texts.is_some() && matches!(below, Below::List);
                let otherwise = if is_texts { Voice::Text } else { Voice::Html };
                (collection.route(below), Speaks::Otherwise(otherwise))
            }
        };
        Some(Owner { route: route.into(), speaks })
    }

    fn error(&self, problem: &Problem, asker: &Asker, request_id: &str) -> String {
        let path = asker.uri.path();
        let found = self.find(path);
        let near = if found.is_none() { self.near(path) } else { None };
        let collection = match found {
            Some(Found::Records(collection, _)) => Some(collection),
            Some(Found::Text(_) | Found::List(_) | Found::Value(..)) | None => None,
        };
        let ways = self.pages.ways_of_error(&self.site, problem, asker);
        // Two slashes at its beginning would lead to another site.
        let address = asker.uri.path_and_query().filter(|address| !address.as_str().starts_with("//"));
        let again = address.filter(|_| asker.method.is_safe()).map(ToString::to_string);
        self.pages.error(problem, collection, near.as_deref(), again, ways, request_id)
    }

    /// What was perhaps meant by a path that leads nowhere.
    fn near(&self, path: &str) -> Option<String> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let plain = format!("/{}", segments.join("/")).to_lowercase();
        let leads = |path: &String| self.find(path).is_some();
        let known = self.addresses.iter().map(|(path, _)| path.as_str());
        let nearest = |path: &str| names::nearest(path, known.clone().chain(RESERVED)).map(str::to_owned);
        let below = || {
            let (first, rest) = segments.split_first().filter(|(_, rest)| !rest.is_empty())?;
            Some(format!("{}/{}", nearest(&format!("/{first}"))?, rest.join("/"))).filter(leads)
        };
        Some(plain.clone()).filter(leads).or_else(|| nearest(&plain)).or_else(below)
    }

    /// The answer of a text endpoint, where neither its body nor anything else has to be waited for.
    fn text_at_once(&self, request: &Request) -> Option<Response> {
        let text = self.rest.texts.get(request.uri().path()).filter(|_| request.body().is_end_stream())?;
        text.answer_at_once(request.method(), request.headers())
    }

    /// What was answered before and is still exact, or an answer made now.
    async fn answer(
        &self,
        mut head: Parts,
        body: Option<Result<Bytes, Problem>>,
        client: Client,
    ) -> Response {
        let (answers, has_body) = (&self.site.answers, body.is_some());
        if !has_body
            && let Some(asked) = self.asked(&head, &client)
            && let Some(repeated) = answers.find(&asked, &head.headers).await
        {
            return repeated;
        }
        head.extensions.insert(client.clone());
        let body = body.unwrap_or_else(|| Ok(Bytes::new()));
        let made = Box::pin(self.make(self.find(head.uri.path()), &head, body)).await;
        let made = self.unless_overtaken(&head.method, made);
        match self.asked(&head, &client).filter(|_| !has_body) {
            Some(asked) => answers.keep(&asked, made).await,
            None => made,
        }
    }

    /// What a reload overtook may be anything; but what is written is written.
    fn unless_overtaken(&self, method: &Method, made: Response) -> Response {
        if method.is_safe() || made.status().is_server_error() {
            self.site
                .engine
                .check_tables()
                .map_or_else(|error| Problem::from(error).into_response(), |()| made)
        } else {
            made
        }
    }

    /// Everything of a reading that lists and pages look at. The host is in links. Of cookies they know one alone, which
    /// tells what was just done and is for one page.
    fn asked<'r>(&self, head: &'r Parts, client: &'r Client) -> Option<Asked<'r>> {
        let is_reading = head.method == Method::GET || head.method == Method::HEAD;
        let tells = || trefoil_pages::flash::named(&head.headers).is_some();
        match self.find(head.uri.path()).filter(|_| is_reading && !tells())? {
            Found::List(_) | Found::Value(..) | Found::Records(..) => {
                let text = head.uri.path_and_query()?.as_str().as_bytes();
                let [scheme, host] = client.told();
                Asked::new(&[b"front", text, scheme, host], &head.headers, &[ACCEPT, HOST])
            }
            // A text is sent as quickly as it is found.
            Found::Text(_) => None,
        }
    }

    async fn make(&self, found: Option<Found<'_>>, head: &Parts, body: Result<Bytes, Problem>) -> Response {
        match found {
            Some(Found::Text(text)) => {
                let request = Client::request_of(&head.extensions);
                text.answer(&head.method, &head.headers, request, |view| self.pages.own(head, view)).await
            }
            Some(Found::List(list)) => match self.plain(list, head, &body).await {
                Some(page) => {
                    let page = page.unwrap_or_else(IntoResponse::into_response);
                    plain_lists::tagged(&self.site.engine, list, page).await
                }
                None => plain_lists::answer(&self.site, list, None, head, body).await,
            },
            Some(Found::Value(list, index)) => {
                plain_lists::answer(&self.site, list, Some(index), head, body).await
            }
            Some(Found::Records(collection, below)) => {
                let ask = Ask { site: &self.site, collection, head };
                self.records(&ask, below, body).await.unwrap_or_else(IntoResponse::into_response)
            }
            None => not_found().into_response(),
        }
    }

    /// What the page of a plain list answers: reading it where that is preferred, and its form.
    async fn plain(
        &self,
        list: &Arc<List>,
        head: &Parts,
        body: &Result<Bytes, Problem>,
    ) -> Option<Result<Response, Problem>> {
        match (&head.method, body) {
            (&Method::GET | &Method::HEAD, _) => {
                let wanted = list.offers().choose(&accept::Accept::of(&head.headers), Chosen::Nothing);
                if wanted == Some(Wanted::Page) {
                    Some(self.pages.plain(&self.site, list, head).await)
                } else {
                    None
                }
            }
            (&Method::POST, Ok(body)) => {
                let done = match list.form(&head.headers, body) {
                    Ok(pairs) => self.pages.append(&self.site, list, head, &pairs?, body).await,
                    Err(problem) => Err(problem),
                };
                Some(done.map_err(|problem| problem.voice(Voice::Html)))
            }
            (_, _) => None,
        }
    }

    async fn records(
        &self,
        ask: &Ask<'_>,
        below: Below<'_>,
        body: Result<Bytes, Problem>,
    ) -> Result<Response, Problem> {
        let method = match &ask.head.method {
            &Method::HEAD => &Method::GET,
            other => other,
        };
        match (method, below) {
            (&Method::OPTIONS, below) => Ok(options(ask, below)),
            (&Method::GET, below) => self.read(ask, below).await,
            (&Method::POST, Below::List) => self.create(ask, &body?).await,
            (&Method::POST | &Method::PUT, Below::Record(id)) => self.replace(ask, ask.id(id)?, &body?).await,
            (&Method::PATCH, Below::Record(id)) => {
                let (id, body) = (ask.id(id)?, body?);
                match read(ask, Place::Patch, &body)? {
                    Sent::Record(object) => trefoil_rest::patch_record(ask, id, object, &body).await,
                    Sent::Records(_) | Sent::Form(_) | Sent::Text(_) => Err(unreadable()),
                }
            }
            (&Method::DELETE, Below::Record(id)) => {
                let id = ask.id(id)?;
                let is_json = wants_no_content(ask.headers());
                if is_json {
                    trefoil_rest::delete_record(ask, id).await
                } else {
                    self.pages.remove(ask, id).await
                }
            }
            (&Method::POST, Below::Delete(id)) => self.pages.remove_by_form(ask, ask.id(id)?, &body?).await,
            (_, below) => Err(method_not_allowed(below.allow())),
        }
    }

    async fn read(&self, ask: &Ask<'_>, below: Below<'_>) -> Result<Response, Problem> {
        let (headers, pages) = (ask.headers(), &self.pages);
        match below {
            Below::List => match ask.collection.offers().wanted(headers, ask.chosen())? {
                Wanted::Page => pages.list(ask).await,
                wanted @ (Wanted::Json | Wanted::Lines | Wanted::Ndjson | Wanted::Csv | Wanted::Events) => {
                    trefoil_rest::read_list(ask, wanted, &self.rest.streams).await
                }
            },
            Below::Record(id) => match (ask.id(id)?, RECORD.wanted(headers, ask.chosen_fields())?) {
                (id, Wanted::Page) => pages.one(ask, id).await,
                (id, Wanted::Json | Wanted::Lines | Wanted::Ndjson | Wanted::Csv | Wanted::Events) => {
                    trefoil_rest::read_record(ask, id).await
                }
            },
            Below::Nested(above, nested) => {
                match (ask.id(above)?, COLLECTION.wanted(headers, ask.chosen())?) {
                    (above, Wanted::Page) => pages.list_below(ask, above, nested).await,
                    (
                        above,
                        wanted @ (Wanted::Json
                        | Wanted::Lines
                        | Wanted::Ndjson
                        | Wanted::Csv
                        | Wanted::Events),
                    ) => trefoil_rest::read_nested_list(ask, above, nested, wanted).await,
                }
            }
            Below::NestedRecord(above, nested, id) => {
                match (ask.id(above)?, ask.id(id)?, RECORD.wanted(headers, ask.chosen_fields())?) {
                    (above, id, Wanted::Page) => pages.one_below(ask, above, nested, id).await,
                    (
                        above,
                        id,
                        Wanted::Json | Wanted::Lines | Wanted::Ndjson | Wanted::Csv | Wanted::Events,
                    ) => trefoil_rest::read_nested_record(ask, above, nested, id).await,
                }
            }
            Below::New => {
                FORM.wanted(headers, Chosen::Nothing)?;
                pages.new_form(ask).await
            }
            Below::Edit(id) => {
                let id = ask.id(id)?;
                FORM.wanted(headers, Chosen::Nothing)?;
                pages.edit_form(ask, id).await
            }
            Below::Delete(id) => {
                let id = ask.id(id)?;
                FORM.wanted(headers, Chosen::Nothing)?;
                pages.delete_form(ask, id).await
            }
        }
    }

    async fn create(&self, ask: &Ask<'_>, bytes: &Bytes) -> Result<Response, Problem> {
        match read(ask, ask.place(), bytes)? {
            Sent::Record(object) => trefoil_rest::create_one(ask, object, bytes)
                .await
                .map_err(|problem| trefoil_rest::json_problem(ask, bytes, problem)),
            Sent::Records(objects) => trefoil_rest::create_many(ask, objects, bytes)
                .await
                .map_err(|problem| trefoil_rest::json_problem(ask, bytes, problem)),
            Sent::Form(pairs) => self.pages.create(ask, &pairs, bytes).await,
            Sent::Text(text) => trefoil_rest::create_from_text(ask, text, bytes)
                .await
                .map_err(|problem| problem.voice(Voice::Text)),
        }
    }

    async fn replace(&self, ask: &Ask<'_>, id: i64, bytes: &Bytes) -> Result<Response, Problem> {
        match read(ask, Place::Record, bytes)? {
            Sent::Record(object) => trefoil_rest::replace_record(ask, id, object, bytes).await,
            Sent::Form(pairs) => self.pages.replace(ask, id, &pairs, bytes).await,
            Sent::Records(_) | Sent::Text(_) => Err(unreadable()),
        }
    }
}

/// What a body means; what cannot even be read is told in the form that it was sent in.
fn read(ask: &Ask<'_>, place: Place, bytes: &[u8]) -> Result<Sent, Problem> {
    let is_field = |name: &str| form_input::of_control(ask.record(), name).is_some();
    let sent = place.read(ask.headers(), bytes, is_field).and_then(|sent| held(ask, place).map(|()| sent));
    sent.map_err(|problem| match body_text::essence(ask.headers()).as_str() {
        essence if essence.contains("json") => in_json(problem),
        // A patch is never the form of a page.
        "application/x-www-form-urlencoded" | "multipart/form-data" if place != Place::Patch => {
            problem.voice(Voice::Html)
        }
        _ => problem,
    })
}

/// A collection has no version that a write could be held to: its tags are those of one part in one form.
fn held(ask: &Ask<'_>, place: Place) -> Result<(), Problem> {
    match place {
        Place::Collection | Place::Texts => etags::allow(ask.headers(), None),
        Place::Record | Place::Patch => Ok(()),
    }
}

fn unreadable() -> Problem {
    Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn options(ask: &Ask<'_>, below: Below<'_>) -> Response {
    let mut response = (StatusCode::NO_CONTENT, [(ALLOW, below.allow())]).into_response();
    let places = match below {
        Below::List => &[ask.place()][..],
        Below::Record(_) => &[Place::Record, Place::Patch],
        Below::New | Below::Edit(_) | Below::Delete(_) | Below::Nested(..) | Below::NestedRecord(..) => &[],
    };
    response.headers_mut().extend(places.iter().map(|place| place.header()));
    response
}

impl Front {
    pub fn new(served: Served) -> Front {
        let gate = served.site.engine.feed().gate().clone();
        Front(Arc::new(FrontState { served: ArcSwap::from_pointee(served), gate }))
    }

    /// From the next request on, this is served.
    pub fn swap(&self, served: Served) {
        self.0.served.store(Arc::new(served));
    }

    async fn answer(&self, request: Request, client: Client) -> Response {
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
        served.answer(head, body, client).await
    }

    async fn knows(&self, path: &str) -> bool {
        let _lease = self.0.gate.enter().await;
        self.0.served.load().find(path).is_some()
    }

    /// A fallback and no routes for what is declared, because that can change while the server runs.
    pub fn router(&self) -> Router {
        let own = Router::new().route("/", get(home)).route("/openapi.json", get(describe));
        own.fallback(serve)
            .with_state(self.clone())
            .merge(trefoil_rest::docs())
            .merge(trefoil_pages::assets())
    }

    /// Tells the foundation whose paths these are.
    pub fn owners(&self) -> Owners {
        let front = self.clone();
        Arc::new(move |path| front.0.served.load().owner(path))
    }

    /// Answers for the foundation at the paths that have an owner.
    pub fn handler(&self) -> Handler {
        let front = self.clone();
        Arc::new(move |request, client| {
            if front.0.gate.is_open()
                && let Some(response) = front.0.served.load().text_at_once(&request)
            {
                return Answer::Now(response);
            }
            let front = front.clone();
            Answer::Soon(Box::pin(async move { front.answer(request, client).await }))
        })
    }

    /// Tells the foundation how an error looks to people.
    pub fn errors(&self) -> ErrorPage {
        let front = self.clone();
        // Nothing stands around this that could answer in its place.
        Arc::new(move |problem, asker, request_id| {
            let page = || front.0.served.load().error(problem, asker, request_id);
            catch_unwind(AssertUnwindSafe(page))
                .unwrap_or_else(|_| trefoil_pages::errors::last_resort(problem, request_id))
        })
    }
}

/// What is served here and where to go: a page for people, lines for shells.
async fn home(State(front): State<Front>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    body_text::ignore(body).await;
    let _lease = front.0.gate.enter().await;
    let served = front.0.served.load_full();
    if accept::Accept::of(&head.headers).prefers_html() {
        return served.pages.home(&served.site, &head).await.unwrap_or_else(IntoResponse::into_response);
    }
    crate::home_text::text(&head.headers, served.pages.name(), &served.addresses)
}

async fn describe(State(front): State<Front>, headers: HeaderMap) -> Response {
    let _lease = front.0.gate.enter().await;
    let served = front.0.served.load();
    served.rest.describe(&served.site, served.pages.own_views(), &headers)
}

async fn serve(State(front): State<Front>, mut request: Request) -> Response {
    let client = request.extensions_mut().remove().unwrap_or_default();
    front.answer(request, client).await
}
