//! One record type's collection as the face serves it: what was prepared at the start, and which paths are below it.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderValue;

use crate::record_shape::Shape;
use trefoil_application::{ResourceSettings, TextList};
use trefoil_engine::{Condition, Deed, Engine, Op};
use trefoil_http::negotiation::format::{COLLECTION, LIVE_COLLECTION, LIVE_TEXTS, Offers, TEXTS};
use trefoil_model::naming::names;
use trefoil_model::{FieldId, Kind, Model, RecordType, TypeId, Value};

pub struct Collection {
    pub record: TypeId,
    /// As it comes in a request: `/users`.
    pub path: String,
    pub whole: Arc<Shape>,
    /// What plain clients see as a list of texts.
    pub texts: Option<Texts>,
    /// By the segment below a record: `orders` in `/users/1/orders`.
    nested: HashMap<String, Nested>,
    pub cache: Option<HeaderValue>,
    /// The changes that the schema subscribes to.
    pub deeds: Vec<Deed>,
}

pub struct Texts {
    pub list: TextList,
    /// Its one field.
    pub shape: Arc<Shape>,
}

/// The records that refer to one record.
pub struct Nested {
    pub segment: String,
    /// Whose collection these are a part of.
    pub record: TypeId,
    /// Their reference to the record above.
    pub reference: FieldId,
}

/// Of a record's own id, or of a reference to one.
pub fn is(field: FieldId, id: i64) -> Condition {
    Condition { field, op: Op::Eq, value: Value::Int(id) }
}

/// Where below a collection a path leads. Ids are as they were written.
#[derive(Clone, Copy)]
pub enum Below<'p> {
    /// The collection itself.
    List,
    /// The form for a new record.
    New,
    Record(&'p str),
    /// The form for this record.
    Edit(&'p str),
    /// The page that asks, and what its form posts to.
    Delete(&'p str),
    Nested(&'p str, &'p Nested),
    NestedRecord(&'p str, &'p Nested, &'p str),
}

impl Collection {
    /// `store` tells this store from others.
    pub fn new(
        engine: &Engine,
        store: &str,
        record: TypeId,
        settings: Option<&ResourceSettings>,
    ) -> Collection {
        let model = engine.model();
        let owner = model.record(record);
        // A list that the schema does not bear out has stopped the start already.
        let list = settings.and_then(|settings| settings.text_list(model, owner).ok().flatten());
        let texts = list.map(|list| {
            let shape = Arc::new(Shape::of(model, store, record, vec![list.field]));
            Texts { list, shape }
        });
        let cache = settings.and_then(|settings| settings.cache.as_deref());
        Collection {
            record,
            path: format!("/{}", owner.path),
            whole: Arc::new(Shape::whole(model, store, record)),
            texts,
            nested: nested(model, record),
            cache: cache.and_then(|cache| HeaderValue::from_str(cache).ok()),
            deeds: watched(engine, record),
        }
    }

    pub fn offers(&self) -> Offers {
        match (self.texts.is_some(), self.deeds.is_empty()) {
            (true, true) => TEXTS,
            (true, false) => LIVE_TEXTS,
            (false, true) => COLLECTION,
            (false, false) => LIVE_COLLECTION,
        }
    }

    /// Where `rest` leads, which is what follows the collection's path.
    pub fn below<'p>(&'p self, rest: &'p str) -> Option<Below<'p>> {
        if rest.is_empty() {
            return Some(Below::List);
        }
        let mut segments = rest.strip_prefix('/')?.split('/');
        let id = segments.next().filter(|id| !id.is_empty())?;
        match (segments.next(), segments.next(), segments.next()) {
            (None, ..) if id == "new" => Some(Below::New),
            (None, ..) => Some(Below::Record(id)),
            (Some("edit"), None, _) => Some(Below::Edit(id)),
            (Some("delete"), None, _) => Some(Below::Delete(id)),
            (Some(segment), None, _) => Some(Below::Nested(id, self.nested.get(segment)?)),
            (Some(segment), Some(other), None) if !other.is_empty() => {
                Some(Below::NestedRecord(id, self.nested.get(segment)?, other))
            }
            (Some(_), Some(_), _) => None,
        }
    }

    /// What metrics call a path.
    pub fn route(&self, below: Below<'_>) -> String {
        let path = &self.path;
        match below {
            Below::List => path.clone(),
            Below::New => format!("{path}/new"),
            Below::Record(_) => format!("{path}/{{id}}"),
            Below::Edit(_) => format!("{path}/{{id}}/edit"),
            Below::Delete(_) => format!("{path}/{{id}}/delete"),
            Below::Nested(_, nested) => format!("{path}/{{id}}/{}", nested.segment),
            Below::NestedRecord(_, nested, _) => format!("{path}/{{id}}/{}/{{id}}", nested.segment),
        }
    }
}

impl Below<'_> {
    pub fn allow(&self) -> &'static str {
        match self {
            Below::List => "GET, HEAD, POST, OPTIONS",
            Below::Record(_) => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            Below::Delete(_) => "GET, HEAD, POST, OPTIONS",
            Below::New | Below::Edit(_) | Below::Nested(..) | Below::NestedRecord(..) => "GET, HEAD, OPTIONS",
        }
    }
}

fn watched(engine: &Engine, record: TypeId) -> Vec<Deed> {
    let watched = trefoil_engine::resolvers::watched(engine.bindings());
    watched.into_iter().filter(|(of, _)| *of == record).map(|(_, deed)| deed).collect()
}

fn nested(model: &Model, record: TypeId) -> HashMap<String, Nested> {
    let below = inverses(model.record(record));
    below
        .map(|(segment, record, reference)| (segment.clone(), Nested { segment, record, reference }))
        .collect()
}

/// What is below each record: the segment, whose records, by which reference.
pub fn inverses(record: &RecordType) -> impl Iterator<Item = (String, TypeId, FieldId)> {
    record.fields.iter().filter_map(|field| match &field.kind {
        Kind::Inverse { of, field: reference } => Some((names::segment(&field.name), *of, *reference)),
        Kind::Id
        | Kind::Scalar(_)
        | Kind::Enum(_)
        | Kind::Embedded(_)
        | Kind::List(_)
        | Kind::Reference { .. }
        | Kind::Link { .. }
        | Kind::Unstored => None,
    })
}
