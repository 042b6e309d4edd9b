//! The collections and plain lists of one schema, found by path.

use std::collections::HashMap;
use std::sync::Arc;

use trefoil_application::Manifest;
use trefoil_engine::Engine;
use trefoil_http::response_cache::ResponseCache;
use trefoil_model::RecordTypeId;

use crate::collection::{Collection, SubPath};
use crate::plain_list::PlainListResource;

/// The collections of one schema and what answers them. Swapped whole on reload.
pub struct ServedResources {
    pub engine: Engine,
    /// What was answered before and may be given again.
    pub response_cache: Arc<ResponseCache>,
    /// Tells this store from others.
    pub store_id: String,
    /// In the order of the schema.
    pub collections: Vec<Collection>,
    /// The position of each by its path.
    by_path: HashMap<String, usize>,
    /// Plain lists in the order of the manifest.
    pub plain_lists: Vec<Arc<PlainListResource>>,
}

impl ServedResources {
    pub fn new(
        manifest: &Manifest,
        engine: Engine,
        answers: Arc<ResponseCache>,
        store: &str,
    ) -> ServedResources {
        let records = engine.model().records.iter().enumerate();
        let collections: Vec<Collection> = records
            .map(|(position, record)| {
                let settings = manifest.resources.iter().find(|resource| resource.collection == record.path);
                Collection::new(&engine, store, RecordTypeId(position), settings)
            })
            .collect();
        let paths = collections.iter().enumerate();
        let by_path = paths.map(|(position, collection)| (collection.path.clone(), position)).collect();
        let lists = manifest.plain_lists.iter().map(|list| Arc::new(PlainListResource::new(list))).collect();
        ServedResources {
            engine,
            response_cache: answers,
            store_id: store.to_owned(),
            collections,
            by_path,
            plain_lists: lists,
        }
    }

    /// Every record type has a collection.
    pub fn collection(&self, record: RecordTypeId) -> &Collection {
        &self.collections[record.0]
    }

    pub fn plain_list(&self, path: &str) -> Option<&Arc<PlainListResource>> {
        self.plain_lists.iter().find(|list| list.path == path)
    }

    /// Paths match exactly.
    pub fn find_path<'s>(&'s self, path: &'s str) -> Option<(&'s Collection, SubPath<'s>)> {
        let end = path.get(1..)?.find('/').map_or(path.len(), |at| at + 1);
        let collection = &self.collections[*self.by_path.get(&path[..end])?];
        Some((collection, collection.parse_sub_path(&path[end..])?))
    }
}
