//! The collection of one record type: its settings, prepared at start, and the paths below it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use trefoil_application::{ResourceSettings, TextList};
use trefoil_engine::{ChangeKind, Condition, Engine, binding};
use trefoil_http::negotiation::format::{
    COLLECTION_FORMATS, LIVE_COLLECTION_FORMATS, LIVE_TEXT_COLLECTION_FORMATS, OfferedFormats,
    TEXT_COLLECTION_FORMATS,
};
use trefoil_model::naming::names;
use trefoil_model::{FieldId, KeyForm, Model, RecordId, RecordType, RecordTypeId};

use crate::record_shape::RecordShape;

pub struct Collection {
    pub record: RecordTypeId,
    /// With the slash: `/users`.
    pub path: String,
    pub full_shape: Arc<RecordShape>,
    /// The text list that plain clients see instead of records.
    pub texts: Option<CollectionTexts>,
    /// By segment: `orders` in `/users/1/orders`.
    nested: HashMap<String, NestedCollection>,
    pub cache_control: Option<HeaderValue>,
    /// The kinds of changes that the schema has subscriptions for.
    pub subscribed_changes: Vec<ChangeKind>,
}

pub struct CollectionTexts {
    pub list: TextList,
    /// The shape with its one field.
    pub shape: Arc<RecordShape>,
}

/// The records that reference one record.
pub struct NestedCollection {
    pub segment: String,
    /// Their record type.
    pub record: RecordTypeId,
    /// Their reference field.
    pub reference: FieldId,
}

/// The condition that an id or reference field equals `id`.
pub fn equals_id(field: FieldId, id: &RecordId) -> Condition {
    Condition::equals(field, id.to_value())
}

/// The path of a record: that of its collection and its id.
pub fn record_path(collection: &str, id: &RecordId) -> String {
    match id {
        RecordId::Number(number) => format!("{collection}/{number}"),
        RecordId::Text(text) => format!("{collection}/{}", encode_segment(text)),
    }
}

/// A text as a segment of a path.
pub fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED_IN_SEGMENT).to_string()
}

/// The id in a segment of a path; the error says what it must be.
pub fn id_from_segment(form: KeyForm, segment: &str) -> Result<RecordId, &'static str> {
    // Digits need no encoding, and an id has only one address.
    if form.is_integer() {
        return RecordId::from_text(form, segment);
    }
    RecordId::from_text(form, &decode_segment(segment))
}

/// A segment of a path without its percent signs.
pub fn decode_segment(segment: &str) -> Cow<'_, str> {
    percent_decode_str(segment).decode_utf8_lossy()
}

/// The characters that a segment of a path does not contain as they are.
const ENCODED_IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A path below a collection, with unparsed ids.
#[derive(Clone, Copy)]
pub enum SubPath<'p> {
    /// The collection itself.
    List,
    /// The form for a new record.
    New,
    Record(&'p str),
    /// The form for an existing record.
    Edit(&'p str),
    /// The confirmation page of a deletion, and the target of its form.
    Delete(&'p str),
    Nested(&'p str, &'p NestedCollection),
    NestedRecord(&'p str, &'p NestedCollection, &'p str),
}

impl Collection {
    pub fn new(
        engine: &Engine,
        store_id: &str,
        record: RecordTypeId,
        settings: Option<&ResourceSettings>,
    ) -> Collection {
        let model = engine.model();
        let owner = model.record(record);
        // An invalid text list has failed the start already.
        let list = settings.and_then(|settings| settings.text_list(model, owner).ok().flatten());
        let texts = list.map(|list| {
            let shape = Arc::new(RecordShape::with_fields(model, store_id, record, vec![list.field]));
            CollectionTexts { list, shape }
        });
        let cache = settings.and_then(|settings| settings.cache.as_deref());
        Collection {
            record,
            path: format!("/{}", owner.path),
            full_shape: Arc::new(RecordShape::all_fields(model, store_id, record)),
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

    /// Parses the rest of a path after the collection's own path.
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

    /// The pattern of a path, for metrics.
    pub fn route_pattern(&self, sub_path: SubPath<'_>) -> String {
        let path = &self.path;
        match sub_path {
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
    let changes = binding::subscribed_changes(engine.bindings());
    changes.into_iter().filter(|(owner, _)| *owner == record).map(|(_, kind)| kind).collect()
}

fn nested_collections(model: &Model, record: RecordTypeId) -> HashMap<String, NestedCollection> {
    inverse_relations(model.record(record))
        .map(|(segment, record, reference)| {
            (segment.clone(), NestedCollection { segment, record, reference })
        })
        .collect()
}

/// The nested collections of a record type: segment, record type, reference field.
pub fn inverse_relations(record: &RecordType) -> impl Iterator<Item = (String, RecordTypeId, FieldId)> {
    record.fields.iter().filter_map(|field| {
        let inverse = field.kind.inverse()?;
        Some((names::path_segment(&field.name), inverse.target, inverse.field))
    })
}
