//! The collections and plain lists of one schema, found by path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use trefoil_application::Manifest;
use trefoil_engine::{Actor, Engine};
use trefoil_http::response_cache::ResponseCache;
use trefoil_model::RecordTypeId;
use trefoil_model::access::AccessAction;

use crate::collection::{Collection, SubPath};
use crate::plain_list::PlainListResource;

/// The resources of one schema. Swapped as a whole on reload. Cheap to clone.
#[derive(Clone)]
pub struct ServedResources {
    pub engine: Engine,
    pub response_cache: Arc<ResponseCache>,
    /// Identifies the store, since versions of another store mean nothing here.
    pub store_id: Arc<str>,
    /// In the order of the schema.
    pub collections: Arc<[Collection]>,
    /// Index in `collections` by path.
    by_path: Arc<HashMap<String, usize>>,
    /// Plain lists in the order of the manifest.
    pub plain_lists: Arc<[Arc<PlainListResource>]>,
    /// The paths of text endpoints in the order of the manifest.
    text_paths: Arc<[String]>,
}

impl ServedResources {
    pub fn new(
        manifest: &Manifest,
        engine: Engine,
        response_cache: Arc<ResponseCache>,
        store_id: &str,
    ) -> ServedResources {
        let records = (0..engine.model().records.len()).map(RecordTypeId);
        let collections: Arc<[Collection]> =
            records.map(|record| Collection::new(&engine, store_id, record, manifest)).collect();
        let paths = collections.iter().enumerate();
        let by_path: HashMap<_, _> =
            paths.map(|(position, collection)| (collection.path.clone(), position)).collect();
        let plain_lists =
            manifest.plain_lists.iter().map(|list| Arc::new(PlainListResource::new(list))).collect();
        ServedResources {
            engine,
            response_cache,
            store_id: store_id.into(),
            collections,
            by_path: Arc::new(by_path),
            plain_lists,
            text_paths: manifest.text_endpoints.iter().map(|text| text.path.clone()).collect(),
        }
    }

    /// The same resources on behalf of an actor. No rules, no copy: an open application has the same for everybody.
    pub fn for_actor(&self, actor: impl FnOnce() -> Actor) -> Cow<'_, ServedResources> {
        match &self.engine.model().access {
            Some(_) => Cow::Owned(self.with_engine(self.engine.for_actor(&actor()))),
            None => Cow::Borrowed(self),
        }
    }

    /// The same resources, read and written by another engine of the same schema.
    pub fn with_engine(&self, engine: Engine) -> ServedResources {
        ServedResources { engine, ..self.clone() }
    }

    /// The collection of a record type; every type has one.
    pub fn collection(&self, record: RecordTypeId) -> &Collection {
        &self.collections[record.0]
    }

    pub fn plain_list(&self, path: &str) -> Option<&Arc<PlainListResource>> {
        self.plain_lists.iter().find(|list| list.path == path)
    }

    /// Whether there may be something to see for the actor at the path of a collection, a plain list or a text. Of other
    /// paths nothing is known.
    pub fn is_offered(&self, path: &str) -> bool {
        if let Some(position) = self.by_path.get(path) {
            return self.engine.may(AccessAction::Read, self.collections[*position].record);
        }
        if let Some(list) = self.plain_list(path) {
            return self.engine.may_use_list(&list.name, false);
        }
        let texts = self.text_paths.iter().enumerate().filter(|(_, text)| *text == path);
        let mut texts = texts.map(|(position, _)| self.engine.check_text(position).is_ok()).peekable();
        texts.peek().is_none() || texts.any(|is_open| is_open)
    }

    /// The collection and the sub-path of an exact path.
    pub fn find_path<'s>(&'s self, path: &'s str) -> Option<(&'s Collection, SubPath<'s>)> {
        let end = path.get(1..)?.find('/').map_or(path.len(), |at| at + 1);
        let collection = &self.collections[*self.by_path.get(&path[..end])?];
        Some((collection, collection.parse_sub_path(&path[end..])?))
    }
}
