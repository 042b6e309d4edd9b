//! The REST face: which path is a text endpoint, a plain list, a collection of records, or something below one.

mod body;
mod collection;
mod content;
mod create;
mod docs;
mod events;
mod fields;
mod lines;
mod lists;
mod negotiate;
mod openapi;
mod pairs;
mod patch;
mod query;
mod read;
mod records;
mod rows;
mod shape;
mod snapshot;
mod text;
mod typed;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use http::HeaderMap;

use self::collection::{Below, Collection};
pub use self::events::Streams;
use self::lists::List;
use self::openapi::Document;
use self::text::TextPath;
use super::foundation::{Owner, Owners};
use super::problem::{Voice, not_found};
use super::spell::Speaks;
use crate::app::Manifest;
use crate::engine::Engine;
use crate::model::TypeId;

/// What one manifest and one schema declare, ready to be sent. Swapped whole on reload.
pub struct Served {
    engine: Engine,
    /// Tells this store from others.
    store: String,
    streams: Streams,
    texts: HashMap<String, TextPath>,
    lists: HashMap<String, Arc<List>>,
    /// In the order of the schema.
    collections: Vec<Collection>,
    /// The position of each by its path.
    by_path: HashMap<String, usize>,
    /// In the order of manifest and schema, for people.
    addresses: Vec<(String, &'static str)>,
    document: Document,
}

/// The face, whatever it serves at the moment.
#[derive(Clone)]
pub struct Face(Arc<ArcSwap<Served>>);

/// Who answers at a path.
enum Found<'s> {
    Text(&'s TextPath),
    List(&'s Arc<List>),
    /// What stands below a list: an index, if it is one.
    Value(&'s Arc<List>, &'s str),
    Records(&'s Collection, Below<'s>),
}

impl Served {
    pub fn new(manifest: &Manifest, engine: Engine, store: &str, streams: Streams) -> Served {
        let mut texts: HashMap<String, TextPath> = HashMap::new();
        let mut addresses = Vec::new();
        for endpoint in &manifest.texts {
            if !texts.contains_key(&endpoint.path) {
                addresses.push((endpoint.path.clone(), "text"));
            }
            texts.entry(endpoint.path.clone()).or_default().add(endpoint);
        }
        addresses.extend(manifest.lists.iter().map(|list| (list.path.clone(), "a plain list")));
        let lists =
            manifest.lists.iter().map(|list| (list.path.clone(), Arc::new(List::new(list)))).collect();
        let collections = collections(manifest, &engine, store);
        addresses.extend(collections.iter().map(|collection| (collection.path.clone(), "records")));
        let paths = collections.iter().enumerate();
        let by_path = paths.map(|(position, collection)| (collection.path.clone(), position)).collect();
        let document = Document::new(manifest, &engine, &collections);
        let store = store.to_owned();
        Served { engine, store, streams, texts, lists, collections, by_path, addresses, document }
    }

    /// Every record type has a collection.
    fn collection(&self, record: TypeId) -> &Collection {
        &self.collections[record.0]
    }

    /// Paths match exactly.
    fn find<'s>(&'s self, path: &'s str) -> Option<Found<'s>> {
        if let Some(text) = self.texts.get(path) {
            return Some(Found::Text(text));
        }
        if let Some(list) = self.lists.get(path) {
            return Some(Found::List(list));
        }
        if let Some((above, last)) = path.rsplit_once('/')
            && let Some(list) = self.lists.get(above).filter(|_| !last.is_empty())
        {
            return Some(Found::Value(list, last));
        }
        let end = path.get(1..)?.find('/').map_or(path.len(), |at| at + 1);
        let collection = &self.collections[*self.by_path.get(&path[..end])?];
        Some(Found::Records(collection, collection.below(&path[end..])?))
    }

    fn owner(&self, path: &str) -> Option<Owner> {
        let (route, speaks) = match self.find(path)? {
            Found::Text(_) | Found::List(_) => (path.to_owned(), Speaks::Always(Voice::Text)),
            Found::Value(list, _) => (format!("{}/{{index}}", list.path), Speaks::Always(Voice::Text)),
            Found::Records(collection, below) => {
                let is_texts = collection.texts.is_some() && matches!(below, Below::List);
                let otherwise = if is_texts { Voice::Text } else { Voice::Json };
                (collection.route(below), Speaks::Otherwise(otherwise))
            }
        };
        Some(Owner { route, speaks })
    }
}

fn collections(manifest: &Manifest, engine: &Engine, store: &str) -> Vec<Collection> {
    let records = engine.model().records.iter().enumerate().map(|(position, record)| {
        let settings = manifest.resources.iter().find(|resource| resource.collection == record.path);
        Collection::new(engine, store, TypeId(position), settings)
    });
    records.collect()
}

impl Face {
    pub fn new(served: Served) -> Face {
        Face(Arc::new(ArcSwap::from_pointee(served)))
    }

    /// From the next request on, this is served.
    pub fn swap(&self, served: Served) {
        self.0.store(Arc::new(served));
    }

    /// A fallback and no routes for what is declared, because that can change while the server runs.
    pub fn router(&self) -> Router {
        let own = Router::new().route("/openapi.json", get(describe)).merge(docs::router());
        own.fallback(serve).with_state(self.clone())
    }

    /// Tells the foundation whose paths these are.
    pub fn owners(&self) -> Owners {
        let face = self.clone();
        Arc::new(move |path| face.0.load().owner(path))
    }

    /// Every path and what is there, for people.
    pub fn addresses(&self) -> Vec<(String, &'static str)> {
        self.0.load().addresses.clone()
    }
}

async fn describe(State(face): State<Face>, headers: HeaderMap) -> Response {
    face.0.load().document.respond(&headers)
}

async fn serve(State(face): State<Face>, request: Request) -> Response {
    let served = face.0.load_full();
    let path = request.uri().path().to_owned();
    match served.find(&path) {
        Some(Found::Text(text)) => {
            let (head, body) = request.into_parts();
            ignore(body).await;
            text.answer(&head.method, &head.headers).await
        }
        Some(Found::List(list)) => lists::answer(&served.engine, list, None, request).await,
        Some(Found::Value(list, index)) => lists::answer(&served.engine, list, Some(index), request).await,
        Some(Found::Records(collection, below)) => records::answer(&served, collection, below, request).await,
        None => not_found().into_response(),
    }
}

/// Reads what nobody asked for to its end: a connection with unread bytes could not be used again.
async fn ignore(body: Body) {
    let mut body = body.into_data_stream();
    while let Some(Ok(_)) = body.next().await {}
}
