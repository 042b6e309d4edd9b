//! The parts of writes to many records: the records that match, and the values of each new one.

use std::collections::BTreeSet;

use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, Model, RecordTypeId, Value};

use crate::operation::{Condition, CountMode, FilledField};
use crate::plan::listing::PlannedListing;
use crate::plan::plan_context::PlanContext;
use crate::plan::plan_limits::PlanLimits;
use crate::plan::predicate::plan_predicates;
use crate::plan::write_planner::{PlannedValues, WritePlanner};

/// The records that meet all conditions, counted up to the limit.
pub(super) fn plan_matches(
    model: &Model,
    record: RecordTypeId,
    conditions: &[Condition],
    limits: &PlanLimits,
) -> Result<PlannedListing> {
    let predicates = plan_predicates(model, model.record(record), conditions)?;
    let count = CountMode::UpTo(limits.bulk);
    Ok(PlannedListing { predicates, count, ..PlannedListing::default() })
}

/// Refuses more records than one operation may write.
pub fn check_record_count(count: usize, limits: &PlanLimits) -> Result<()> {
    let max = limits.bulk;
    if count <= max as usize {
        return Ok(());
    }
    Err(Error::Limit(format!(
        "{count} records are too many for one operation: limits.bulk allows at most {max}; split them"
    )))
}

/// Refuses more matching records than one operation may change.
pub fn check_match_count(count: u64, max: u32) -> Result<u64> {
    if count <= u64::from(max) {
        return Ok(count);
    }
    Err(Error::Limit(format!(
        "the condition matches more records than limits.bulk allows one operation to change, which is {max}; \
         narrow it and repeat"
    )))
}

/// The values of new records. All have the same fields in the same order, so that one statement does for all.
pub(super) fn plan_items(
    planning: PlanContext<'_>,
    record: RecordTypeId,
    items: Vec<Vec<(FieldId, Value)>>,
    filled_fields: &[FilledField],
) -> Result<Vec<PlannedValues>> {
    check_record_count(items.len(), planning.limits)?;
    let mut planned = Vec::with_capacity(items.len());
    let mut violations: Vec<Violation> = Vec::new();
    for (index, fields) in items.into_iter().enumerate() {
        let planner = WritePlanner::new(planning, record);
        match planner.plan_create(None, fields, filled_fields) {
            Ok(parts) => planned.push(parts),
            Err(error @ Error::Invalid(_)) => {
                violations.extend(error.of_item(index).violations().iter().cloned());
            }
            Err(error) => return Err(error.of_item(index)),
        }
        if violations.len() >= coerce::MAX_VIOLATIONS {
            break;
        }
    }
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let link_fields: BTreeSet<FieldId> =
        planned.iter().flat_map(|parts| parts.links.iter().map(|(field, _)| *field)).collect();
    for PlannedValues { values, links, .. } in &mut planned {
        values.sort_by_key(|(field, _)| *field);
        for field in &link_fields {
            if !links.iter().any(|(known, _)| known == field) {
                links.push((*field, Vec::new()));
            }
        }
        links.sort_by_key(|(field, _)| *field);
    }
    Ok(planned)
}

/// The record that has the given values in the fields `by`.
pub(super) fn plan_unique_match(
    model: &Model,
    record: RecordTypeId,
    by: &[FieldId],
    fields: &[(FieldId, Value)],
    limits: &PlanLimits,
) -> Result<PlannedListing> {
    let owner = model.record(record);
    let mut conditions = Vec::new();
    let mut violations = Vec::new();
    for id in by {
        let given = fields.iter().find(|(field, value)| field == id && !value.is_null());
        match given {
            Some((field, value)) => {
                conditions.push(Condition::equals(*field, value.clone()));
            }
            None => {
                let name = &owner.field(*id).input_name;
                let message = format!("`{name}` is needed to find the record");
                violations.push(Violation::new(name, "REQUIRED", message));
            }
        }
    }
    if violations.is_empty() {
        plan_matches(model, record, &conditions, limits)
    } else {
        Err(Error::Invalid(violations))
    }
}
