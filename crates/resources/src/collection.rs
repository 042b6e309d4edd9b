//! One record type's collection as the face serves it: what was prepared at the start, and which paths are below it.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderValue;

use trefoil_application::{ResourceSettings, TextList};
use trefoil_engine::{ChangeKind, ComparisonOp, Condition, Engine};
use trefoil_http::negotiation::format::{
    COLLECTION_FORMATS, LIVE_COLLECTION_FORMATS, LIVE_TEXT_COLLECTION_FORMATS, OfferedFormats,
    TEXT_COLLECTION_FORMATS,
};
use trefoil_model::naming::names;
use trefoil_model::{FieldId, FieldKind, Model, RecordType, RecordTypeId, Value};

use crate::record_shape::RecordShape;

pub struct Collection {
    pub record: RecordTypeId,
    /// As it comes in a request: `/users`.
    pub path: String,
    pub full_shape: Arc<RecordShape>,
    /// What plain clients see as a list of texts.
    pub texts: Option<CollectionTexts>,
    /// By the segment below a record: `orders` in `/users/1/orders`.
    nested: HashMap<String, NestedCollection>,
    pub cache_control: Option<HeaderValue>,
    /// The changes that the schema subscribes to.
    pub subscribed_changes: Vec<ChangeKind>,
}

pub struct CollectionTexts {
    pub list: TextList,
    /// Its one field.
    pub shape: Arc<RecordShape>,
}

/// The records that refer to one record.
pub struct NestedCollection {
    pub segment: String,
    /// Whose collection these are a part of.
    pub record: RecordTypeId,
    /// Their reference to the record above.
    pub reference: FieldId,
}

/// Of a record's own id, or of a reference to one.
pub fn equals_id(field: FieldId, id: i64) -> Condition {
    Condition { field, op: ComparisonOp::Eq, value: Value::Int(id) }
}

/// Where below a collection a path leads. Ids are as they were written.
#[derive(Clone, Copy)]
pub enum SubPath<'p> {
    /// The collection itself.
    List,
    /// The form for a new record.
    New,
    Record(&'p str),
    /// The form for this record.
    Edit(&'p str),
    /// The page that asks, and what its form posts to.
    Delete(&'p str),
    Nested(&'p str, &'p NestedCollection),
    NestedRecord(&'p str, &'p NestedCollection, &'p str),
}

impl Collection {
    /// `store` tells this store from others.
    pub fn new(
        engine: &Engine,
        store: &str,
        record: RecordTypeId,
        settings: Option<&ResourceSettings>,
    ) -> Collection {
        let model = engine.model();
        let owner = model.record(record);
        // A list that the schema does not bear out has stopped the start already.
        let list = settings.and_then(|settings| settings.text_list(model, owner).ok().flatten());
        let texts = list.map(|list| {
            let shape = Arc::new(RecordShape::with_fields(model, store, record, vec![list.field]));
            CollectionTexts { list, shape }
        });
        let cache = settings.and_then(|settings| settings.cache.as_deref());
        Collection {
            record,
            path: format!("/{}", owner.path),
            full_shape: Arc::new(RecordShape::all_fields(model, store, record)),
            texts,
            nested: nested_collections(model, record),
            cache_control: cache.and_then(|cache| HeaderValue::from_str(cache).ok()),
            subscribed_changes: subscribed_changes(engine, record),
        }
    }

    pub fn offered_formats(&self) -> OfferedFormats {
        match (self.texts.is_some(), self.subscribed_changes.is_empty()) {
            (true, true) => TEXT_COLLECTION_FORMATS,
            (true, false) => LIVE_TEXT_COLLECTION_FORMATS,
            (false, true) => COLLECTION_FORMATS,
            (false, false) => LIVE_COLLECTION_FORMATS,
        }
    }

    /// Where `rest` leads, which is what follows the collection's path.
    pub fn parse_sub_path<'p>(&'p self, rest: &'p str) -> Option<SubPath<'p>> {
        if rest.is_empty() {
            return Some(SubPath::List);
        }
        let mut segments = rest.strip_prefix('/')?.split('/');
        let id = segments.next().filter(|id| !id.is_empty())?;
        match (segments.next(), segments.next(), segments.next()) {
            (None, ..) if id == "new" => Some(SubPath::New),
            (None, ..) => Some(SubPath::Record(id)),
            (Some("edit"), None, _) => Some(SubPath::Edit(id)),
            (Some("delete"), None, _) => Some(SubPath::Delete(id)),
            (Some(segment), None, _) => Some(SubPath::Nested(id, self.nested.get(segment)?)),
            (Some(segment), Some(other), None) if !other.is_empty() => {
                Some(SubPath::NestedRecord(id, self.nested.get(segment)?, other))
            }
            (Some(_), Some(_), _) => None,
        }
    }

    /// What metrics call a path.
    pub fn route_pattern(&self, below: SubPath<'_>) -> String {
        let path = &self.path;
        match below {
            SubPath::List => path.clone(),
            SubPath::New => format!("{path}/new"),
            SubPath::Record(_) => format!("{path}/{{id}}"),
            SubPath::Edit(_) => format!("{path}/{{id}}/edit"),
            SubPath::Delete(_) => format!("{path}/{{id}}/delete"),
            SubPath::Nested(_, nested) => format!("{path}/{{id}}/{}", nested.segment),
            SubPath::NestedRecord(_, nested, _) => format!("{path}/{{id}}/{}/{{id}}", nested.segment),
        }
    }
}

impl SubPath<'_> {
    pub fn allowed_methods(&self) -> &'static str {
        match self {
            SubPath::List => "GET, HEAD, POST, OPTIONS",
            SubPath::Record(_) => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            SubPath::Delete(_) => "GET, HEAD, POST, OPTIONS",
            SubPath::New | SubPath::Edit(_) | SubPath::Nested(..) | SubPath::NestedRecord(..) => {
                "GET, HEAD, OPTIONS"
            }
        }
    }
}

fn subscribed_changes(engine: &Engine, record: RecordTypeId) -> Vec<ChangeKind> {
    let watched = trefoil_engine::resolvers::subscribed_changes(engine.bindings());
    watched.into_iter().filter(|(of, _)| *of == record).map(|(_, deed)| deed).collect()
}

fn nested_collections(model: &Model, record: RecordTypeId) -> HashMap<String, NestedCollection> {
    let below = inverse_relations(model.record(record));
    below
        .map(|(segment, record, reference)| {
            (segment.clone(), NestedCollection { segment, record, reference })
        })
        .collect()
}

/// What is below each record: the segment, whose records, by which reference.
pub fn inverse_relations(record: &RecordType) -> impl Iterator<Item = (String, RecordTypeId, FieldId)> {
    record.fields.iter().filter_map(|field| match &field.kind {
        FieldKind::Inverse { target: of, field: reference } => {
            Some((names::path_segment(&field.name), *of, *reference))
        }
        FieldKind::Id
        | FieldKind::Scalar(_)
        | FieldKind::Enum(_)
        | FieldKind::Embedded(_)
        | FieldKind::List(_)
        | FieldKind::Reference { .. }
        | FieldKind::Link { .. }
        | FieldKind::Unstored => None,
    })
}
