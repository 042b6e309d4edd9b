//! Finds out which field broke a constraint: the queries to run after the failure, and what their results mean.
//!
//! The database names columns at best; clients know fields.

use trefoil_engine::AccessView;
use trefoil_model::error::{Error, PathSegment, Violation};
use trefoil_model::naming::inflection;
use trefoil_model::{
    CellValue, Field, FieldId, Model, OnDelete, RecordId, RecordType, RecordTypeId, Reference, StoredValue,
};

use crate::statements::access::record_views::RecordViews;
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write_parts::{WriteKind, WriteParts};

/// What a query of a probe found.
pub enum ConstraintFinding {
    Violation(Violation),
    /// More records than those that the actor sees refer to what is to be deleted.
    UnseenReferrers,
}

/// The kind of constraint that was violated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenConstraint {
    /// On these columns of this table, as far as the database names them.
    Unique {
        table: String,
        columns: Vec<String>,
    },
    Reference,
}

/// The queries to run, round by round until one of them finds a violation.
pub struct ConstraintProbe<'a> {
    pub rounds: Vec<Vec<ProbeQuery<'a>>>,
    /// Reported if no round finds one.
    fallback: Option<Violation>,
    make_error: fn(Vec<Violation>) -> Error,
}

/// A query that returns numbers or ids.
pub struct ProbeQuery<'a> {
    /// `None` if the violation is known without a query.
    pub sql: Option<String>,
    pub parameters: Vec<SqlParameter<'a>>,
    meaning: ProbeMeaning<'a>,
}

/// How the values of a result become violations.
enum ProbeMeaning<'a> {
    /// Any row means this violation.
    ValueTaken(Violation),
    /// Each is an id in this field that does not exist.
    TargetMissing { field: &'a Field, target: &'a RecordType, ids: Vec<CellValue<'a>> },
    /// The first is the number of referring records.
    StillReferenced { referrer: &'a RecordType, target: &'a RecordType },
    /// The first is the number of referring records that the actor does not see.
    ReferencedUnseen,
}

impl<'a> ConstraintProbe<'a> {
    /// `None` if a write of this kind cannot violate the constraint.
    pub fn new(
        dialect: Dialect,
        model: &'a Model,
        parts: WriteParts<'a>,
        broken: &BrokenConstraint,
        view: Option<&'a AccessView>,
    ) -> Option<ConstraintProbe<'a>> {
        let owner = model.record(parts.record?);
        match (broken, parts.kind) {
            // The plans that it consists of are asked instead.
            (BrokenConstraint::Unique { .. } | BrokenConstraint::Reference, WriteKind::Other) => None,
            (
                BrokenConstraint::Unique { table, columns },
                WriteKind::Create
                | WriteKind::Update
                | WriteKind::UpdateMany
                | WriteKind::Delete
                | WriteKind::DeleteMany,
            ) => Some(ConstraintProbe {
                rounds: vec![unique_probes(dialect, owner, parts, (table, columns))],
                fallback: repeated_value(owner, parts, columns),
                make_error: Error::Conflict,
            }),
            (BrokenConstraint::Reference, WriteKind::Create | WriteKind::Update | WriteKind::UpdateMany) => {
                Some(ConstraintProbe {
                    rounds: vec![reference_probes(dialect, model, owner, parts)],
                    fallback: None,
                    make_error: Error::Invalid,
                })
            }
            (BrokenConstraint::Reference, WriteKind::DeleteMany) => {
                let target = type_label(owner);
                let message = format!("other records still refer to at least one {target} that matches");
                Some(ConstraintProbe {
                    rounds: Vec::new(),
                    fallback: Some(Violation::new("where", "REFERENCED", message)),
                    make_error: Error::Conflict,
                })
            }
            (BrokenConstraint::Reference, WriteKind::Delete) => {
                let message = format!("other records still refer to this {}", type_label(owner));
                Some(ConstraintProbe {
                    rounds: referrer_probes(dialect, model, parts.record?, parts.id?, view),
                    fallback: Some(referenced_violation(owner, message)),
                    make_error: Error::Conflict,
                })
            }
        }
    }

    /// For references and links of a write to records that do not exist.
    pub fn of_targets(
        dialect: Dialect,
        model: &'a Model,
        parts: WriteParts<'a>,
    ) -> Option<ConstraintProbe<'a>> {
        match parts.kind {
            WriteKind::Create | WriteKind::Update | WriteKind::UpdateMany => {
                ConstraintProbe::new(dialect, model, parts, &BrokenConstraint::Reference, None)
            }
            WriteKind::Delete | WriteKind::DeleteMany | WriteKind::Other => None,
        }
    }

    /// The error for these violations; `None` if there are none and there is no fallback.
    pub fn into_error(self, found: Vec<ConstraintFinding>) -> Option<Error> {
        let (mut violations, mut has_unseen) = (Vec::new(), false);
        for finding in found {
            match finding {
                ConstraintFinding::Violation(violation) => violations.push(violation),
                ConstraintFinding::UnseenReferrers => has_unseen = true,
            }
        }
        if let Some(last) = violations.last_mut().filter(|_| has_unseen) {
            last.message.push_str(", and others");
        }
        if violations.is_empty() {
            violations.extend(self.fallback);
        }
        if violations.is_empty() { None } else { Some((self.make_error)(violations)) }
    }
}

impl ProbeQuery<'_> {
    pub fn findings(&self, values: &[StoredValue]) -> Vec<ConstraintFinding> {
        let count = || values.first().and_then(|value| value.as_cell().to_i64()).unwrap_or(0);
        let violations: Vec<Violation> = match &self.meaning {
            ProbeMeaning::ValueTaken(violation) => {
                let taken = self.sql.is_none() || !values.is_empty();
                taken.then(|| violation.clone()).into_iter().collect()
            }
            ProbeMeaning::TargetMissing { field, target, ids } => {
                let is_missing = |id: CellValue<'_>| values.iter().any(|value| value.as_cell() == id);
                let missing = ids.iter().enumerate().filter(|(_, id)| is_missing(**id));
                let missing = missing.filter_map(|(i, id)| Some((i, RecordId::from_cell(*id)?)));
                missing.map(|(i, id)| missing_target(field, target, i, &id)).collect()
            }
            ProbeMeaning::StillReferenced { referrer, target } => {
                let count = count();
                (count > 0).then(|| still_referenced(count, referrer, target)).into_iter().collect()
            }
            ProbeMeaning::ReferencedUnseen => {
                return (count() > 0).then_some(ConstraintFinding::UnseenReferrers).into_iter().collect();
            }
        };
        violations.into_iter().map(ConstraintFinding::Violation).collect()
    }
}

/// Queries for every value that another record has. The database stops at the first violation. It names the columns,
/// also for indexes of other programs, but not for an index on an expression.
fn unique_probes<'a>(
    dialect: Dialect,
    owner: &'a RecordType,
    parts: WriteParts<'a>,
    (table, columns): (&str, &[String]),
) -> Vec<ProbeQuery<'a>> {
    let WriteParts { kind, id, values, .. } = parts;
    let is_many = kind == WriteKind::UpdateMany;
    let mut queries = distinct_probes(dialect, owner, parts, (table, columns));
    // The columns of an index over two fields say nothing about either alone.
    let is_of_pair = !queries.is_empty() && queries.iter().all(|query| query.sql.is_none());
    for (position, field) in owner.fields.iter().enumerate().filter(|_| !is_of_pair) {
        let value = values.iter().find(|(field_id, _)| field.unique && *field_id == FieldId(position));
        let message = format!("{} is already taken", field.label());
        let meaning = ProbeMeaning::ValueTaken(Violation::new(&field.input_name, "UNIQUE", message));
        let is_named = table == owner.table
            && field.is_stored()
            && columns.contains(&field.column)
            && !is_half_of_pair(owner, FieldId(position));
        match value {
            // Of several records that get the value, none may have it yet.
            Some((_, value)) if !is_named || is_many => {
                let own_id = SqlParameter::Cell(id.map_or(CellValue::Null, RecordId::as_cell));
                let parameters = vec![SqlParameter::Cell(value.as_cell()), own_id];
                let sql = Some(value_taken_sql(dialect, owner, field));
                queries.push(ProbeQuery { sql, parameters, meaning });
            }
            Some(_) | None if is_named => {
                queries.push(ProbeQuery { sql: None, parameters: Vec::new(), meaning });
            }
            Some(_) | None => {}
        }
    }
    queries
}

/// True for a reference that an index on an expression contains besides: PostgreSQL names this column alone.
fn is_half_of_pair(owner: &RecordType, reference: FieldId) -> bool {
    let has_pair = |field: &Field| field.ignores_case && field.unique_within == Some(reference);
    !owner.field(reference).unique && owner.fields.iter().any(has_pair)
}

/// The same for values that are unique with a reference. A part of the pair that the write does not give is that of the
/// record as it was.
fn distinct_probes<'a>(
    dialect: Dialect,
    owner: &'a RecordType,
    parts: WriteParts<'a>,
    (table, columns): (&str, &[String]),
) -> Vec<ProbeQuery<'a>> {
    let WriteParts { kind, id, values, .. } = parts;
    let mut queries = Vec::new();
    for (position, field) in owner.fields.iter().enumerate() {
        let Some(within) = field.unique_within else { continue };
        let reference = owner.field(within);
        let (label, noun) = (field.label(), reference.label().to_lowercase());
        let message = format!("{label} is already taken within the same {noun}");
        let meaning = ProbeMeaning::ValueTaken(Violation::new(&field.input_name, "UNIQUE", message));
        let is_named = table == owner.table
            && columns.len() == 2
            && [&reference.column, &field.column].into_iter().all(|column| columns.contains(column));
        if is_named {
            return vec![ProbeQuery { sql: None, parameters: Vec::new(), meaning }];
        }
        let given = |wanted: FieldId| values.iter().find(|(id, _)| *id == wanted).map(|(_, value)| value);
        let pair = [given(within), given(FieldId(position))];
        if kind == WriteKind::UpdateMany || pair.iter().all(Option::is_none) {
            continue;
        }
        let name = dialect.quote_name(&owner.table);
        let own_id = dialect.parameter_mark(1);
        let mut parameters = vec![SqlParameter::Cell(id.map_or(CellValue::Null, RecordId::as_cell))];
        let mut equal = Vec::new();
        for (part, value) in [reference, field].into_iter().zip(pair) {
            let column = dialect.quote_name(&part.column);
            let other = match value {
                Some(value) => {
                    parameters.push(SqlParameter::Cell(value.as_cell()));
                    dialect.parameter_mark(parameters.len())
                }
                None => format!("(SELECT {column} FROM {name} WHERE \"id\" = {own_id})"),
            };
            let comparison = ValueComparison::for_field(part);
            let [column, other] = [&column, &other].map(|value| dialect.equality_key(comparison, value));
            equal.push(format!("{column} = {other}"));
        }
        let other = dialect.null_safe_different("\"id\"", &own_id);
        let sql = Some(format!("SELECT 1 FROM {name} WHERE {} AND {other} LIMIT 1", equal.join(" AND ")));
        queries.push(ProbeQuery { sql, parameters, meaning });
    }
    queries
}

/// The violation of an update that gives several records the same unique value: no other record has it.
fn repeated_value(owner: &RecordType, parts: WriteParts<'_>, columns: &[String]) -> Option<Violation> {
    let values = parts.values.iter().filter(|_| parts.kind == WriteKind::UpdateMany);
    let unique = values.map(|(field, _)| owner.field(*field)).filter(|field| field.is_distinct());
    let field = unique.min_by_key(|field| !columns.contains(&field.column))?;
    let message = format!("{} must differ between the records that match", field.label());
    Some(Violation::new(&field.input_name, "UNIQUE", message))
}

fn value_taken_sql(dialect: Dialect, owner: &RecordType, field: &Field) -> String {
    let comparison = ValueComparison::for_field(field);
    let column = dialect.equality_key(comparison, &dialect.quote_name(&field.column));
    let value = dialect.equality_key(comparison, &dialect.parameter_mark(1));
    let other = dialect.null_safe_different("\"id\"", &dialect.parameter_mark(2));
    let table = dialect.quote_name(&owner.table);
    format!("SELECT 1 FROM {table} WHERE {column} = {value} AND {other} LIMIT 1")
}

/// Queries for references and links to records that do not exist.
fn reference_probes<'a>(
    dialect: Dialect,
    model: &'a Model,
    owner: &'a RecordType,
    parts: WriteParts<'a>,
) -> Vec<ProbeQuery<'a>> {
    let WriteParts { values, links, .. } = parts;
    let references = values.iter().filter_map(|(field, value)| match value {
        StoredValue::Int(_) | StoredValue::Text(_) => Some((*field, vec![value.as_cell()])),
        StoredValue::Null | StoredValue::Real(_) => None,
    });
    let links = links.iter().map(|(field, ids)| (*field, ids.iter().map(RecordId::as_cell).collect()));
    let mut queries = Vec::new();
    for (field, ids) in references.chain(links) {
        let field = owner.field(field);
        let Some(target) = field.kind.input_target() else { continue };
        let target = model.record(target);
        let form = target.key_form();
        let (values, table) =
            (dialect.key_table(form, &dialect.parameter_mark(1), "v"), dialect.quote_name(&target.table));
        let found = format!("SELECT 1 FROM {table} AS t WHERE t.\"id\" = v.value");
        let value = dialect.read_key(form, "v.value");
        let sql = format!("SELECT {value} FROM {values} WHERE NOT EXISTS ({found})");
        let parameters = vec![SqlParameter::Keys(ids.clone())];
        let meaning = ProbeMeaning::TargetMissing { field, target, ids };
        queries.push(ProbeQuery { sql: Some(sql), parameters, meaning });
    }
    queries
}

pub(super) fn missing_target(
    field: &Field,
    target: &RecordType,
    position: usize,
    id: &RecordId,
) -> Violation {
    let message = format!("there is no {} with the id {id}", type_label(target));
    let violation = Violation::new(&field.input_name, "REFERENCE", message);
    let mut path = violation.path;
    if field.kind.is_link() {
        path.push(PathSegment::Index(position));
    }
    Violation { path, ..violation }
}

/// Queries for the records that still refer to a record or, in later rounds, to what would be deleted along with it.
/// Each type is visited once; tables of other programs are not searched. Those that the actor sees are counted, of the
/// others it is asked whether there are any.
fn referrer_probes<'a>(
    dialect: Dialect,
    model: &'a Model,
    record: RecordTypeId,
    id: &'a RecordId,
    view: Option<&'a AccessView>,
) -> Vec<Vec<ProbeQuery<'a>>> {
    let target = model.record(record);
    let views = RecordViews { dialect, model, view };
    let own = || format!("({})", dialect.parameter_mark(1));
    let mut deleted = vec![DeletedIds { record, seen: own(), all: own() }];
    let mut visited = vec![record];
    let mut rounds = Vec::new();
    while !deleted.is_empty() {
        let mut round = Vec::new();
        for (owner, field, on_delete, ids) in incoming_references(model, &std::mem::take(&mut deleted)) {
            let referrer = model.record(owner);
            let column = dialect.quote_name(&field.column);
            let table = dialect.quote_name(&referrer.table);
            let seen = format!("FROM {table} WHERE {column} IN {}", ids.seen);
            let all = format!("FROM {} WHERE {column} IN {}", views.table(owner), ids.all);
            match on_delete {
                OnDelete::SetNull => {}
                OnDelete::Cascade if visited.contains(&owner) => {}
                OnDelete::Cascade => {
                    visited.push(owner);
                    let ids = |from: &str| format!("(SELECT \"id\" {from})");
                    deleted.push(DeletedIds { record: owner, seen: ids(&seen), all: ids(&all) });
                }
                OnDelete::Refuse => {
                    // A record that refers to itself may be deleted.
                    let others = |ids: &str| match is_self_reference(owner, field) {
                        true => format!(" AND NOT (\"id\" IN {ids})"),
                        false => String::new(),
                    };
                    let (seen, all) = (seen + &others(&ids.seen), all + &others(&ids.all));
                    let query = |sql: String, meaning| {
                        let statement = views.statement(sql);
                        let mut parameters = vec![SqlParameter::id(id)];
                        statement.add_parameters(view, &mut parameters);
                        ProbeQuery { sql: Some(statement.sql), parameters, meaning }
                    };
                    let count = format!("SELECT count(*) {seen}");
                    round.push(query(count, ProbeMeaning::StillReferenced { referrer, target }));
                    if view.is_some() {
                        let unseen = format!(
                            "SELECT count(*) FROM \"all:\" WHERE \"id\" NOT IN (SELECT \"id\" {seen})"
                        );
                        let mut query = query(unseen, ProbeMeaning::ReferencedUnseen);
                        // The first, so that on PostgreSQL no view stands in for its tables.
                        let of_all = format!("\"all:\" AS (SELECT \"id\" {all})");
                        query.sql = query.sql.map(|sql| match sql.strip_prefix("WITH ") {
                            Some(rest) => format!("WITH {of_all}, {rest}"),
                            None => format!("WITH {of_all} {sql}"),
                        });
                        round.push(query);
                    }
                }
            }
        }
        rounds.push(round);
    }
    rounds
}

/// Records of a type that would be deleted, as SQL: those that the actor sees, and all of them.
#[derive(Clone)]
struct DeletedIds {
    record: RecordTypeId,
    seen: String,
    all: String,
}

/// True if the reference leads to its own type.
fn is_self_reference(owner: RecordTypeId, field: &Field) -> bool {
    field.kind.reference().is_some_and(|reference| reference.target == owner)
}

type IncomingReference<'m> = (RecordTypeId, &'m Field, OnDelete, DeletedIds);

/// Every reference to one of these types, with the records to be deleted.
fn incoming_references<'m>(model: &'m Model, deleted: &[DeletedIds]) -> Vec<IncomingReference<'m>> {
    let mut references = Vec::new();
    for (owner, record) in model.records.iter().enumerate() {
        for field in &record.fields {
            let Some(Reference { target, on_delete, .. }) = field.kind.reference() else { continue };
            let of_target = deleted.iter().filter(|ids| ids.record == *target);
            references.extend(of_target.map(|ids| (RecordTypeId(owner), field, *on_delete, ids.clone())));
        }
    }
    references
}

fn still_referenced(count: i64, referrer: &RecordType, target: &RecordType) -> Violation {
    let referrers = inflection::counted_noun(&type_label(referrer), count.unsigned_abs());
    let verb = if count == 1 { "refers" } else { "refer" };
    referenced_violation(target, format!("{referrers} still {verb} to this {}", type_label(target)))
}

/// A violation of the key, by which a deletion names its record.
fn referenced_violation(target: &RecordType, message: String) -> Violation {
    Violation::new(&target.field(target.id_field()).input_name, "REFERENCED", message)
}

/// A type's name in running text: `order line` for `OrderLine`.
fn type_label(record: &RecordType) -> String {
    record.label().to_lowercase()
}
