//! Which value broke a constraint, asked after the fact: the database names columns, people name fields.
//!
//! Pure: which questions to put to the database, and what their answers mean.

use trefoil_engine::plan::PlanAction;
use trefoil_model::error::{Error, PathSegment, Violation};
use trefoil_model::naming::inflection;
use trefoil_model::naming::names::display_label;
use trefoil_model::{
    CellValue, Field, FieldId, FieldKind, Model, OnDelete, RecordType, RecordTypeId, StoredValue,
};

use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::select::SqlParameter;
use crate::statements::write_parts::{WriteParts, write_parts};

/// Which kind of constraint broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenConstraint {
    /// Of these columns of this table, as far as the database names them.
    Unique {
        table: String,
        columns: Vec<String>,
    },
    Reference,
}

/// What to ask: round after round until one of them finds something.
pub struct ConstraintProbe<'a> {
    pub rounds: Vec<Vec<ProbeQuery<'a>>>,
    /// What to say when none does.
    fallback: Option<Violation>,
    make_error: fn(Vec<Violation>) -> Error,
}

/// A question whose answer is integers.
pub struct ProbeQuery<'a> {
    /// `None` where the answer is known beforehand.
    pub sql: Option<String>,
    pub parameters: Vec<SqlParameter<'a>>,
    meaning: ProbeMeaning<'a>,
}

/// What is wrong, given the integers of the answer.
enum ProbeMeaning<'a> {
    /// This, if there is one.
    ValueTaken(Violation),
    /// They are ids of this field that do not exist.
    TargetMissing { field: &'a Field, target: &'a RecordType, ids: &'a [i64] },
    /// The first says how many refer.
    StillReferenced { referrer: &'a RecordType, target: String },
}

impl<'a> ConstraintProbe<'a> {
    /// `None` where a plan of this kind cannot have broken it.
    pub fn new(
        dialect: Dialect,
        model: &'a Model,
        action: &'a PlanAction,
        broken: &BrokenConstraint,
    ) -> Option<ConstraintProbe<'a>> {
        match (broken, action) {
            (
                BrokenConstraint::Unique { table, columns },
                PlanAction::Create { .. } | PlanAction::Update { .. } | PlanAction::Delete { .. },
            ) => Some(ConstraintProbe {
                rounds: vec![unique_probes(dialect, model, action, (table, columns))],
                fallback: None,
                make_error: Error::Conflict,
            }),
            (BrokenConstraint::Reference, PlanAction::Create { .. } | PlanAction::Update { .. }) => {
                Some(ConstraintProbe {
                    rounds: vec![reference_probes(dialect, model, action)],
                    fallback: None,
                    make_error: Error::Invalid,
                })
            }
            (BrokenConstraint::Reference, PlanAction::Delete { record, id, .. }) => {
                let target = type_label(model.record(*record));
                let message = format!("other records still refer to this {target}");
                Some(ConstraintProbe {
                    rounds: referrer_probes(dialect, model, *record, *id, &target),
                    fallback: Some(Violation::new("id", "REFERENCED", message)),
                    make_error: Error::Conflict,
                })
            }
            (
                BrokenConstraint::Unique { .. } | BrokenConstraint::Reference,
                PlanAction::Get { .. }
                | PlanAction::List { .. }
                | PlanAction::ReadImage { .. }
                | PlanAction::PlainList(_),
            ) => None,
        }
    }

    /// The complaint that the findings make; `None` when nothing was found and nothing can be said.
    pub fn into_error(self, mut found: Vec<Violation>) -> Option<Error> {
        if found.is_empty() {
            found.extend(self.fallback);
        }
        if found.is_empty() { None } else { Some((self.make_error)(found)) }
    }
}

impl ProbeQuery<'_> {
    pub fn violations(&self, answer: &[i64]) -> Vec<Violation> {
        match &self.meaning {
            ProbeMeaning::ValueTaken(violation) => {
                let taken = self.sql.is_none() || !answer.is_empty();
                taken.then(|| violation.clone()).into_iter().collect()
            }
            ProbeMeaning::TargetMissing { field, target, ids } => {
                let dangling = ids.iter().enumerate().filter(|(_, id)| answer.contains(id));
                dangling.map(|(i, id)| missing_target(field, target, i, *id)).collect()
            }
            ProbeMeaning::StillReferenced { referrer, target } => {
                let count = answer.first().copied().unwrap_or(0);
                (count > 0).then(|| still_referenced(count, referrer, target)).into_iter().collect()
            }
        }
    }
}

/// Every value that another record has. The database stops at the first and names its columns, which tells of
/// other programs' indexes too; of an index on an expression it names none.
fn unique_probes<'a>(
    dialect: Dialect,
    model: &'a Model,
    action: &'a PlanAction,
    (table, columns): (&str, &[String]),
) -> Vec<ProbeQuery<'a>> {
    let WriteParts { record: Some(record), id, values, .. } = write_parts(action) else { return Vec::new() };
    let owner = model.record(record);
    let mut questions = Vec::new();
    for (position, field) in owner.fields.iter().enumerate() {
        let value = values.iter().find(|(given, _)| field.unique && *given == FieldId(position));
        let message = format!("{} is already taken", display_label(&field.name));
        let meaning = ProbeMeaning::ValueTaken(Violation::new(&field.input_name, "UNIQUE", message));
        if table == owner.table && field.is_stored() && columns.contains(&field.column) {
            questions.push(ProbeQuery { sql: None, parameters: Vec::new(), meaning });
        } else if let Some((_, value)) = value {
            let own = SqlParameter::Cell(id.map_or(CellValue::Null, CellValue::Int));
            let bound = vec![SqlParameter::Cell(value.as_cell()), own];
            questions.push(ProbeQuery {
                sql: Some(value_taken_sql(dialect, owner, field)),
                parameters: bound,
                meaning,
            });
        }
    }
    questions
}

fn value_taken_sql(dialect: Dialect, owner: &RecordType, field: &Field) -> String {
    let comparison = ValueComparison::for_field(field);
    let column = dialect.equality_key(comparison, &dialect.quote_name(&field.column));
    let value = dialect.equality_key(comparison, &dialect.parameter_mark(1));
    let other = dialect.null_safe_different("\"id\"", &dialect.parameter_mark(2));
    let table = dialect.quote_name(&owner.table);
    format!("SELECT 1 FROM {table} WHERE {column} = {value} AND {other} LIMIT 1")
}

/// Every reference and link to a record that does not exist.
fn reference_probes<'a>(dialect: Dialect, model: &'a Model, action: &'a PlanAction) -> Vec<ProbeQuery<'a>> {
    let WriteParts { record: Some(record), values, links, .. } = write_parts(action) else {
        return Vec::new();
    };
    let owner = model.record(record);
    let references = values.iter().filter_map(|(field, value)| match value {
        StoredValue::Int(id) => Some((*field, std::slice::from_ref(id))),
        StoredValue::Null | StoredValue::Real(_) | StoredValue::Text(_) => None,
    });
    let links = links.iter().map(|(field, ids)| (*field, ids.as_slice()));
    let mut questions = Vec::new();
    for (field, ids) in references.chain(links) {
        let field = owner.field(field);
        let (FieldKind::Reference { target, .. } | FieldKind::Link { target, .. }) = &field.kind else {
            continue;
        };
        let target = model.record(*target);
        let (given, table) =
            (dialect.integer_table(&dialect.parameter_mark(1), "v"), dialect.quote_name(&target.table));
        let found = format!("SELECT 1 FROM {table} AS t WHERE t.\"id\" = v.value");
        let sql = format!("SELECT v.value FROM {given} WHERE NOT EXISTS ({found})");
        let meaning = ProbeMeaning::TargetMissing { field, target, ids };
        questions.push(ProbeQuery { sql: Some(sql), parameters: vec![SqlParameter::Integers(ids)], meaning });
    }
    questions
}

fn missing_target(field: &Field, target: &RecordType, position: usize, id: i64) -> Violation {
    let message = format!("there is no {} with the id {id}", type_label(target));
    let violation = Violation::new(&field.input_name, "REFERENCE", message);
    let mut path = violation.path;
    if matches!(field.kind, FieldKind::Link { .. }) {
        path.push(PathSegment::Index(position));
    }
    Violation { path, ..violation }
}

/// Who still refers to a record, or, where nobody does, to what would be deleted along with it. Further than
/// once through each type is not looked, nor into other programs' tables: those are not named.
fn referrer_probes<'a>(
    dialect: Dialect,
    model: &'a Model,
    record: RecordTypeId,
    id: i64,
    target: &str,
) -> Vec<Vec<ProbeQuery<'a>>> {
    let mut doomed = vec![(record, format!("({})", dialect.parameter_mark(1)))];
    let mut seen = vec![record];
    let mut rounds = Vec::new();
    while !doomed.is_empty() {
        let mut round = Vec::new();
        for (owner, field, on_delete, ids) in incoming_references(model, &std::mem::take(&mut doomed)) {
            let referrer = model.record(owner);
            let table = dialect.quote_name(&referrer.table);
            let those = format!("FROM {table} WHERE {} IN {ids}", dialect.quote_name(&field.column));
            match on_delete {
                OnDelete::SetNull => {}
                OnDelete::Cascade if seen.contains(&owner) => {}
                OnDelete::Cascade => {
                    seen.push(owner);
                    doomed.push((owner, format!("(SELECT \"id\" {those})")));
                }
                OnDelete::Refuse => {
                    // What refers to itself does not keep itself.
                    let others = format!("NOT ({} AND \"id\" IN {ids})", is_self_reference(owner, field));
                    let sql = Some(format!("SELECT count(*) {those} AND {others}"));
                    let meaning = ProbeMeaning::StillReferenced { referrer, target: target.to_owned() };
                    round.push(ProbeQuery { sql, parameters: vec![SqlParameter::integer(id)], meaning });
                }
            }
        }
        rounds.push(round);
    }
    rounds
}

/// Whether a reference leads to its own type.
fn is_self_reference(owner: RecordTypeId, field: &Field) -> bool {
    matches!(field.kind, FieldKind::Reference { target, .. } if target == owner)
}

type IncomingReference<'m> = (RecordTypeId, &'m Field, OnDelete, String);

/// Every reference to one of these types, with the ids of the records in question.
fn incoming_references<'m>(
    model: &'m Model,
    doomed: &[(RecordTypeId, String)],
) -> Vec<IncomingReference<'m>> {
    let mut references = Vec::new();
    for (owner, record) in model.records.iter().enumerate() {
        for field in &record.fields {
            let FieldKind::Reference { target, on_delete } = &field.kind else { continue };
            let ids = doomed.iter().filter(|(record, _)| record == target);
            references.extend(ids.map(|(_, ids)| (RecordTypeId(owner), field, *on_delete, ids.clone())));
        }
    }
    references
}

fn still_referenced(count: i64, referrer: &RecordType, target: &str) -> Violation {
    let many = inflection::counted_noun(&type_label(referrer), count.unsigned_abs());
    let verb = if count == 1 { "refers" } else { "refer" };
    Violation::new("id", "REFERENCED", format!("{many} still {verb} to this {target}"))
}

/// A type's name in running text: `order line` for `OrderLine`.
fn type_label(record: &RecordType) -> String {
    display_label(&record.name).to_lowercase()
}
