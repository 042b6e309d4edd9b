//! The steps of a nested write, each of which is one statement if possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use trefoil_model::error::PathSegment;
use trefoil_model::{FieldId, RecordId, RecordTypeId, StoredValue};

use crate::plan::selection::PlannedSelection;

/// A validated nested write. The steps run in order and all of them or none.
#[derive(Debug, Clone)]
pub struct NestedPlan {
    pub record: RecordTypeId,
    pub kind: NestedKind,
    /// The ids of the new records by number; `None` where the store counts it up.
    pub new_ids: Vec<Option<RecordId>>,
    pub steps: Vec<NestedStep>,
    pub selection: Arc<PlannedSelection>,
}

/// The records that a nested write begins with, which are its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NestedKind {
    /// The new record with this number.
    Create(usize),
    CreateMany(Vec<usize>),
    Update {
        id: RecordId,
        expected_version: Option<i64>,
    },
}

/// A record that a step needs the id of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordKey {
    Known(RecordId),
    /// The new record with this number, which an earlier step creates.
    New(usize),
}

/// The same for some records or links of one type.
#[derive(Debug, Clone)]
pub struct NestedStep {
    /// The type of the records or, for links, of those that have the field.
    pub record: RecordTypeId,
    pub action: StepAction,
    pub items: Vec<StepItem>,
}

#[derive(Debug, Clone)]
pub enum StepAction {
    /// Creates records with these fields.
    Insert { fields: Vec<FieldId>, has_id: bool },
    /// Sets the same values in every record. All must exist, and belong to their owner if there is one.
    Change { values: RowValues, owner: Option<RecordOwner> },
    /// The records must exist, belong to their owner if there is one, and be at the version if one is expected.
    Check { owner: Option<RecordOwner>, expected_version: Option<i64> },
    /// The records must belong to their owner.
    Delete { owner: RecordOwner },
    /// Sets the values in the records of an owner, except the kept ones. It has one item without a record.
    ChangeOthers { values: RowValues, owner: RecordOwner, kept: Vec<RecordId> },
    /// Adds links of this field, unless they exist.
    Link(FieldId),
    /// Removes links of this field, which must exist.
    Unlink(FieldId),
    /// Removes the links of a record, except those to the kept ones. It has one item.
    UnlinkOthers { field: FieldId, kept: Vec<RecordId> },
}

/// One record or link of a step.
#[derive(Debug, Clone, Default)]
pub struct StepItem {
    /// Its place in the input.
    pub path: Vec<PathSegment>,
    /// The record. That of a link has the field; a new one is [`RecordKey::New`].
    pub key: Option<RecordKey>,
    /// The record on the other side of a link.
    pub other: Option<RecordKey>,
    /// Those of a new record.
    pub values: RowValues,
}

/// Values by field, of which some are the ids of new records.
#[derive(Debug, Clone, Default)]
pub struct RowValues {
    pub values: Vec<(FieldId, StoredValue)>,
    /// Positions in `values`, with the number of the new record whose id belongs there.
    pub new_keys: Vec<(usize, usize)>,
}

/// The record that others belong to.
#[derive(Debug, Clone)]
pub enum RecordOwner {
    /// Theirs is the reference.
    ByReference { field: FieldId, key: RecordKey },
    /// The owner's type has the link.
    ByLink { record: RecordTypeId, field: FieldId, key: RecordKey },
}

impl RecordOwner {
    pub fn key(&self) -> &RecordKey {
        match self {
            RecordOwner::ByReference { key, .. } | RecordOwner::ByLink { key, .. } => key,
        }
    }
}

impl NestedStep {
    /// True if one statement can do both.
    pub(super) fn is_same(&self, other: &NestedStep) -> bool {
        if self.record != other.record {
            return false;
        }
        match (&self.action, &other.action) {
            (StepAction::Insert { has_id, .. }, StepAction::Insert { has_id: other_has_id, .. }) => {
                has_id == other_has_id
            }
            (StepAction::Link(field), StepAction::Link(other)) => field == other,
            (
                StepAction::Insert { .. }
                | StepAction::Change { .. }
                | StepAction::Check { .. }
                | StepAction::Delete { .. }
                | StepAction::ChangeOthers { .. }
                | StepAction::Link(_)
                | StepAction::Unlink(_)
                | StepAction::UnlinkOthers { .. },
                _,
            ) => false,
        }
    }
}

impl NestedStep {
    /// Adds the items of a step that is the same. What some new records are given and others not is null in these: a
    /// default would be among the values.
    pub(super) fn absorb(&mut self, other: NestedStep) {
        let first = self.items.len();
        self.items.extend(other.items);
        let (StepAction::Insert { fields, .. }, StepAction::Insert { fields: others, .. }) =
            (&mut self.action, &other.action)
        else {
            return;
        };
        if fields == others {
            return;
        }
        let are_longer = others.iter().any(|field| !fields.contains(field));
        fields.extend(others.iter().copied());
        fields.sort_unstable();
        fields.dedup();
        let unpadded = if are_longer { &mut self.items[..] } else { &mut self.items[first..] };
        unpadded.iter_mut().for_each(|item| item.values.pad(fields));
    }
}

impl RowValues {
    /// Adds null for each of these fields that has no value. They are sorted.
    fn pad(&mut self, fields: &[FieldId]) {
        if self.values.len() == fields.len() {
            return;
        }
        let new_keys = self.new_keys.iter().map(|(position, number)| (self.values[*position].0, *number));
        let new_keys: Vec<(FieldId, usize)> = new_keys.collect();
        let mut given = std::mem::take(&mut self.values).into_iter().peekable();
        let value = |field: &FieldId| {
            let value = given.next_if(|(known, _)| known == field);
            value.unwrap_or((*field, StoredValue::Null))
        };
        self.values = fields.iter().map(value).collect();
        let position = |field| fields.iter().position(|known| *known == field);
        self.new_keys =
            new_keys.into_iter().filter_map(|(field, number)| Some((position(field)?, number))).collect();
    }

    /// The values sorted by field, with the ids of other records, as far as they are known.
    pub(super) fn new(
        new_ids: &[Option<RecordId>],
        mut values: Vec<(FieldId, StoredValue)>,
        keys: Vec<(FieldId, RecordKey)>,
    ) -> RowValues {
        let mut new_fields = Vec::new();
        for (field, key) in keys {
            values.push(match key {
                RecordKey::Known(id) => (field, id.into_stored()),
                RecordKey::New(number) => {
                    let known = new_ids[number].clone();
                    if known.is_none() {
                        new_fields.push((field, number));
                    }
                    (field, known.map_or(StoredValue::Null, RecordId::into_stored))
                }
            });
        }
        values.sort_by_key(|(field, _)| *field);
        let position = |field| values.iter().position(|(known, _)| *known == field);
        let new_keys = new_fields.into_iter().filter_map(|(field, number)| Some((position(field)?, number)));
        RowValues { new_keys: new_keys.collect(), values }
    }
}

/// The checks that records of an owner are still at their expected versions: one for each version.
pub(super) fn version_checks(
    versions: Vec<(RecordId, i64)>,
    owner: &RecordOwner,
    path: &[PathSegment],
) -> impl Iterator<Item = (StepAction, Vec<StepItem>)> {
    let mut by_version: BTreeMap<i64, Vec<StepItem>> = BTreeMap::new();
    for (id, version) in versions {
        let item = StepItem { path: path.to_vec(), key: Some(RecordKey::Known(id)), ..StepItem::default() };
        by_version.entry(version).or_default().push(item);
    }
    by_version.into_iter().map(|(version, items)| {
        let action = StepAction::Check { owner: Some(owner.clone()), expected_version: Some(version) };
        (action, items)
    })
}
