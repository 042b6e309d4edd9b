//! [`CheckStatement`]: the statement of the checks of a write, written once for all writes of its shape, and what it found.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use quick_cache::unsync::Cache;

use trefoil_engine::AccessView;
use trefoil_engine::plan::StatementShape;
use trefoil_model::access::RuleTest;
use trefoil_model::{FieldId, Model, SourceLocation, StoredValue};

use crate::statements::access::rule_parameters::{RuleName, test_values};
use crate::statements::sql_parameter::SqlParameter;

/// The maximum number of cached statements.
const MAX_STATEMENTS: usize = 2_048;

/// A statement whose rows tell whether a write is allowed, without the values of one write.
#[derive(Debug)]
pub struct CheckStatement {
    pub sql: String,
    pub columns: Vec<CheckedColumn>,
    /// The tests whose values are its last parameters, in order.
    pub asked: Vec<AskedTest>,
}

/// What a column of a check means.
#[derive(Debug)]
pub enum CheckedColumn {
    /// The id of the record.
    Key,
    Readable,
    Version,
    Rule(RuleName),
    Field(String, RuleName),
    Old(FieldId),
}

/// A test in a check.
#[derive(Debug)]
pub enum AskedTest {
    Rule(RuleName),
    /// What is left of a rule for one record.
    Rest(RuleTest),
}

impl CheckStatement {
    /// Appends the values of its rules.
    pub fn add_values<'a>(&self, view: &'a AccessView, into: &mut Vec<SqlParameter<'a>>) {
        for asked in &self.asked {
            match asked {
                AskedTest::Rule(rule) => rule.add_values(view, into),
                AskedTest::Rest(test) => {
                    into.extend(test_values(test, view).cloned().map(SqlParameter::Owned));
                }
            }
        }
    }
}

/// What the statement of a check is about, besides the rules.
#[derive(Debug, Clone, Copy)]
pub enum CheckKind {
    Before,
    OfCreated,
    AfterUpdate,
    StillAllowed,
}

/// The statements of the checks of the last writes, of any model and actor.
pub struct CheckCache(RwLock<Cache<Box<[u8]>, Arc<CheckStatement>>>);

impl Default for CheckCache {
    fn default() -> CheckCache {
        CheckCache(RwLock::new(Cache::new(MAX_STATEMENTS)))
    }
}

impl fmt::Debug for CheckCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckCache").field(&self.0.read().len()).finish()
    }
}

impl CheckCache {
    /// The shape of a check, to which its writer adds what else decides about its text.
    pub fn shape(model: &Model, view: &AccessView, kind: CheckKind) -> StatementShape {
        let mut shape = StatementShape::of_kind(kind as u8, &StatementShape::default());
        shape.push_bytes(&model.hash.to_le_bytes());
        shape.push_bytes(&view.rules.shape.to_le_bytes());
        shape
    }

    pub fn get_or_write(
        &self,
        shape: &StatementShape,
        write: impl FnOnce() -> CheckStatement,
    ) -> Arc<CheckStatement> {
        if let Some(statement) = self.0.read().get(shape.as_bytes()) {
            return statement.clone();
        }
        let statement = Arc::new(write());
        self.0.write().insert(shape.as_bytes().into(), statement.clone());
        statement
    }
}

/// The fields of a record before a change.
pub type OldValues = Vec<(FieldId, StoredValue)>;

/// A record that a check allows to be written.
pub struct CheckedRecord {
    pub id: StoredValue,
    pub old: OldValues,
}

/// What a check found where nothing was refused.
pub enum CheckResult {
    Missing,
    /// For the actor the same: this rule hides a record.
    Hidden(Box<SourceLocation>),
    Passed(Vec<CheckedRecord>),
}

impl CheckResult {
    pub fn passed(self) -> Option<Vec<CheckedRecord>> {
        match self {
            CheckResult::Passed(records) => Some(records),
            CheckResult::Missing | CheckResult::Hidden(_) => None,
        }
    }
}
