//! The collection of one record type: its settings, prepared at start, and the paths below it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use trefoil_application::{DefaultFormat, Manifest, TextList};
use trefoil_engine::arguments::unique_fields::is_unique_field;
use trefoil_engine::{ChangeKind, Condition, Engine, binding};
use trefoil_http::negotiation::format::{
    COLLECTION_FORMATS, LIVE_COLLECTION_FORMATS, LIVE_TEXT_COLLECTION_FORMATS, OfferedFormats,
    RECORD_FORMATS, ResponseFormat, TEXT_COLLECTION_FORMATS,
};
use trefoil_http::routing::ServedRoute;
use trefoil_model::naming::names;
use trefoil_model::{FieldId, KeyForm, RecordId, RecordType, RecordTypeId, Relation};

use crate::record_shape::RecordShape;

/// The segment below which a collection has further pages.
const PAGES_SEGMENT: &str = "-";

pub struct Collection {
    pub record: RecordTypeId,
    /// With the slash: `/users`.
    pub path: String,
    /// All fields with a column: a record in a list.
    pub stored_shape: Arc<RecordShape>,
    /// The same with the ids of linked records: a record by itself.
    pub full_shape: Arc<RecordShape>,
    /// The text list that plain clients see instead of records.
    pub texts: Option<CollectionTexts>,
    /// By segment: `orders` in `/users/1/orders`.
    nested: HashMap<String, NestedCollection>,
    /// A record can be found by unique fields.
    pub can_upsert: bool,
    pub cache_control: Option<HeaderValue>,
    /// The format for clients without a preference: HTML or JSON.
    pub default_format: ResponseFormat,
    /// The kinds of changes that the schema has subscriptions for.
    pub subscribed_changes: Vec<ChangeKind>,
}

pub struct CollectionTexts {
    pub list: TextList,
    /// The shape with its one field.
    pub shape: Arc<RecordShape>,
}

/// The records that one record has a list of.
#[derive(Debug, Clone)]
pub struct NestedCollection {
    pub segment: String,
    /// The list.
    pub field: FieldId,
    /// The record type of its records.
    pub record: RecordTypeId,
    pub relation: NestedRelation,
}

/// The way from a record to the records of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NestedRelation {
    /// This field of theirs refers to it.
    Reference(FieldId),
    /// A link table.
    Link,
}

impl NestedCollection {
    /// The condition that a record is in the list of the record `parent_id` of type `parent`.
    pub fn condition(&self, parent: RecordTypeId, parent_id: &RecordId) -> Condition {
        Condition::LinkedFrom { owner: parent, field: self.field, id: parent_id.clone() }
    }

    pub fn is_link(&self) -> bool {
        self.relation == NestedRelation::Link
    }

    /// The field that refers to the parent, if there is one.
    pub fn reference(&self) -> Option<FieldId> {
        match self.relation {
            NestedRelation::Reference(reference) => Some(reference),
            NestedRelation::Link => None,
        }
    }
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
    /// The groups of its records: `/books/-/summary`.
    Summary,
    Record(&'p str),
    /// The form for an existing record.
    Edit(&'p str),
    /// The confirmation page of a deletion, and the target of its form.
    Delete(&'p str),
    Nested(&'p str, &'p NestedCollection),
    NestedRecord(&'p str, &'p NestedCollection, &'p str),
}

impl Collection {
    pub fn new(engine: &Engine, store_id: &str, record: RecordTypeId, manifest: &Manifest) -> Collection {
        let model = engine.model();
        let owner = model.record(record);
        let settings = manifest.resource(&owner.path);
        // An invalid text list has failed the start already.
        let list = settings.and_then(|settings| settings.text_list(model, owner).ok().flatten());
        let texts = list.map(|list| {
            let shape = Arc::new(RecordShape::new((model, None), store_id, record, &[list.field], &[]));
            CollectionTexts { list, shape }
        });
        let stored_shape = Arc::new(RecordShape::stored_fields(model, store_id, record));
        let shown: Vec<FieldId> = readable_fields(owner).collect();
        let has_links = shown.iter().any(|field| owner.field(*field).kind.is_link());
        let full_shape = match has_links {
            true => Arc::new(RecordShape::new((model, None), store_id, record, &shown, &[])),
            false => stored_shape.clone(),
        };
        let cache = settings.and_then(|settings| settings.cache.as_deref());
        Collection {
            record,
            path: format!("/{}", owner.path),
            stored_shape,
            full_shape,
            texts,
            nested: nested_collections(owner).map(|nested| (nested.segment.clone(), nested)).collect(),
            can_upsert: owner.fields.iter().any(|field| is_unique_field(owner, field)),
            cache_control: cache.and_then(|cache| HeaderValue::from_str(cache).ok()),
            default_format: match manifest.default_format_of(settings) {
                DefaultFormat::Json => ResponseFormat::Json,
                DefaultFormat::Page => ResponseFormat::Html,
            },
            subscribed_changes: subscribed_changes(engine, record),
        }
    }

    /// The formats of its list. A list of texts has its own default.
    pub fn list_formats(&self) -> OfferedFormats {
        match (self.texts.is_some(), self.subscribed_changes.is_empty()) {
            (true, true) => TEXT_COLLECTION_FORMATS,
            (true, false) => LIVE_TEXT_COLLECTION_FORMATS,
            (false, true) => COLLECTION_FORMATS.with_default(self.default_format),
            (false, false) => LIVE_COLLECTION_FORMATS.with_default(self.default_format),
        }
    }

    /// The formats of lists below one of its records.
    pub fn nested_list_formats(&self) -> OfferedFormats {
        COLLECTION_FORMATS.with_default(self.default_format)
    }

    pub fn record_formats(&self) -> OfferedFormats {
        RECORD_FORMATS.with_default(self.default_format)
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
            // No record has this id.
            (Some("summary"), None, _) if id == PAGES_SEGMENT => Some(SubPath::Summary),
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
            SubPath::Summary => self.summary_path(),
            SubPath::Record(_) => format!("{path}/{{id}}"),
            SubPath::Edit(_) => format!("{path}/{{id}}/edit"),
            SubPath::Delete(_) => format!("{path}/{{id}}/delete"),
            SubPath::Nested(_, nested) => format!("{path}/{{id}}/{}", nested.segment),
            SubPath::NestedRecord(_, nested, _) => format!("{path}/{{id}}/{}/{{id}}", nested.segment),
        }
    }

    pub fn allowed_methods(&self, sub_path: SubPath<'_>) -> &'static str {
        match sub_path {
            SubPath::List if self.can_upsert => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            SubPath::List => "GET, HEAD, POST, PATCH, DELETE, OPTIONS",
            SubPath::Record(_) => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
            SubPath::Delete(_) => "GET, HEAD, POST, OPTIONS",
            SubPath::Nested(_, nested) if nested.is_link() => "GET, HEAD, POST, OPTIONS",
            SubPath::NestedRecord(_, nested, _) if nested.is_link() => "GET, HEAD, DELETE, OPTIONS",
            SubPath::New
            | SubPath::Summary
            | SubPath::Edit(_)
            | SubPath::Nested(..)
            | SubPath::NestedRecord(..) => "GET, HEAD, OPTIONS",
        }
    }

    /// All paths with their methods.
    pub fn routes(&self) -> Vec<ServedRoute> {
        let id = "{id}";
        let own = [
            SubPath::List,
            SubPath::New,
            SubPath::Summary,
            SubPath::Record(id),
            SubPath::Edit(id),
            SubPath::Delete(id),
        ];
        let mut nested: Vec<&NestedCollection> = self.nested.values().collect();
        nested.sort_unstable_by_key(|nested| nested.field);
        let below = nested
            .into_iter()
            .flat_map(|nested| [SubPath::Nested(id, nested), SubPath::NestedRecord(id, nested, id)]);
        own.into_iter()
            .chain(below)
            .map(|path| ServedRoute::new(self.route_pattern(path), self.allowed_methods(path)))
            .collect()
    }

    pub fn summary_path(&self) -> String {
        format!("{}/{PAGES_SEGMENT}/summary", self.path)
    }
}

/// The fields that a record shows by itself: those with a column, and links.
pub fn readable_fields(record: &RecordType) -> impl Iterator<Item = FieldId> {
    let fields = record.fields.iter().enumerate();
    fields
        .filter(|(_, field)| field.is_stored() || field.kind.is_link())
        .map(|(position, _)| FieldId(position))
}

fn subscribed_changes(engine: &Engine, record: RecordTypeId) -> Vec<ChangeKind> {
    let changes = binding::subscribed_changes(engine.bindings());
    changes.into_iter().filter(|(owner, _)| *owner == record).map(|(_, kind)| kind).collect()
}

/// The lists below each record of a type, in the order of its fields.
pub fn nested_collections(record: &RecordType) -> impl Iterator<Item = NestedCollection> {
    record.fields.iter().enumerate().filter_map(|(position, field)| {
        let (record, relation) = match field.kind.relation()? {
            Relation::Inverse(inverse) => (inverse.target, NestedRelation::Reference(inverse.field)),
            Relation::Link(link) => (link.target, NestedRelation::Link),
            Relation::Reference(_) => return None,
        };
        Some(NestedCollection {
            segment: names::path_segment(&field.name),
            field: FieldId(position),
            record,
            relation,
        })
    })
}
