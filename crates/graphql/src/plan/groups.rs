//! Groups of records in a response: the measures that a selection asks for, and each group as a value.

use std::sync::Arc;

use apollo_compiler::ast::Type;
use apollo_compiler::executable::Field;

use trefoil_engine::{AggregateQuery, GroupKey, GroupMeasure, MeasureFunction, Row, arguments, global_id};
use trefoil_model::values::json_text;
use trefoil_model::{Model, RecordId, RecordType, RecordTypeId, Relation, RelationSummary, Value};

use crate::plan::collect::FieldGroup;
use crate::plan::planner::OperationPlanner;
use crate::plan::shape::{
    ChildContent, FieldSource, GroupKeyType, GroupKeyTypes, GroupsShape, MeasureField, ObjectShape,
    OutputShape, RecordReads, RelatedRead, ValueSlot,
};

pub fn group_key_types(model: &Model, record: RecordTypeId, query: &AggregateQuery) -> GroupKeyTypes {
    let key_type = |key: &GroupKey| GroupKeyType {
        text: key.text.clone(),
        value_type: key.value_type(model, record),
        global_type: key
            .identified_type(model, record)
            .filter(|ty| ty.has_global_ids)
            .map(|ty| ty.name.clone()),
    };
    query.group_keys.iter().map(key_type).collect()
}

impl GroupsShape {
    /// `slot` is that of one group of the records.
    pub fn new(model: &Model, record: RecordTypeId, slot: ValueSlot) -> GroupsShape {
        let mut parts = Vec::new();
        if let OutputShape::Object(group) = &slot.output {
            collect_parts(model, record, group, &mut parts);
        }
        GroupsShape { slot, parts }
    }

    /// The measures that are selected, each once.
    pub fn measures(&self) -> Vec<GroupMeasure> {
        self.parts.iter().map(|part| part.measure.clone()).collect()
    }

    /// A group as a value with the names of the schema.
    pub fn group_value(&self, keys: &GroupKeyTypes, row: &dyn Row) -> Value {
        let key = keys.iter().enumerate().map(|(position, key)| {
            let value = match (&key.global_type, RecordId::from_cell(row.cell(position))) {
                (Some(type_name), Some(id)) => Value::String(global_id::encode(type_name, &id.to_string())),
                _ => json_text::cell_to_value(&key.value_type, row.cell(position)),
            };
            (key.text.clone(), value)
        });
        let mut members = vec![("key".to_owned(), Value::Object(key.collect()))];
        for (position, part) in self.parts.iter().enumerate() {
            let value = json_text::cell_to_value(&part.value_type, row.cell(keys.len() + position));
            let Some(field) = &part.field else {
                members.push((part.part.clone(), value));
                continue;
            };
            let known = members.iter_mut().find(|(name, _)| *name == part.part);
            match known {
                Some((_, Value::Object(fields))) => fields.push((field.clone(), value)),
                Some(_) | None => {
                    members.push((part.part.clone(), Value::Object(vec![(field.clone(), value)])));
                }
            }
        }
        // A part of which only `__typename` is selected.
        for (name, _) in MeasureFunction::NAMES {
            if !members.iter().any(|(known, _)| known == name) {
                members.push((name.to_owned(), Value::Object(Vec::new())));
            }
        }
        Value::Object(members)
    }

    /// The groups of the related records of a row.
    pub fn related_value(&self, keys: &GroupKeyTypes, row: &dyn Row, child: usize) -> Value {
        let mut groups = Vec::new();
        row.each_child(child, &mut |group| groups.push(self.group_value(keys, group)));
        Value::List(groups)
    }
}

/// The number of related records of a row, in the only group of a child.
pub fn related_count(row: &dyn Row, child: usize) -> Value {
    let mut count = Value::Int(0);
    row.each_child(child, &mut |group| count = group.cell(0).to_i64().map_or(Value::Null, Value::Int));
    count
}

fn collect_parts(
    model: &Model,
    record: RecordTypeId,
    group: &Arc<ObjectShape>,
    parts: &mut Vec<MeasureField>,
) {
    let mut add = |part: &str, field: Option<&str>, measure: GroupMeasure| {
        let is_known =
            parts.iter().any(|known: &MeasureField| known.part == part && known.field.as_deref() == field);
        if !is_known {
            let value_type = measure.value_type(model, record);
            let (part, field) = (part.to_owned(), field.map(str::to_owned));
            parts.push(MeasureField { part, field, measure, value_type });
        }
    };
    for field in &group.fields {
        let name = field.label.name.as_str();
        if name == "count" {
            add(name, None, GroupMeasure::Count);
        }
        let Some(function) = MeasureFunction::from_name(name) else { continue };
        let OutputShape::Object(values) = &field.slot.output else { continue };
        for value in &values.fields {
            let inner = value.label.name.as_str();
            if let Some(id) = model.record(record).find_input_field(inner) {
                add(name, Some(inner), GroupMeasure::OfField(function, id.into()));
            }
        }
    }
}

impl<'a> OperationPlanner<'a> {
    /// A field that counts or groups related records.
    pub fn plan_summary(
        &mut self,
        owner: &RecordType,
        summary: RelationSummary,
        first: &'a Field,
        ty: &Type,
        group: &FieldGroup<'a>,
        reads: &mut RecordReads,
    ) -> (ValueSlot, FieldSource) {
        let (RelationSummary::Count(field) | RelationSummary::Groups(field)) = summary;
        let slot = self.plan_slot(ty, group);
        let Some(target) = owner.field(field).kind.relation().map(Relation::target) else {
            return (
                slot,
                FieldSource::Missing(format!("no resolver for field `{}.{}`", owner.name, first.name)),
            );
        };
        let model = self.engine.model().clone();
        let groups = match summary {
            RelationSummary::Count(_) => None,
            RelationSummary::Groups(_) => {
                let item = self.plan_slot(ty.item_type(), group);
                Some(Arc::new(GroupsShape::new(&model, target, item)))
            }
        };
        let measures = groups.as_ref().map_or_else(|| vec![GroupMeasure::Count], |groups| groups.measures());
        let arguments = self.read_arguments(first);
        self.single_use |= arguments.uses_variables();
        let query = arguments.values_by_name(self.variables).and_then(|values| {
            arguments::aggregate_from_arguments(&model, target, self.engine.limits(), values, measures)
        });
        let query = match query {
            Ok(query) => query,
            Err(error) => return (slot, FieldSource::Invalid(Arc::new(error))),
        };
        let keys = group_key_types(&model, target, &query);
        let position = reads.add_child(RelatedRead { field, content: ChildContent::Groups(query) });
        let source = match groups {
            None => FieldSource::RelatedCount(position),
            Some(groups) => FieldSource::RelatedGroups { position, groups, keys },
        };
        (slot, source)
    }
}
