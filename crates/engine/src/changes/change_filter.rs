//! Selects the changes of a subscription: of one record type, of one kind, with the values of its arguments.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordTypeId, Value};

use crate::access::AccessView;
use crate::builtin_operation::{BuiltinOperation, OperationVerb};
use crate::changes::image_predicate::ImagePredicate;
use crate::changes::relation_tests::{RelationMatches, RelationTests};
use crate::changes::{ChangeBatch, ChangeKind, RecordChange};
use crate::list_window::limited_conditions;
use crate::operation::Condition;
use crate::plan::{PlanLimits, check_conditions, plan_predicates};

/// A validated filter. The record's own columns are tested in its image, related records by the store.
pub struct ChangeFilter {
    pub record: RecordTypeId,
    type_name: String,
    verb: OperationVerb,
    test: ImagePredicate,
    /// `None` if the image is enough.
    pub(crate) relation_tests: Option<Arc<RelationTests>>,
}

impl BuiltinOperation {
    /// The filter for the arguments of a subscription field, given by position; absent arguments are not in the
    /// list.
    pub(crate) fn change_filter(
        &self,
        model: &Model,
        limits: &PlanLimits,
        view: Option<&AccessView>,
        arguments: Vec<(usize, Value)>,
    ) -> Result<ChangeFilter> {
        if !ChangeKind::ALL.into_iter().any(|kind| self.verb.follows(kind)) {
            return Err(Error::internal("only a subscription follows changes"));
        }
        let record = model.record(self.record);
        let conditions = limited_conditions(limits, self.subscription_conditions(model, arguments)?)?;
        if let Some(view) = view {
            check_conditions(model, view, self.record, &conditions)?;
        }
        // Finds all mistakes, not only the first.
        plan_predicates(model, record, &conditions)?;
        let mut relation_tests = RelationTests::new(self.record);
        let tests = conditions.iter().map(|condition| image_test(model, condition, &mut relation_tests));
        let test = ImagePredicate::All(tests.collect::<Result<_>>()?);
        let relation_tests = (!relation_tests.is_empty()).then(|| Arc::new(relation_tests));
        let (record, type_name, verb) = (self.record, record.name.clone(), self.verb);
        Ok(ChangeFilter { record, type_name, verb, test, relation_tests })
    }
}

/// The test of an image that a condition means. Those of related records are added to `relation_tests`.
fn image_test(
    model: &Model,
    condition: &Condition,
    relation_tests: &mut RelationTests,
) -> Result<ImagePredicate> {
    let mut all = |conditions: &[Condition]| {
        conditions.iter().map(|inner| image_test(model, inner, relation_tests)).collect::<Result<_>>()
    };
    match condition {
        Condition::All(conditions) => Ok(ImagePredicate::All(all(conditions)?)),
        Condition::Any(conditions) => Ok(ImagePredicate::Any(all(conditions)?)),
        Condition::Not(inner) => Ok(ImagePredicate::Not(Box::new(image_test(model, inner, relation_tests)?))),
        Condition::Related { relation, conditions } => {
            let position = relation_tests.add(model, *relation, conditions);
            Ok(position.map_or(ImagePredicate::Never, ImagePredicate::Related))
        }
        Condition::Compare(_) | Condition::HasId(_) | Condition::LinkedFrom { .. } => {
            let record = model.record(relation_tests.record);
            let predicates = plan_predicates(model, record, slice::from_ref(condition))?;
            let tests = predicates.iter().map(|predicate| ImagePredicate::new(model, record, predicate));
            let tests =
                tests.collect::<Result<_, _>>().map_err(|violation| Error::Invalid(vec![violation]))?;
            Ok(ImagePredicate::All(tests))
        }
    }
}

impl ChangeFilter {
    /// The changes of a batch that it matches by their images alone, whoever may see them.
    pub fn matching_images<'b>(&self, batch: &'b ChangeBatch) -> Vec<Cow<'b, RecordChange>> {
        let matching = batch.changes.iter().filter(|change| self.matches(change, None) == Some(true));
        matching.map(Cow::Borrowed).collect()
    }

    /// Whether the filter matches a change; `None` if that depends on related records and `matches` is not given.
    pub(crate) fn matches(&self, change: &RecordChange, matches: Option<&RelationMatches>) -> Option<bool> {
        if !self.verb.follows(change.kind) || change.type_name != self.type_name {
            return Some(false);
        }
        let related = |position: usize| {
            let (tests, matches) = (self.relation_tests.as_ref()?, matches?);
            Some(tests.is_match(matches, position, change))
        };
        self.test.matches(&change.image, &related)
    }
}
