//! What a store holds by the paths it is served at, what is referred to before what refers to it.

use std::sync::Arc;

use crate::file_columns::carries;
use trefoil_model::naming::names::nearest;
use trefoil_model::{FieldId, Kind, Model, TypeId};

/// One collection of records, or one plain list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    Records(TypeId),
    List(Arc<str>),
}

/// All of them.
#[derive(Debug, Clone)]
pub struct Inventory {
    pub model: Arc<Model>,
    lists: Vec<Arc<str>>,
}

impl Inventory {
    pub fn new(model: Arc<Model>, lists: &[String]) -> Inventory {
        Inventory { model, lists: lists.iter().map(|list| Arc::from(list.as_str())).collect() }
    }

    /// In an order in which hardly a reference leads to what comes later.
    pub fn all(&self) -> Vec<Resource> {
        let mut waiting: Vec<TypeId> = (0..self.model.records.len()).map(TypeId).collect();
        let mut ordered = Vec::new();
        while !waiting.is_empty() {
            let is_free = |record: &TypeId| {
                !needs(&self.model, *record).any(|other| other != *record && waiting.contains(&other))
            };
            // A circle of references has no beginning.
            let next = waiting.iter().position(is_free).unwrap_or(0);
            ordered.push(Resource::Records(waiting.remove(next)));
        }
        ordered.extend(self.lists.iter().cloned().map(Resource::List));
        ordered
    }

    /// Its path, without the slash.
    pub fn path<'a>(&'a self, resource: &'a Resource) -> &'a str {
        match resource {
            Resource::Records(record) => &self.model.record(*record).path,
            Resource::List(name) => name,
        }
    }

    /// The name of its file, without what tells the format.
    pub fn file_name(&self, resource: &Resource) -> String {
        self.path(resource).replace('/', "%2F")
    }

    /// The resource at a path; the error is a line that suggests another one.
    pub fn named(&self, path: &str) -> Result<Resource, String> {
        let wanted = path.strip_prefix('/').unwrap_or(path).replace("%2F", "/");
        if let Some(record) = self.model.record_at(&wanted) {
            return Ok(Resource::Records(record));
        }
        if let Some(list) = self.lists.iter().find(|list| ***list == *wanted) {
            return Ok(Resource::List(list.clone()));
        }
        let known = self.model.records.iter().map(|record| record.path.as_str());
        let near = nearest(&wanted, known.chain(self.lists.iter().map(|list| &**list)));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Err(format!("there is no resource `{wanted}`{hint}"))
    }
}

/// The types whose records had better be there first.
fn needs(model: &Model, record: TypeId) -> impl Iterator<Item = TypeId> {
    model.record(record).fields.iter().enumerate().filter_map(move |(i, field)| match &field.kind {
        Kind::Reference { target, .. } => Some(*target),
        Kind::Link { target, .. } => carries(model, record, FieldId(i)).then_some(*target),
        Kind::Id
        | Kind::Scalar(_)
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Inverse { .. }
        | Kind::Unstored => None,
    })
}
