//! A root field whose operation the store runs.

use std::hash::{DefaultHasher, Hash, Hasher};

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{ListSlice, Listing, NestedWrite, Operation};
use trefoil_model::error::Result;
use trefoil_model::{Model, RecordId};

use crate::execute::payload::ChangeSummary;
use crate::plan::groups::group_key_types;
use crate::plan::shape::GroupKeyTypes;

/// An operation that was passed to the store, with the data needed to write its rows.
pub struct PendingRoot {
    /// Index of its root field.
    pub root_position: usize,
    /// The record of an update or a deletion.
    pub record_id: Option<RecordId>,
    pub cursors: Option<CursorFormat>,
    /// The part of the list that is read.
    pub slice: ListSlice,
    /// Tells the list and the page from others, if an id of the page is wanted.
    pub page_id: Option<String>,
    /// What records are grouped by.
    pub group_keys: GroupKeyTypes,
    /// The number of its record type, for a root field over several.
    pub member: usize,
    /// A text of the request that its payload repeats.
    pub client_mutation_id: Option<String>,
    /// The change, for a subscription that tells about it.
    pub change: Option<ChangeSummary>,
    /// It failed before the store started, so `reset` keeps its error.
    pub failed_early: bool,
}

impl PendingRoot {
    pub fn new(model: &Model, root: usize, operation: &Result<Operation>) -> PendingRoot {
        let mut pending = PendingRoot {
            root_position: root,
            record_id: None,
            cursors: None,
            slice: ListSlice::All,
            page_id: None,
            group_keys: Vec::new(),
            member: 0,
            client_mutation_id: None,
            change: None,
            failed_early: false,
        };
        match operation {
            Ok(Operation::List { record, listing, .. }) => {
                let format = || CursorFormat::of(model, model.record(*record), &listing.sort_keys);
                pending.cursors = listing.with_cursors.then(format);
                pending.slice = listing.slice.clone();
            }
            Ok(Operation::Aggregate { record, query }) => {
                pending.group_keys = group_key_types(model, *record, query);
            }
            Ok(
                Operation::Update { id, .. }
                | Operation::Delete { id, .. }
                | Operation::Upsert { id: Some(id), .. }
                | Operation::Nested { write: NestedWrite::Update { id, .. }, .. },
            ) => {
                pending.record_id = Some(id.clone());
            }
            Ok(
                Operation::Get { .. }
                | Operation::Create { .. }
                | Operation::CreateMany { .. }
                | Operation::UpdateMany { .. }
                | Operation::Upsert { .. }
                | Operation::DeleteMany { .. }
                | Operation::Nested { .. }
                | Operation::ReadImage { .. }
                | Operation::SeeImages { .. }
                | Operation::PlainList(_),
            )
            | Err(_) => {}
        }
        pending
    }
}

/// A text that differs for other conditions, another order and another page of a list.
pub fn list_page_id(listing: &Listing) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{listing:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
