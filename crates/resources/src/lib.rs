//! Records at their addresses: what JSON and pages have in common, from the path and the query to the write.

pub mod body_text;
pub mod collection;
pub mod control_tree;
pub mod field_values;
pub mod form_input;
pub mod list_query;
pub mod parsed_body;
pub mod plain_list;
pub mod record_shape;
pub mod request;
pub mod row_writer;
pub mod typed_values;
pub mod write;

use std::collections::HashMap;
use std::sync::Arc;

use crate::collection::{Below, Collection};
use crate::plain_list::List;
use trefoil_application::Manifest;
use trefoil_engine::Engine;
use trefoil_http::response_cache::Answers;
use trefoil_model::TypeId;

/// The collections of one schema and what answers them. Swapped whole on reload.
pub struct Site {
    pub engine: Engine,
    /// What was answered before and may be given again.
    pub answers: Arc<Answers>,
    /// Tells this store from others.
    pub store: String,
    /// In the order of the schema.
    pub collections: Vec<Collection>,
    /// The position of each by its path.
    by_path: HashMap<String, usize>,
    /// Plain lists in the order of the manifest.
    pub lists: Vec<Arc<List>>,
}

impl Site {
    pub fn new(manifest: &Manifest, engine: Engine, answers: Arc<Answers>, store: &str) -> Site {
        let records = engine.model().records.iter().enumerate();
        let collections: Vec<Collection> = records
            .map(|(position, record)| {
                let settings = manifest.resources.iter().find(|resource| resource.collection == record.path);
                Collection::new(&engine, store, TypeId(position), settings)
            })
            .collect();
        let paths = collections.iter().enumerate();
        let by_path = paths.map(|(position, collection)| (collection.path.clone(), position)).collect();
        let lists = manifest.lists.iter().map(|list| Arc::new(List::new(list))).collect();
        Site { engine, answers, store: store.to_owned(), collections, by_path, lists }
    }

    /// Every record type has a collection.
    pub fn collection(&self, record: TypeId) -> &Collection {
        &self.collections[record.0]
    }

    pub fn list(&self, path: &str) -> Option<&Arc<List>> {
        self.lists.iter().find(|list| list.path == path)
    }

    /// Paths match exactly.
    pub fn find<'s>(&'s self, path: &'s str) -> Option<(&'s Collection, Below<'s>)> {
        let end = path.get(1..)?.find('/').map_or(path.len(), |at| at + 1);
        let collection = &self.collections[*self.by_path.get(&path[..end])?];
        Some((collection, collection.below(&path[end..])?))
    }
}
