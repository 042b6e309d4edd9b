//! Plans aggregates: every path checked, every operand coerced.

use std::sync::Arc;

use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{
    ComparisonOp, FieldId, Model, RecordTypeId, Scalar, StoredValue, Value, ValueType, ZoneOffsets,
};

use crate::operation::{
    AggregateQuery, GroupKey, GroupMeasure, GroupOrder, Listing, MeasureFunction, OrderTarget, ReferencePath,
};
use crate::plan::listing::{PlannedListing, plan_listing};
use crate::plan::plan_limits::PlanLimits;
use crate::plan::statement_shape::StatementShape;

/// The most group keys and measures of one aggregate: stores limit the columns of a statement.
pub const MAX_GROUP_KEYS: usize = 10;
const MAX_MEASURES: usize = 200;

/// The most records that are reached through references; SQLite joins at most 64 tables.
const MAX_JOINED: usize = 30;

/// A validated [`AggregateQuery`].
#[derive(Debug, Clone)]
pub struct PlannedAggregate {
    pub record: RecordTypeId,
    /// Its conditions and search.
    pub listing: PlannedListing,
    pub group_keys: Vec<GroupKey>,
    pub measures: Vec<GroupMeasure>,
    pub having: Vec<PlannedHaving>,
    pub order: Vec<GroupOrder>,
    pub first: Option<i64>,
    /// More groups are an error.
    pub max_groups: i64,
    pub time_zone: Arc<ZoneOffsets>,
}

/// A test of a group with its operand, which is never null.
#[derive(Debug, Clone)]
pub struct PlannedHaving {
    pub measure: usize,
    pub op: ComparisonOp,
    pub value: StoredValue,
}

pub(super) fn plan_aggregate(
    model: &Model,
    record: RecordTypeId,
    query: &AggregateQuery,
    limits: &PlanLimits,
) -> Result<PlannedAggregate> {
    let owner = model.record(record);
    check_parts(model, record, query, limits)?;
    let (conditions, search) = (query.conditions.clone(), query.search.clone());
    let listing = plan_listing(model, owner, &Listing { conditions, search, ..Listing::default() })?;
    let having = query.having.iter().map(|condition| {
        let measure = &query.measures[condition.measure];
        let value = having_operand(model, record, measure, &condition.operand)
            .map_err(|message| Error::invalid("having", "TYPE", message))?;
        Ok(PlannedHaving { measure: condition.measure, op: condition.op, value })
    });
    Ok(PlannedAggregate {
        record,
        listing,
        group_keys: query.group_keys.clone(),
        measures: query.measures.clone(),
        having: having.collect::<Result<_>>()?,
        order: query.order.clone(),
        first: query.first,
        max_groups: limits.groups,
        time_zone: limits.time_zone.clone(),
    })
}

/// The chains of references to other records, each after those that begin it.
pub fn joined_references(group_keys: &[GroupKey], measures: &[GroupMeasure]) -> Vec<Vec<FieldId>> {
    let of_measures = measures.iter().filter_map(|measure| match measure {
        GroupMeasure::Count => None,
        GroupMeasure::OfField(_, path) => Some(path),
    });
    let mut chains: Vec<Vec<FieldId>> = Vec::new();
    for path in group_keys.iter().map(|key| &key.path).chain(of_measures) {
        for length in 1..=path.references.len() {
            let chain = &path.references[..length];
            if !chains.iter().any(|known| known == chain) {
                chains.push(chain.to_vec());
            }
        }
    }
    chains
}

fn check_parts(
    model: &Model,
    record: RecordTypeId,
    query: &AggregateQuery,
    limits: &PlanLimits,
) -> Result<()> {
    let (keys, measures, conditions) = (query.group_keys.len(), query.measures.len(), query.having.len());
    if conditions.max(query.order.len()) > limits.conditions {
        return Err(Error::Limit(format!(
            "too many conditions or orders of groups: limits.conditions allows at most {}",
            limits.conditions
        )));
    }
    if keys > MAX_GROUP_KEYS {
        return Err(Error::Limit(format!(
            "records can be grouped by at most {MAX_GROUP_KEYS} values, not {keys}"
        )));
    }
    if measures > MAX_MEASURES {
        return Err(Error::Limit(format!(
            "at most {MAX_MEASURES} values can be computed of a group, not {measures}"
        )));
    }
    let joined = joined_references(&query.group_keys, &query.measures).len();
    if joined > MAX_JOINED {
        return Err(Error::Limit(format!(
            "an aggregate can go through at most {MAX_JOINED} references, not {joined}"
        )));
    }
    let keys = query.group_keys.iter().filter_map(|key| Some(("groupBy", key.misfit(model, record)?)));
    let measures =
        query.measures.iter().filter_map(|measure| Some(("aggregate", measure.misfit(model, record)?)));
    let violations = keys.chain(measures).map(|(name, message)| Violation::new(name, "AGGREGATE", message));
    let violations: Vec<Violation> = violations.collect();
    if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations)) }
}

/// The operand in the form in which the store compares it with the measure.
fn having_operand(
    model: &Model,
    record: RecordTypeId,
    measure: &GroupMeasure,
    operand: &Value,
) -> Result<StoredValue, String> {
    if operand.is_null() {
        return Err("a measure cannot be compared with null".to_owned());
    }
    if let GroupMeasure::OfField(MeasureFunction::Least | MeasureFunction::Greatest, path) = measure {
        let coerced = coerce::coerce_comparable(model, path.target(model, model.record(record)), operand);
        return coerced.map_err(|violations| {
            violations.into_iter().map(|found| found.message).collect::<Vec<_>>().join("; ")
        });
    }
    let scalar = match measure.value_type(model, record) {
        // A count is compared with any integer.
        ValueType::Scalar(Scalar::Int) => Scalar::Long,
        ValueType::Scalar(scalar) => scalar,
        ValueType::Key(_) | ValueType::Enum(_) | ValueType::Embedded(_) | ValueType::List(_) => {
            Scalar::Decimal
        }
    };
    coerce::coerce_plain(scalar, operand).map_err(|message| format!("the operand {message}"))
}

impl PlannedAggregate {
    /// Adds what decides the statement.
    pub fn push_shape(&self, shape: &mut StatementShape) {
        shape.push_number(self.record.0);
        self.listing.push_shape(shape);
        shape.push_number(self.group_keys.len());
        for key in &self.group_keys {
            push_path(shape, &key.path);
            shape.push_number(key.period.map_or(0, |period| 1 + period as usize));
        }
        shape.push_number(self.measures.len());
        for measure in &self.measures {
            match measure {
                GroupMeasure::Count => shape.push_number(0),
                GroupMeasure::OfField(function, path) => {
                    shape.push_number(1 + *function as usize);
                    push_path(shape, path);
                }
            }
        }
        shape.push_number(self.having.len());
        for condition in &self.having {
            shape.push_number(condition.measure);
            shape.push_number(condition.op as usize);
        }
        shape.push_number(self.order.len());
        for GroupOrder { target, descending } in &self.order {
            let (kind, position) = match target {
                OrderTarget::Key(position) => (false, *position),
                OrderTarget::Measure(position) => (true, *position),
            };
            shape.push_flag(kind);
            shape.push_number(position);
            shape.push_flag(*descending);
        }
        shape.push_flag(self.first.is_some());
        shape.push_bytes(self.time_zone.name().as_bytes());
    }

    /// The error if there are more groups than allowed.
    pub fn too_many_groups(&self) -> Error {
        Error::Limit(format!(
            "more than {} groups, but limits.groups allows no more; add conditions, group by fewer values, or ask \
             for the first groups only",
            self.max_groups
        ))
    }
}

fn push_path(shape: &mut StatementShape, path: &ReferencePath) {
    shape.push_fields(path.references.iter().copied());
    let members: Vec<FieldId> =
        std::iter::once(path.value.field).chain(path.value.members.iter().copied()).collect();
    shape.push_fields(members.into_iter());
}
