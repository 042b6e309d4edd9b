//! The resources of an application by their paths, and the order in which references are satisfied.

use std::sync::Arc;

use trefoil_model::naming::names::nearest_name;
use trefoil_model::{FieldId, Model, RecordTypeId};

use crate::file_columns::carries_link;

/// One collection of records, or one plain list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataResource {
    Records(RecordTypeId),
    List(Arc<str>),
}

/// All resources of an application.
#[derive(Debug, Clone)]
pub struct ResourceCatalog {
    pub model: Arc<Model>,
    lists: Vec<Arc<str>>,
}

impl ResourceCatalog {
    pub fn new(model: Arc<Model>, lists: &[String]) -> ResourceCatalog {
        ResourceCatalog { model, lists: lists.iter().map(|list| Arc::from(list.as_str())).collect() }
    }

    /// Ordered so that, as far as possible, referenced records come before those that refer to them.
    pub fn in_reference_order(&self) -> Vec<DataResource> {
        let mut waiting: Vec<RecordTypeId> = (0..self.model.records.len()).map(RecordTypeId).collect();
        let mut ordered = Vec::new();
        while !waiting.is_empty() {
            let is_free = |record: &RecordTypeId| {
                !referenced_types(&self.model, *record)
                    .any(|other| other != *record && waiting.contains(&other))
            };
            // In a circle of references, start anywhere.
            let next = waiting.iter().position(is_free).unwrap_or(0);
            ordered.push(DataResource::Records(waiting.remove(next)));
        }
        ordered.extend(self.lists.iter().cloned().map(DataResource::List));
        ordered
    }

    /// The resource's path, without the slash.
    pub fn path<'a>(&'a self, resource: &'a DataResource) -> &'a str {
        match resource {
            DataResource::Records(record) => &self.model.record(*record).path,
            DataResource::List(name) => name,
        }
    }

    /// The name of the resource's file, without the extension.
    pub fn file_name(&self, resource: &DataResource) -> String {
        self.path(resource).replace('/', "%2F")
    }

    /// The resource at a path; the error suggests another one.
    pub fn find(&self, path: &str) -> Result<DataResource, String> {
        let name = path.strip_prefix('/').unwrap_or(path).replace("%2F", "/");
        if let Some(record) = self.model.find_record_by_path(&name) {
            return Ok(DataResource::Records(record));
        }
        if let Some(list) = self.lists.iter().find(|list| ***list == *name) {
            return Ok(DataResource::List(list.clone()));
        }
        let known = self.model.records.iter().map(|record| record.path.as_str());
        let nearest = nearest_name(&name, known.chain(self.lists.iter().map(|list| &**list)));
        let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
        Err(format!("unknown resource `{name}`{hint}"))
    }
}

/// The types that records of this type refer to.
fn referenced_types(model: &Model, record: RecordTypeId) -> impl Iterator<Item = RecordTypeId> {
    let fields = model.record(record).fields.iter().enumerate();
    let fields =
        fields.filter(move |(i, field)| !field.kind.is_link() || carries_link(model, record, FieldId(*i)));
    fields.filter_map(|(_, field)| field.kind.input_target())
}
