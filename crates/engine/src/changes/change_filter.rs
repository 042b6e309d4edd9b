//! Selects the changes of a subscription: of one record type, of one kind, with the values of its arguments.

use trefoil_model::error::{Error, Result};
use trefoil_model::{Model, RecordTypeId, Value};

use crate::builtin_operation::{BuiltinOperation, OperationVerb};
use crate::changes::ChangeKind;
use crate::changes::RecordChange;
use crate::changes::image_predicate::ImagePredicate;

/// A validated filter, evaluated on record images only.
#[derive(Debug)]
pub struct ChangeFilter {
    pub record: RecordTypeId,
    type_name: String,
    verb: OperationVerb,
    tests: Vec<ImagePredicate>,
}

impl BuiltinOperation {
    /// The filter for the arguments of a subscription field, given by position; absent arguments are not in the
    /// list.
    pub fn change_filter(&self, model: &Model, arguments: Vec<(usize, Value)>) -> Result<ChangeFilter> {
        if !ChangeKind::ALL.into_iter().any(|kind| self.verb.follows(kind)) {
            return Err(Error::internal("only a subscription follows changes"));
        }
        let record = model.record(self.record);
        let predicates = self.subscription_predicates(model, arguments)?;
        let tests = predicates.iter().map(|predicate| ImagePredicate::new(model, record, predicate));
        let tests = tests.collect::<Result<_, _>>().map_err(|violation| Error::Invalid(vec![violation]))?;
        Ok(ChangeFilter { record: self.record, type_name: record.name.clone(), verb: self.verb, tests })
    }
}

impl ChangeFilter {
    pub fn matches(&self, change: &RecordChange) -> bool {
        self.verb.follows(change.kind)
            && change.type_name == self.type_name
            && self.tests.iter().all(|test| test.matches(&change.image))
    }
}
