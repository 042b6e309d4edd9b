//! Writes that the rules of an actor cannot refuse.

use trefoil_engine::AccessView;
use trefoil_engine::plan::PlanAction;
use trefoil_model::access::AccessVerdict;
use trefoil_model::{FieldId, Model, RecordTypeId, ValueSource};

use crate::statements::access::rule_parameters::RuleName;
use crate::statements::access::write_rules::{FieldLinks, FieldValues};

/// Whether nothing of the write of a record is left to check: its rules hold for this actor, whatever the records are.
pub fn needs_no_check(model: &Model, view: &AccessView, action: &PlanAction) -> bool {
    type FieldRule = fn(RecordTypeId, FieldId) -> RuleName;
    let (record, values, links, of_record, of_field): (_, &FieldValues, &FieldLinks, _, FieldRule) =
        match action {
            PlanAction::Create { record, values, links, .. } => {
                (*record, values, links, vec![RuleName::Create(*record)], RuleName::CreateField)
            }
            PlanAction::Update { record, values, links, .. } => {
                let rules = [RuleName::Read, RuleName::Update, RuleName::UpdateTo];
                let rules = rules.map(|rule| rule(*record)).to_vec();
                (*record, values, links, rules, RuleName::UpdateField)
            }
            PlanAction::Delete { record, .. } => {
                let rules = vec![RuleName::Read(*record), RuleName::Delete(*record)];
                (*record, &[], &[], rules, RuleName::UpdateField)
            }
            PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::CreateMany(_)
            | PlanAction::UpdateMany { .. }
            | PlanAction::DeleteMany { .. }
            | PlanAction::Upsert { .. }
            | PlanAction::Nested(_)
            | PlanAction::Aggregate(_)
            | PlanAction::PlainList(_) => return false,
        };
    let owner = model.record(record);
    let holds = |rule: RuleName| rule.of(view).verdict() == AccessVerdict::Yes;
    let is_free = |id: FieldId| {
        let field = owner.field(id);
        let may_set = field.value_source != ValueSource::Client || holds(of_field(record, id));
        may_set && field.kind.relation().is_none_or(|relation| holds(RuleName::Read(relation.target())))
    };
    of_record.into_iter().all(holds)
        && values.iter().all(|(id, _)| is_free(*id))
        && links.iter().all(|(id, _)| is_free(*id))
}
