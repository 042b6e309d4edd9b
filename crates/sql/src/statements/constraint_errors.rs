//! Which value broke a constraint, asked after the fact: the database names columns, people name fields.
//!
//! Pure: which questions to put to the database, and what their answers mean.

use crate::statements::dialect::{Comparison, Dialect};
use crate::statements::select::Parameter;
use crate::statements::write_parts::{Parts, parts};
use trefoil_engine::plan::Action;
use trefoil_model::error::{Error, Segment, Violation};
use trefoil_model::naming::inflection;
use trefoil_model::naming::names::label;
use trefoil_model::{Cell, Field, FieldId, Kind, Model, OnDelete, RecordType, Stored, TypeId};

/// Which kind of constraint broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constraint {
    /// Of these columns of this table, as far as the database names them.
    Unique {
        table: String,
        columns: Vec<String>,
    },
    Reference,
}

/// What to ask: round after round until one of them finds something.
pub struct Inquiry<'a> {
    pub rounds: Vec<Vec<Question<'a>>>,
    /// What to say when none does.
    otherwise: Option<Violation>,
    verdict: fn(Vec<Violation>) -> Error,
}

/// A question whose answer is integers.
pub struct Question<'a> {
    /// `None` where the answer is known beforehand.
    pub sql: Option<String>,
    pub bound: Vec<Parameter<'a>>,
    meaning: Meaning<'a>,
}

/// What is wrong, given the integers of the answer.
enum Meaning<'a> {
    /// This, if there is one.
    Taken(Violation),
    /// They are ids of this field that do not exist.
    Missing { field: &'a Field, target: &'a RecordType, ids: &'a [i64] },
    /// The first says how many refer.
    Referred { referrer: &'a RecordType, target: String },
}

impl<'a> Inquiry<'a> {
    /// `None` where a plan of this kind cannot have broken it.
    pub fn new(
        dialect: Dialect,
        model: &'a Model,
        action: &'a Action,
        broken: &Constraint,
    ) -> Option<Inquiry<'a>> {
        match (broken, action) {
            (
                Constraint::Unique { table, columns },
                Action::Create { .. } | Action::Update { .. } | Action::Delete { .. },
            ) => Some(Inquiry {
                rounds: vec![taken(dialect, model, action, (table, columns))],
                otherwise: None,
                verdict: Error::Conflict,
            }),
            (Constraint::Reference, Action::Create { .. } | Action::Update { .. }) => Some(Inquiry {
                rounds: vec![dangling(dialect, model, action)],
                otherwise: None,
                verdict: Error::Invalid,
            }),
            (Constraint::Reference, Action::Delete { record, id, .. }) => {
                let target = words(model.record(*record));
                let message = format!("other records still refer to this {target}");
                Some(Inquiry {
                    rounds: referrers(dialect, model, *record, *id, &target),
                    otherwise: Some(Violation::new("id", "REFERENCED", message)),
                    verdict: Error::Conflict,
                })
            }
            (
                Constraint::Unique { .. } | Constraint::Reference,
                Action::Get { .. } | Action::List { .. } | Action::Changed { .. } | Action::Plain(_),
            ) => None,
        }
    }

    /// The complaint that the findings make; `None` when nothing was found and nothing can be said.
    pub fn conclude(self, mut found: Vec<Violation>) -> Option<Error> {
        if found.is_empty() {
            found.extend(self.otherwise);
        }
        if found.is_empty() { None } else { Some((self.verdict)(found)) }
    }
}

impl Question<'_> {
    pub fn judge(&self, answer: &[i64]) -> Vec<Violation> {
        match &self.meaning {
            Meaning::Taken(violation) => {
                let taken = self.sql.is_none() || !answer.is_empty();
                taken.then(|| violation.clone()).into_iter().collect()
            }
            Meaning::Missing { field, target, ids } => {
                let dangling = ids.iter().enumerate().filter(|(_, id)| answer.contains(id));
                dangling.map(|(i, id)| missing(field, target, i, *id)).collect()
            }
            Meaning::Referred { referrer, target } => {
                let count = answer.first().copied().unwrap_or(0);
                (count > 0).then(|| still_referred(count, referrer, target)).into_iter().collect()
            }
        }
    }
}

/// Every value that another record has. The database stops at the first and names its columns, which tells of
/// other programs' indexes too; of an index on an expression it names none.
fn taken<'a>(
    dialect: Dialect,
    model: &'a Model,
    action: &'a Action,
    (table, columns): (&str, &[String]),
) -> Vec<Question<'a>> {
    let Parts { record: Some(record), id, values, .. } = parts(action) else { return Vec::new() };
    let owner = model.record(record);
    let mut questions = Vec::new();
    for (position, field) in owner.fields.iter().enumerate() {
        let value = values.iter().find(|(given, _)| field.unique && *given == FieldId(position));
        let message = format!("{} is already taken", label(&field.name));
        let meaning = Meaning::Taken(Violation::new(&field.input_name, "UNIQUE", message));
        if table == owner.table && field.is_stored() && columns.contains(&field.column) {
            questions.push(Question { sql: None, bound: Vec::new(), meaning });
        } else if let Some((_, value)) = value {
            let own = Parameter::Cell(id.map_or(Cell::Null, Cell::Int));
            let bound = vec![Parameter::Cell(value.as_cell()), own];
            questions.push(Question { sql: Some(is_taken(dialect, owner, field)), bound, meaning });
        }
    }
    questions
}

fn is_taken(dialect: Dialect, owner: &RecordType, field: &Field) -> String {
    let comparison = Comparison::of(field);
    let column = dialect.identity(comparison, &dialect.quote(&field.column));
    let value = dialect.identity(comparison, &dialect.parameter(1));
    let other = dialect.differs("\"id\"", &dialect.parameter(2));
    let table = dialect.quote(&owner.table);
    format!("SELECT 1 FROM {table} WHERE {column} = {value} AND {other} LIMIT 1")
}

/// Every reference and link to a record that does not exist.
fn dangling<'a>(dialect: Dialect, model: &'a Model, action: &'a Action) -> Vec<Question<'a>> {
    let Parts { record: Some(record), values, links, .. } = parts(action) else { return Vec::new() };
    let owner = model.record(record);
    let references = values.iter().filter_map(|(field, value)| match value {
        Stored::Int(id) => Some((*field, std::slice::from_ref(id))),
        Stored::Null | Stored::Real(_) | Stored::Text(_) => None,
    });
    let links = links.iter().map(|(field, ids)| (*field, ids.as_slice()));
    let mut questions = Vec::new();
    for (field, ids) in references.chain(links) {
        let field = owner.field(field);
        let (Kind::Reference { target, .. } | Kind::Link { target, .. }) = &field.kind else { continue };
        let target = model.record(*target);
        let (given, table) = (dialect.integers(&dialect.parameter(1), "v"), dialect.quote(&target.table));
        let found = format!("SELECT 1 FROM {table} AS t WHERE t.\"id\" = v.value");
        let sql = format!("SELECT v.value FROM {given} WHERE NOT EXISTS ({found})");
        let meaning = Meaning::Missing { field, target, ids };
        questions.push(Question { sql: Some(sql), bound: vec![Parameter::Integers(ids)], meaning });
    }
    questions
}

fn missing(field: &Field, target: &RecordType, position: usize, id: i64) -> Violation {
    let message = format!("there is no {} with the id {id}", words(target));
    let violation = Violation::new(&field.input_name, "REFERENCE", message);
    let mut path = violation.path;
    if matches!(field.kind, Kind::Link { .. }) {
        path.push(Segment::Index(position));
    }
    Violation { path, ..violation }
}

/// Who still refers to a record, or, where nobody does, to what would be deleted along with it. Further than
/// once through each type is not looked, nor into other programs' tables: those are not named.
fn referrers<'a>(
    dialect: Dialect,
    model: &'a Model,
    record: TypeId,
    id: i64,
    target: &str,
) -> Vec<Vec<Question<'a>>> {
    let mut doomed = vec![(record, format!("({})", dialect.parameter(1)))];
    let mut seen = vec![record];
    let mut rounds = Vec::new();
    while !doomed.is_empty() {
        let mut round = Vec::new();
        for (owner, field, on_delete, ids) in references_to(model, &std::mem::take(&mut doomed)) {
            let referrer = model.record(owner);
            let table = dialect.quote(&referrer.table);
            let those = format!("FROM {table} WHERE {} IN {ids}", dialect.quote(&field.column));
            match on_delete {
                OnDelete::SetNull => {}
                OnDelete::Cascade if seen.contains(&owner) => {}
                OnDelete::Cascade => {
                    seen.push(owner);
                    doomed.push((owner, format!("(SELECT \"id\" {those})")));
                }
                OnDelete::Refuse => {
                    // What refers to itself does not keep itself.
                    let others = format!("NOT ({} AND \"id\" IN {ids})", is_own(owner, field));
                    let sql = Some(format!("SELECT count(*) {those} AND {others}"));
                    let meaning = Meaning::Referred { referrer, target: target.to_owned() };
                    round.push(Question { sql, bound: vec![Parameter::integer(id)], meaning });
                }
            }
        }
        rounds.push(round);
    }
    rounds
}

/// Whether a reference leads to its own type.
fn is_own(owner: TypeId, field: &Field) -> bool {
    matches!(field.kind, Kind::Reference { target, .. } if target == owner)
}

type Reference<'m> = (TypeId, &'m Field, OnDelete, String);

/// Every reference to one of these types, with the ids of the records in question.
fn references_to<'m>(model: &'m Model, doomed: &[(TypeId, String)]) -> Vec<Reference<'m>> {
    let mut references = Vec::new();
    for (owner, record) in model.records.iter().enumerate() {
        for field in &record.fields {
            let Kind::Reference { target, on_delete } = &field.kind else { continue };
            let ids = doomed.iter().filter(|(record, _)| record == target);
            references.extend(ids.map(|(_, ids)| (TypeId(owner), field, *on_delete, ids.clone())));
        }
    }
    references
}

fn still_referred(count: i64, referrer: &RecordType, target: &str) -> Violation {
    let many = inflection::counted(&words(referrer), count.unsigned_abs());
    let verb = if count == 1 { "refers" } else { "refer" };
    Violation::new("id", "REFERENCED", format!("{many} still {verb} to this {target}"))
}

/// A type's name in running text: `order line` for `OrderLine`.
fn words(record: &RecordType) -> String {
    label(&record.name).to_lowercase()
}
