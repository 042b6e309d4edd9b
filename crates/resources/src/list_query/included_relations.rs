//! The parameter `include`: relations whose records are written inside a record.

use trefoil_engine::{AccessView, Engine, RelationLengths};
use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::{Error, Result, Violation};
use trefoil_model::naming::names::name_suggestion;
use trefoil_model::{Field, FieldId, Model, RecordType, RecordTypeId, Relation};

use crate::record_shape::IncludedRelation;

/// Related records of related records of related records.
pub const MAX_INCLUDE_DEPTH: usize = 3;

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
    if path.split('.').count() > MAX_INCLUDE_DEPTH {
        let message = format!("`{path}` is too deep: at most {MAX_INCLUDE_DEPTH} relations are followed");
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

/// Refuses relations that would read too many records of so many parents. Lists count as in GraphQL: first with the
/// greatest length, then with the average ones that the store knows.
pub async fn check_cost(
    engine: &Engine,
    record: RecordTypeId,
    included: &[IncludedRelation],
    parents: i64,
) -> Result<()> {
    let parents = u64::try_from(parents).unwrap_or(1);
    let limit = engine.limits().cost;
    let total = |lengths: &RelationLengths| {
        let estimate = CostEstimate { model: engine.model(), lengths };
        parents.saturating_mul(estimate.sum(record, included, 0))
    };
    if included.is_empty() || total(&RelationLengths::default()) <= limit {
        return Ok(());
    }
    if total(&engine.relation_lengths()) > limit && total(&RelationLengths::shortest()) <= limit {
        engine.measure_relations().await;
    }
    let lengths = engine.relation_lengths();
    let total = total(&lengths);
    if total <= limit {
        return Ok(());
    }
    let estimate = CostEstimate { model: engine.model(), lengths: &lengths };
    let (path, share) = estimate.costliest(record, included);
    Err(Error::Limit(format!(
        "`include` may read {total} related records, but limits.cost allows at most {limit}; {:.0} % of them are \
         `{path}`: use a smaller `size`, or include less",
        share * 100.0
    )))
}

/// The estimated number of related records that one record reads.
struct CostEstimate<'e> {
    model: &'e Model,
    lengths: &'e RelationLengths,
}

impl CostEstimate<'_> {
    fn sum(&self, owner: RecordTypeId, included: &[IncludedRelation], outer_lists: usize) -> u64 {
        let costs = included.iter().map(|relation| self.cost(owner, relation, outer_lists));
        costs.fold(0, u64::saturating_add)
    }

    fn cost(&self, owner: RecordTypeId, relation: &IncludedRelation, outer_lists: usize) -> u64 {
        let Some((target, length, outer_lists)) = self.step(owner, relation, outer_lists) else { return 0 };
        length.saturating_mul(self.sum(target, &relation.nested, outer_lists).saturating_add(1))
    }

    /// Where a relation leads, to how many records, and the number of lists around these.
    fn step(
        &self,
        owner: RecordTypeId,
        relation: &IncludedRelation,
        outer_lists: usize,
    ) -> Option<(RecordTypeId, u64, usize)> {
        let kind = self.model.record(owner).field(relation.field).kind.relation()?;
        Some(match kind {
            Relation::Reference(_) => (kind.target(), 1, outer_lists),
            Relation::Inverse(_) | Relation::Link(_) => {
                (kind.target(), self.lengths.expected(owner, relation.field, outer_lists), outer_lists + 1)
            }
        })
    }

    /// The path of the relations that read most, each at least half of the whole, and their share.
    fn costliest(&self, record: RecordTypeId, included: &[IncludedRelation]) -> (String, f64) {
        let whole = self.sum(record, included, 0) as f64;
        let (mut names, mut share) = (Vec::new(), 1.0);
        let (mut owner, mut level, mut outer_lists, mut copies) = (record, included, 0, 1.0);
        loop {
            let costs = level.iter().map(|relation| (self.cost(owner, relation, outer_lists), relation));
            let Some((cost, relation)) = costs.max_by_key(|(cost, _)| *cost) else { break };
            let part = cost as f64 * copies / whole;
            if part < 0.5 && !names.is_empty() {
                break;
            }
            names.push(self.model.record(owner).field(relation.field).name.as_str());
            share = part;
            let Some((target, length, lists)) = self.step(owner, relation, outer_lists) else { break };
            (owner, level, outer_lists, copies) = (target, &relation.nested, lists, copies * length as f64);
        }
        (names.join("."), share)
    }
}
