//! The parameter `include`: relations whose records are written inside a record.

use trefoil_engine::plan::estimated_length;
use trefoil_engine::{AccessView, PlanLimits};
use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::naming::names::name_suggestion;
use trefoil_model::{Field, FieldId, Model, RecordType, RecordTypeId, Relation};

use crate::record_shape::IncludedRelation;

/// Related records of related records of related records.
const MAX_DEPTH: usize = 3;

/// The relations that the actor never sees, by name.
pub fn hidden_names(
    model: &Model,
    view: &AccessView,
    record: RecordTypeId,
    included: &[IncludedRelation],
) -> Vec<String> {
    let mut names = Vec::new();
    for IncludedRelation { field, nested } in included {
        let owner = model.record(record).field(*field);
        if view.hides_field(record, *field) {
            names.push(owner.name.clone());
        } else if let Some(target) = owner.kind.relation().map(Relation::target) {
            let inner = hidden_names(model, view, target, nested).into_iter();
            names.extend(inner.map(|name| format!("{}.{name}", owner.name)));
        }
    }
    names
}

/// The first type among them of which the actor may read no record.
pub fn closed_target(
    model: &Model,
    view: &AccessView,
    record: RecordTypeId,
    included: &[IncludedRelation],
) -> Option<RecordTypeId> {
    included.iter().find_map(|IncludedRelation { field, nested }| {
        let target = model.record(record).field(*field).kind.relation().map(Relation::target)?;
        match view.verdict(AccessAction::Read, target) {
            AccessVerdict::No => Some(target),
            AccessVerdict::Some | AccessVerdict::Yes => closed_target(model, view, target, nested),
        }
    })
}

/// Adds the relations of a path such as `lines.product`.
pub fn add_path(
    model: &Model,
    record: &RecordType,
    path: &str,
    included: &mut Vec<IncludedRelation>,
) -> Result<(), Violation> {
    if path.split('.').count() > MAX_DEPTH {
        let message = format!("`{path}` is too deep: at most {MAX_DEPTH} relations are followed");
        return Err(Violation::new("include", "LIMIT_EXCEEDED", message));
    }
    let (mut owner, mut level) = (record, included);
    for name in path.split('.') {
        let found = owner.fields.iter().position(|field| field.name == name);
        let relation = found.and_then(|position| owner.fields[position].kind.relation());
        let (Some(position), Some(relation)) = (found, relation) else {
            let is_offered =
                |field: &&Field| field.kind.relation().is_some() && model.may_offer(record, owner, field);
            let relations = owner.fields.iter().filter(is_offered);
            let hint = name_suggestion(name, relations.map(|field| field.name.as_str()));
            let message = format!("{} has no related records `{name}`{hint}", owner.name);
            return Err(Violation::new("include", "UNKNOWN_FIELD", message));
        };
        let field = FieldId(position);
        let place = level.iter().position(|relation| relation.field == field).unwrap_or_else(|| {
            level.push(IncludedRelation { field, nested: Vec::new() });
            level.len() - 1
        });
        (owner, level) = (model.record(relation.target()), &mut level[place].nested);
    }
    Ok(())
}

/// Refuses relations that would read too many records, as a GraphQL request with the same selection would be.
pub fn check_cost(
    model: &Model,
    record: &RecordType,
    included: &[IncludedRelation],
    parents: i64,
    limits: &PlanLimits,
) -> Result<()> {
    let parents = u64::try_from(parents).unwrap_or(1);
    let costs = included
        .iter()
        .map(|relation| (record.field(relation.field).name.as_str(), relation_cost(model, record, relation)));
    let costs: Vec<(&str, u64)> = costs.collect();
    let sum = costs.iter().fold(0u64, |sum, (_, cost)| sum.saturating_add(*cost));
    let total = parents.saturating_mul(sum);
    let Some((costliest, _)) = costs.iter().max_by_key(|(_, cost)| *cost) else { return Ok(()) };
    if total <= limits.cost {
        return Ok(());
    }
    Err(Error::Limit(format!(
        "`include` may read {total} related records, more than the limit of {}, most of them by `{costliest}`: \
         use a smaller `size`, or include less",
        limits.cost
    )))
}

/// The estimated number of records that a relation of one record reads.
fn relation_cost(model: &Model, owner: &RecordType, relation: &IncludedRelation) -> u64 {
    let Some(kind) = owner.field(relation.field).kind.relation() else { return 0 };
    let target = model.record(kind.target());
    let nested = relation.nested.iter().map(|nested| relation_cost(model, target, nested));
    estimated_length(kind).saturating_mul(nested.fold(1, u64::saturating_add))
}
