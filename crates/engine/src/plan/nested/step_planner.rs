//! Puts the records of a nested write into steps. A step comes after those whose ids it needs; equal steps of a level
//! are one, and so are the new records of a list.

use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, Model, RecordId, RecordTypeId, Relation, StoredValue, Value};

use crate::operation::{MissingFields, RecordInput, RelatedInput};
use crate::plan::many_records::check_record_count;
use crate::plan::nested::input_path::{InputPath, joined, under_path};
use crate::plan::nested::list_place::ListPlace;
use crate::plan::nested::steps::{
    NestedStep, RecordKey, RecordOwner, RowValues, StepAction, StepItem, version_checks,
};
use crate::plan::plan_context::PlanContext;
use crate::plan::write_planner::{PlannedValues, WritePlanner};
use crate::plan::write_refusal::WriteRefusal;

pub(super) struct StepPlanner<'a> {
    planning: PlanContext<'a>,
    model: &'a Model,
    new_ids: Vec<Option<RecordId>>,
    /// Each with its level and its rank among the steps of a level.
    steps: Vec<(usize, StepRank, NestedStep)>,
    record_count: usize,
    violations: Vec<Violation>,
    refusal: WriteRefusal,
}

/// Values that others give up are free for those that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StepRank {
    CheckVersion,
    Delete,
    Unlink,
    Change,
    Insert,
    Link,
}

/// A record that the write reached, and the level of the step that writes it.
#[derive(Clone)]
struct PlacedRecord {
    record: RecordTypeId,
    key: RecordKey,
    level: usize,
    is_new: bool,
}

impl<'a> StepPlanner<'a> {
    pub fn new(planning: PlanContext<'a>) -> Self {
        StepPlanner {
            planning,
            model: planning.model,
            new_ids: Vec::new(),
            steps: Vec::new(),
            record_count: 0,
            violations: Vec::new(),
            refusal: WriteRefusal::default(),
        }
    }

    /// The ids of the new records that are known, and the steps in order.
    pub fn finish(mut self) -> Result<(Vec<Option<RecordId>>, Vec<NestedStep>)> {
        self.refusal.check()?;
        if !self.violations.is_empty() {
            self.violations.truncate(coerce::MAX_VIOLATIONS);
            return Err(Error::Invalid(self.violations));
        }
        check_record_count(self.record_count, self.planning.limits)?;
        self.steps.sort_by_key(|(level, rank, _)| (*level, *rank));
        let mut steps: Vec<(usize, NestedStep)> = Vec::new();
        for (level, _, step) in self.steps {
            let of_level = steps.iter_mut().rev().take_while(|(known, _)| *known == level);
            match { of_level }.find(|(_, known)| known.is_same(&step)) {
                Some((_, known)) => known.absorb(step),
                None => steps.push((level, step)),
            }
        }
        Ok((self.new_ids, steps.into_iter().map(|(_, step)| step).collect()))
    }

    /// Adds the records that the write begins with, each with its path; returns their numbers.
    pub fn add_roots(&mut self, record: RecordTypeId, inputs: Vec<(InputPath, RecordInput)>) -> Vec<usize> {
        let place = ListPlace::new(self.model, record, inputs.iter().map(|(_, input)| input), 0);
        let add = |(path, input)| {
            let number = self.new_ids.len();
            self.add_new(record, input, path, None, place);
            number
        };
        inputs.into_iter().map(add).collect()
    }

    pub fn add_changed_root(
        &mut self,
        record: RecordTypeId,
        id: &RecordId,
        input: RecordInput,
        missing_fields: MissingFields,
    ) {
        self.add_changed(record, id, input, missing_fields, &Vec::new(), None, 0);
    }

    fn is_full(&self) -> bool {
        self.violations.len() >= coerce::MAX_VIOLATIONS
            || self.record_count > self.planning.limits.bulk as usize
    }

    /// Adds a new record, which refers to its owner if there is one.
    fn add_new(
        &mut self,
        record: RecordTypeId,
        input: RecordInput,
        path: InputPath,
        owner: Option<(FieldId, RecordKey)>,
        place: ListPlace,
    ) -> PlacedRecord {
        let ListPlace { min_level, own_level } = place;
        let number = self.new_ids.len();
        self.new_ids.push(None);
        self.record_count += 1;
        let RecordInput { id, fields, filled_fields, related } = input;
        let (references, lists) = self.split_related(record, related);
        let mut level = own_level;
        let mut keys: Vec<(FieldId, RecordKey)> = owner.into_iter().collect();
        for reference in references {
            let placed = self.add_reference(record, reference, &path, min_level);
            level = level.max(placed.1.level + 1);
            keys.push((placed.0, placed.1.key));
        }
        let supplied = keys.iter().map(|(field, _)| *field).chain(self.supplied_links(record, &lists));
        let planner = WritePlanner::new(self.planning, record).with_supplied(supplied.collect());
        let planned = planner.plan_create(id, fields, &filled_fields);
        let PlannedValues { id, values, links } = self.accept(&path, planned);
        let values = RowValues::new(&self.new_ids, values, keys);
        let action = StepAction::Insert {
            fields: values.values.iter().map(|(field, _)| *field).collect(),
            has_id: id.is_some(),
        };
        self.new_ids[number] = id;
        let key = RecordKey::New(number);
        let item = StepItem { path: path.clone(), key: Some(key.clone()), other: None, values };
        self.push(level, StepRank::Insert, record, action, vec![item]);
        let placed = PlacedRecord { record, key, level, is_new: true };
        self.add_links(&placed, links, &path);
        self.add_lists(&placed, lists, &path, min_level);
        placed
    }

    /// Adds a change of a record, which must belong to its owner if there is one.
    #[allow(clippy::too_many_arguments, reason = "each is another property of the change")]
    fn add_changed(
        &mut self,
        record: RecordTypeId,
        id: &RecordId,
        input: RecordInput,
        missing_fields: MissingFields,
        path: &InputPath,
        owner: Option<RecordOwner>,
        min_level: usize,
    ) {
        self.record_count += 1;
        let RecordInput { fields, filled_fields, related, .. } = input;
        let (references, lists) = self.split_related(record, related);
        let (mut level, mut keys) = (min_level, Vec::new());
        for reference in references {
            let (field, placed) = self.add_reference(record, reference, path, min_level);
            level = level.max(placed.level + 1);
            keys.push((field, placed.key));
        }
        let supplied: Vec<FieldId> =
            keys.iter().map(|(field, _)| *field).chain(self.supplied_links(record, &lists)).collect();
        let is_supplied = !supplied.is_empty();
        let planner = WritePlanner::new(self.planning, record).with_supplied(supplied);
        let planned = planner.plan_update(fields, &filled_fields, missing_fields);
        let PlannedValues { values, links, .. } = self.accept(path, planned);
        let is_changed = is_supplied || !values.is_empty() || !links.is_empty();
        let key = RecordKey::Known(id.clone());
        let item = StepItem { path: path.clone(), key: Some(key.clone()), ..StepItem::default() };
        let action = match is_changed {
            true => StepAction::Change { values: RowValues::new(&self.new_ids, values, keys), owner },
            false => StepAction::Check { owner, expected_version: None },
        };
        self.push(level, StepRank::Change, record, action, vec![item]);
        let placed = PlacedRecord { record, key, level, is_new: false };
        for (field, ids) in &links {
            let action = StepAction::UnlinkOthers { field: *field, kept: ids.clone() };
            self.push(level, StepRank::Unlink, record, action, vec![placed.item(path.clone())]);
        }
        self.add_links(&placed, links, path);
        self.add_lists(&placed, lists, path, min_level);
    }

    /// The references and the lists among relations.
    fn split_related(
        &self,
        record: RecordTypeId,
        related: Vec<RelatedInput>,
    ) -> (Vec<RelatedInput>, Vec<RelatedInput>) {
        let owner = self.model.record(record);
        related.into_iter().partition(|related| owner.field(related.relation).kind.is_reference())
    }

    /// The links among lists, which change their record.
    fn supplied_links(&self, record: RecordTypeId, lists: &[RelatedInput]) -> Vec<FieldId> {
        let owner = self.model.record(record);
        let links = lists.iter().map(|list| list.relation);
        links.filter(|relation| owner.field(*relation).kind.is_link()).collect()
    }

    /// Creates the record that a reference leads to.
    fn add_reference(
        &mut self,
        record: RecordTypeId,
        mut reference: RelatedInput,
        path: &InputPath,
        min_level: usize,
    ) -> (FieldId, PlacedRecord) {
        let field = self.model.record(record).field(reference.relation);
        let target = field.kind.relation().map_or(record, Relation::target);
        let input = reference.create.pop().unwrap_or_default();
        let path = joined(path, &[PathSegment::Field(field.name.clone())]);
        let place = ListPlace::new(self.model, target, std::iter::once(&input), min_level);
        (reference.relation, self.add_new(target, input, path, None, place))
    }

    /// Adds the links that are given as ids.
    fn add_links(&mut self, owner: &PlacedRecord, links: Vec<(FieldId, Vec<RecordId>)>, path: &InputPath) {
        for (field, ids) in links {
            let name = &self.model.record(owner.record).field(field).input_name;
            let path = joined(path, &[PathSegment::Field(name.clone())]);
            self.link_ids(owner, field, ids, &path);
        }
    }

    fn link_ids(&mut self, owner: &PlacedRecord, field: FieldId, ids: Vec<RecordId>, path: &InputPath) {
        self.record_count += ids.len();
        let items = ids.into_iter().enumerate().map(|(index, id)| {
            let path = joined(path, &[PathSegment::Index(index)]);
            StepItem { other: Some(RecordKey::Known(id)), ..owner.item(path) }
        });
        let items = items.collect();
        self.push(owner.level + 1, StepRank::Link, owner.record, StepAction::Link(field), items);
    }

    fn add_lists(
        &mut self,
        owner: &PlacedRecord,
        lists: Vec<RelatedInput>,
        path: &InputPath,
        min_level: usize,
    ) {
        let mut seen: Vec<FieldId> = Vec::new();
        for list in lists {
            let field = self.model.record(owner.record).field(list.relation);
            let path = joined(path, &[PathSegment::Field(field.name.clone())]);
            if seen.contains(&list.relation) {
                let message = format!("`{}` is given more than once", field.name);
                self.violations.push(Violation { path, code: "TWICE", message });
                continue;
            }
            seen.push(list.relation);
            match &field.kind.relation() {
                Some(Relation::Inverse(inverse)) => {
                    self.add_inverse(owner, list, (inverse.target, inverse.field), &path);
                }
                Some(Relation::Link(link)) => self.add_linked(owner, list, link.target, &path, min_level),
                Some(Relation::Reference(_)) | None => {}
            }
        }
    }

    /// What is done with the records that refer to the owner.
    fn add_inverse(
        &mut self,
        owner: &PlacedRecord,
        list: RelatedInput,
        (target, reference): (RecordTypeId, FieldId),
        path: &InputPath,
    ) {
        let RelatedInput { create, update, delete, connect, disconnect, set, expected_versions, .. } = list;
        let belongs = || RecordOwner::ByReference { field: reference, key: owner.key.clone() };
        let next = owner.level + 1;
        self.check_versions(target, expected_versions, &belongs(), owner.level, path);
        self.add_deletions(target, delete, &belongs(), owner.level, path);
        if !disconnect.is_empty() && self.may_be_released(target, reference, path, "disconnect") {
            let values = self.released_values(target, reference);
            let action = StepAction::Change { values, owner: Some(belongs()) };
            let items = self.id_items(disconnect, path, "disconnect");
            self.push(owner.level, StepRank::Unlink, target, action, items);
        }
        let kept = set.clone().unwrap_or_default();
        if set.is_some() && !owner.is_new && self.may_be_released(target, reference, path, "set") {
            let values = self.released_values(target, reference);
            let action = StepAction::ChangeOthers { values, owner: belongs(), kept: kept.clone() };
            self.push(owner.level, StepRank::Unlink, target, action, vec![StepItem::default()]);
        }
        let given = [("set", kept), ("connect", connect)].into_iter().filter(|(_, ids)| !ids.is_empty());
        for (member, ids) in given {
            let items = self.id_items(ids, path, member);
            let values = self.update_timestamps(target, reference);
            let values = RowValues::new(&self.new_ids, values, vec![(reference, owner.key.clone())]);
            let action = StepAction::Change { values, owner: None };
            self.push(next, StepRank::Change, target, action, items);
        }
        self.add_updates(target, update, &belongs(), path, owner.level);
        let place = ListPlace::new(self.model, target, create.iter(), next);
        for (index, input) in create.into_iter().enumerate() {
            if self.is_full() {
                break;
            }
            let path = joined(path, &[PathSegment::Index(index)]);
            self.add_new(target, input, path, Some((reference, owner.key.clone())), place);
        }
    }

    /// What is done with the records on the other side of a link.
    fn add_linked(
        &mut self,
        owner: &PlacedRecord,
        list: RelatedInput,
        target: RecordTypeId,
        path: &InputPath,
        min_level: usize,
    ) {
        let RelatedInput { relation, create, update, delete, connect, disconnect, set, expected_versions } =
            list;
        let belongs =
            || RecordOwner::ByLink { record: owner.record, field: relation, key: owner.key.clone() };
        self.check_versions(target, expected_versions, &belongs(), owner.level, path);
        self.add_deletions(target, delete, &belongs(), owner.level, path);
        let items: Vec<StepItem> = { self.id_items(disconnect, path, "disconnect") }
            .into_iter()
            .map(|item| StepItem { other: item.key, ..owner.item(item.path) })
            .collect();
        self.push(owner.level, StepRank::Unlink, owner.record, StepAction::Unlink(relation), items);
        if let Some(kept) = set {
            if !owner.is_new {
                let action = StepAction::UnlinkOthers { field: relation, kept: kept.clone() };
                self.push(
                    owner.level,
                    StepRank::Unlink,
                    owner.record,
                    action,
                    vec![owner.item(path.clone())],
                );
            }
            self.link_ids(owner, relation, kept, &joined(path, &[PathSegment::Field("set".to_owned())]));
        }
        self.link_ids(owner, relation, connect, &joined(path, &[PathSegment::Field("connect".to_owned())]));
        self.add_updates(target, update, &belongs(), path, owner.level);
        let place = ListPlace::new(self.model, target, create.iter(), min_level);
        for (index, input) in create.into_iter().enumerate() {
            if self.is_full() {
                break;
            }
            let path = joined(path, &[PathSegment::Index(index)]);
            let placed = self.add_new(target, input, path.clone(), None, place);
            let item = StepItem { other: Some(placed.key), ..owner.item(path) };
            let level = owner.level.max(placed.level) + 1;
            self.push(level, StepRank::Link, owner.record, StepAction::Link(relation), vec![item]);
        }
    }

    fn check_versions(
        &mut self,
        target: RecordTypeId,
        versions: Vec<(RecordId, i64)>,
        owner: &RecordOwner,
        level: usize,
        path: &InputPath,
    ) {
        for (action, items) in version_checks(versions, owner, path) {
            self.push(level, StepRank::CheckVersion, target, action, items);
        }
    }

    fn add_deletions(
        &mut self,
        target: RecordTypeId,
        ids: Vec<RecordId>,
        owner: &RecordOwner,
        level: usize,
        path: &InputPath,
    ) {
        let items = self.id_items(ids, path, "delete");
        self.push(level, StepRank::Delete, target, StepAction::Delete { owner: owner.clone() }, items);
    }

    fn add_updates(
        &mut self,
        target: RecordTypeId,
        updates: Vec<(RecordId, RecordInput)>,
        owner: &RecordOwner,
        path: &InputPath,
        level: usize,
    ) {
        for (index, (id, input)) in updates.into_iter().enumerate() {
            if self.is_full() {
                break;
            }
            let place = [
                PathSegment::Field("update".to_owned()),
                PathSegment::Index(index),
                PathSegment::Field("input".to_owned()),
            ];
            let path = joined(path, &place);
            let owner = Some(owner.clone());
            self.add_changed(target, &id, input, MissingFields::Keep, &path, owner, level);
        }
    }

    /// The items of a list of ids, each id once.
    fn id_items(&mut self, ids: Vec<RecordId>, path: &InputPath, member: &str) -> Vec<StepItem> {
        self.record_count += ids.len();
        let mut seen = std::collections::HashSet::new();
        let mut items = Vec::with_capacity(ids.len());
        for (index, id) in ids.into_iter().enumerate() {
            if seen.insert(id.clone()) {
                let place = [PathSegment::Field(member.to_owned()), PathSegment::Index(index)];
                let key = Some(RecordKey::Known(id));
                items.push(StepItem { path: joined(path, &place), key, ..StepItem::default() });
            }
        }
        items
    }

    /// False, with a violation, if records cannot be without their reference.
    fn may_be_released(
        &mut self,
        target: RecordTypeId,
        reference: FieldId,
        path: &InputPath,
        member: &str,
    ) -> bool {
        let target = self.model.record(target);
        let field = target.field(reference);
        if !field.required {
            return true;
        }
        let label = target.label().to_lowercase();
        let message = format!(
            "`{}` of a {label} is required, so that `{member}` cannot remove it; use `delete`",
            field.name
        );
        let path = joined(path, &[PathSegment::Field(member.to_owned())]);
        self.violations.push(Violation { path, code: "REQUIRED", message });
        false
    }

    /// The values of a record that no longer refers to its owner.
    fn released_values(&mut self, target: RecordTypeId, reference: FieldId) -> RowValues {
        let mut values = self.update_timestamps(target, reference);
        values.push((reference, StoredValue::Null));
        RowValues::new(&self.new_ids, values, Vec::new())
    }

    /// The values that a record gets whenever it is changed.
    fn update_timestamps(&mut self, target: RecordTypeId, reference: FieldId) -> Vec<(FieldId, StoredValue)> {
        let planner = WritePlanner::new(self.planning, target).with_supplied(vec![reference]);
        let planned = planner.plan_update(Vec::<(FieldId, Value)>::new(), &[], MissingFields::Keep);
        self.accept(&Vec::new(), planned).values
    }

    /// The planned values; violations are kept with their path.
    fn accept(&mut self, path: &InputPath, planned: Result<PlannedValues>) -> PlannedValues {
        match planned {
            Ok(planned) => planned,
            Err(error) => {
                if let Some(error) = self.refusal.take(error, path) {
                    self.violations.extend(under_path(path, error.violations().to_vec()));
                }
                PlannedValues::default()
            }
        }
    }

    fn push(
        &mut self,
        level: usize,
        rank: StepRank,
        record: RecordTypeId,
        action: StepAction,
        items: Vec<StepItem>,
    ) {
        if !items.is_empty() {
            self.steps.push((level, rank, NestedStep { record, action, items }));
        }
    }
}

impl PlacedRecord {
    fn item(&self, path: InputPath) -> StepItem {
        StepItem { path, key: Some(self.key.clone()), ..StepItem::default() }
    }
}
