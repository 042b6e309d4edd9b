//! Compiles a plan into its program, the statements it needs, once for all plans of the same shape.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::RwLock;
use quick_cache::Equivalent;
use quick_cache::unsync::Cache;

use trefoil_engine::Plan;
use trefoil_engine::plan::{PlanAction, StatementShape};
use trefoil_model::error::{Error, Result};
use trefoil_model::{FieldId, Model, RecordType};

use crate::statements::access::check_statement::CheckCache;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::unchecked_writes::needs_no_check;
use crate::statements::dialect::Dialect;
use crate::statements::related::related_rows::constant_row_bound;
use crate::statements::select::{SelectBuilder, SelectLevel};
use crate::statements::write::{self, LinkStatements, SequenceStatements};
use crate::statements::write_many::{MatchStatements, found_records};
use crate::statements::write_parts::write_parts;

/// The maximum number of cached programs.
const MAX_PROGRAMS: usize = 4_096;

/// The statements of a plan.
#[derive(Debug)]
pub enum Program {
    Get(SelectLevel),
    List {
        level: SelectLevel,
        count: Option<ReadStatement>,
    },
    Create {
        /// Present if the caller chooses the id and the database does not advance its sequence by itself.
        sequence: Option<SequenceStatements>,
        insert: String,
        links: Vec<LinkStatements>,
        read_level: SelectLevel,
    },
    Update(UpdateProgram),
    Delete {
        delete: String,
        version_query: String,
        read_level: SelectLevel,
    },
    CreateMany(CreatePrograms),
    UpdateMany {
        /// Counts the records that match, up to the limit.
        count: ReadStatement,
        /// `None` if the plan changes nothing.
        update: Option<String>,
    },
    /// The records are found once and then changed by their ids: replacing links may change what a condition says of them.
    UpdateManyLinks {
        /// Finds the ids of the records that match, up to the limit.
        find: ReadStatement,
        links: Vec<LinkStatements>,
        update: String,
    },
    DeleteMany {
        count: ReadStatement,
        delete: String,
    },
    /// The records are found as the actor sees them, and deleted by their ids.
    DeleteFound {
        find: ReadStatement,
        delete: String,
    },
    Upsert {
        find: ReadStatement,
        create: Box<Program>,
        update: UpdateProgram,
    },
    /// The statements of its steps are written when it runs.
    Nested {
        read_level: SelectLevel,
    },
    /// The groups of an aggregate.
    Aggregate(SelectLevel),
    /// An action on a plain list; its statements do not depend on the plan.
    PlainList,
}

/// The statements that change a record.
#[derive(Debug)]
pub struct UpdateProgram {
    /// `None` if nothing is changed.
    pub update: Option<String>,
    pub version_query: String,
    pub links: Vec<LinkStatements>,
    pub read_level: SelectLevel,
}

/// The programs of many new records, of which some may have a given id. `None` if there is no such record.
#[derive(Debug)]
pub struct CreatePrograms {
    without_id: Option<Box<Program>>,
    with_id: Option<Box<Program>>,
}

impl CreatePrograms {
    /// The program of one of the records.
    pub fn of_plan(&self, plan: &Plan) -> Result<&Program> {
        let program = if has_given_id(plan) { &self.with_id } else { &self.without_id };
        program.as_deref().ok_or_else(|| Error::internal("a new record has no program"))
    }
}

/// True if the plan creates a record whose id the store does not count up.
pub fn has_given_id(plan: &Plan) -> bool {
    write_parts(&plan.action).id.is_some()
}

fn first_plan(plans: &[Plan], has_id: bool) -> Option<&Plan> {
    plans.iter().find(|plan| has_given_id(plan) == has_id)
}

impl Program {
    /// True if it is one statement, which sees one snapshot without a transaction.
    pub fn is_one_statement(&self) -> bool {
        match self {
            Program::Get(level) | Program::List { level, count: None } => {
                level.is_flat() && level.search_guard.is_none()
            }
            Program::Aggregate(level) => level.search_guard.is_none(),
            Program::List { count: Some(_), .. }
            | Program::Create { .. }
            | Program::Update(_)
            | Program::Delete { .. }
            | Program::CreateMany(_)
            | Program::UpdateMany { .. }
            | Program::UpdateManyLinks { .. }
            | Program::DeleteMany { .. }
            | Program::DeleteFound { .. }
            | Program::Upsert { .. }
            | Program::Nested { .. }
            | Program::PlainList => false,
        }
    }
}

/// Compiles one plan, without the cache.
pub fn compile_plan(dialect: Dialect, model: &Model, plan: &Plan) -> Result<Program> {
    let view = plan.access_view().map(AsRef::as_ref);
    let selects = SelectBuilder { dialect, model, view };
    // A write that the rules of the actor cannot refuse may return what it wrote.
    let is_checked = view.is_some_and(|view| !needs_no_check(model, view, &plan.action));
    let written = |level: SelectLevel| SelectLevel { is_guarded: level.is_guarded || is_checked, ..level };
    Ok(match &plan.action {
        PlanAction::Get { record, selection, .. } | PlanAction::ReadImage { record, selection, .. } => {
            Program::Get(selects.record_by_id(*record, selection)?)
        }
        PlanAction::SeeImages { record, .. } => Program::Get(selects.seen_images(*record)),
        PlanAction::List { record, listing, selection } => Program::List {
            level: selects.record_list(*record, listing, selection)?,
            count: selects.count_statement(*record, listing),
        },
        PlanAction::Create { record, id, values, links, selection } => {
            let owner = model.record(*record);
            let read_level = written(selects.written_record(*record, selection)?);
            let insert = write::insert_sql(
                dialect,
                owner,
                id.is_some(),
                &field_ids(values),
                read_level.returning_columns(),
                1,
            );
            let links = field_ids(links)
                .into_iter()
                .map(|id| write::link_statements(dialect, owner, owner.field(id)));
            let sequence = id.as_ref().and_then(|_| write::sequence_statements(dialect, owner));
            Program::Create { sequence, insert, links: links.collect::<Result<_>>()?, read_level }
        }
        PlanAction::Update { record, values, links, expected_version, selection, .. } => {
            let read_level = written(selects.written_record(*record, selection)?);
            let fields = (field_ids(values), field_ids(links));
            let has_version = expected_version.is_some();
            Program::Update(update_program(selects, model.record(*record), fields, has_version, read_level)?)
        }
        PlanAction::Delete { record, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read_level = written(selects.record_by_id(*record, selection)?);
            let delete = write::delete_sql(dialect, owner, expected_version.is_some(), &read_level);
            Program::Delete { delete, version_query: write::version_sql(dialect, owner), read_level }
        }
        PlanAction::CreateMany(plans) => {
            let program = |has_id| {
                let plan = first_plan(plans, has_id);
                plan.map(|plan| compile_plan(dialect, model, plan).map(Box::new)).transpose()
            };
            Program::CreateMany(CreatePrograms { without_id: program(false)?, with_id: program(true)? })
        }
        PlanAction::UpdateMany { record, listing, values, links } => {
            let owner = model.record(*record);
            let matches = MatchStatements { dialect, model, record: owner, listing };
            if links.is_empty() && (!selects.is_guarded() || values.is_empty()) {
                return Ok(Program::UpdateMany {
                    count: selects.count_statement(*record, listing).ok_or_else(uncounted_error)?,
                    update: (!values.is_empty()).then(|| matches.update_sql(&field_ids(values))),
                });
            }
            let found = found_records(owner);
            let by_id = MatchStatements { listing: &found, ..matches };
            let link_fields = field_ids(links).into_iter();
            let link_statements = link_fields.map(|id| {
                let field = owner.field(id);
                by_id.link_statements(field).map(|links| selects.visible_links(field, links))
            });
            Program::UpdateManyLinks {
                find: selects.statement(matches.find_many_sql()),
                links: link_statements.collect::<Result<_>>()?,
                update: by_id.update_sql(&field_ids(values)),
            }
        }
        PlanAction::DeleteMany { record, listing } if selects.is_guarded() => {
            let owner = model.record(*record);
            let matches = MatchStatements { dialect, model, record: owner, listing };
            let by_id = MatchStatements { listing: &found_records(owner), ..matches };
            Program::DeleteFound {
                find: selects.statement(matches.find_many_sql()),
                delete: by_id.delete_sql(),
            }
        }
        PlanAction::DeleteMany { record, listing } => Program::DeleteMany {
            count: selects.count_statement(*record, listing).ok_or_else(uncounted_error)?,
            delete: MatchStatements { dialect, model, record: model.record(*record), listing }.delete_sql(),
        },
        PlanAction::Upsert { record, listing, create, values, links, selection } => {
            let owner = model.record(*record);
            let read_level = written(selects.written_record(*record, selection)?);
            let fields = (field_ids(values), field_ids(links));
            Program::Upsert {
                find: selects
                    .statement(MatchStatements { dialect, model, record: owner, listing }.find_sql()),
                create: Box::new(compile_plan(dialect, model, create)?),
                update: update_program(selects, owner, fields, false, read_level)?,
            }
        }
        PlanAction::Nested(nested) => {
            Program::Nested { read_level: selects.written_record(nested.record, &nested.selection)? }
        }
        PlanAction::Aggregate(aggregate) => Program::Aggregate(selects.record_groups(aggregate)),
        PlanAction::PlainList(_) => Program::PlainList,
    })
}

fn uncounted_error() -> Error {
    Error::internal("a write to many records does not count them")
}

/// The statements that set these fields and links of a record.
fn update_program(
    selects: SelectBuilder<'_>,
    owner: &RecordType,
    (fields, links): (Vec<FieldId>, Vec<FieldId>),
    has_version: bool,
    read_level: SelectLevel,
) -> Result<UpdateProgram> {
    let dialect = selects.dialect;
    let changes = !(fields.is_empty() && links.is_empty());
    let update = changes.then(|| write::update_sql(dialect, owner, &fields, has_version, &read_level));
    let links = links.into_iter().map(|id| {
        let field = owner.field(id);
        write::link_statements(dialect, owner, field).map(|links| selects.visible_links(field, links))
    });
    let version_query = write::version_sql(dialect, owner);
    Ok(UpdateProgram { update, version_query, links: links.collect::<Result<_>>()?, read_level })
}

fn field_ids<T>(values: &[(FieldId, T)]) -> Vec<FieldId> {
    values.iter().map(|(field, _)| *field).collect()
}

/// The programs of the current model, by the shape of their plans.
#[derive(Debug)]
pub struct ProgramCache {
    dialect: Dialect,
    /// The statements that check writes.
    pub checks: CheckCache,
    cached: RwLock<CachedPrograms>,
}

#[derive(Debug)]
struct CachedPrograms {
    /// Held so that no later model can have the same address.
    model: Option<Arc<Model>>,
    programs: Cache<OwnedProgramKey, Arc<Program>>,
}

/// What decides a program: the shape of its plan, and that of the rules of its actor.
#[derive(Hash)]
struct ProgramKey<'s> {
    rules: Option<u128>,
    shape: &'s [u8],
}

/// A [`ProgramKey`] in the cache, with the same hash.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OwnedProgramKey {
    rules: Option<u128>,
    shape: Box<[u8]>,
}

impl Equivalent<OwnedProgramKey> for ProgramKey<'_> {
    fn equivalent(&self, owned: &OwnedProgramKey) -> bool {
        self.rules == owned.rules && *self.shape == *owned.shape
    }
}

impl ProgramCache {
    pub fn new(dialect: Dialect) -> ProgramCache {
        let cached = CachedPrograms { model: None, programs: Cache::new(MAX_PROGRAMS) };
        ProgramCache { dialect, checks: CheckCache::default(), cached: RwLock::new(cached) }
    }

    pub fn get_or_compile(&self, model: &Arc<Model>, plan: &Plan) -> Result<Arc<Program>> {
        let shape = plan_shape(self.dialect, &plan.action);
        let rules = plan.access_view().map(|view| view.rules.shape);
        let key = ProgramKey { rules, shape: shape.as_bytes() };
        if let Some(program) = self.cached.read().get(model, &key) {
            return Ok(program);
        }
        let program = Arc::new(compile_plan(self.dialect, model, plan)?);
        self.cached.write().put(model, &key, program.clone());
        Ok(program)
    }
}

impl CachedPrograms {
    fn is_for_model(&self, model: &Arc<Model>) -> bool {
        self.model.as_ref().is_some_and(|cached| Arc::ptr_eq(cached, model))
    }

    fn get(&self, model: &Arc<Model>, key: &ProgramKey<'_>) -> Option<Arc<Program>> {
        if self.is_for_model(model) { self.programs.get(key).cloned() } else { None }
    }

    fn put(&mut self, model: &Arc<Model>, key: &ProgramKey<'_>, program: Arc<Program>) {
        if !self.is_for_model(model) {
            self.programs.clear();
            self.model = Some(model.clone());
        }
        self.programs.insert(OwnedProgramKey { rules: key.rules, shape: key.shape.into() }, program);
    }
}

/// Equal for two plans of a model exactly if [`compile_plan`] returns the same program for both.
fn plan_shape(dialect: Dialect, action: &PlanAction) -> Cow<'_, StatementShape> {
    let shape = match action {
        // The program depends on the selection alone. Its shape names the record type.
        PlanAction::Get { selection, .. } | PlanAction::ReadImage { selection, .. } => {
            return Cow::Borrowed(&selection.statement_shape);
        }
        PlanAction::SeeImages { record, .. } => {
            let mut shape = StatementShape::of_kind(11, &StatementShape::default());
            shape.push_number(record.0);
            shape
        }
        PlanAction::List { listing, selection, .. } => {
            let mut shape = StatementShape::of_kind(1, &selection.statement_shape);
            listing.push_shape(&mut shape);
            if let Some(bound) = constant_row_bound(dialect, listing) {
                shape.push_number(bound.unsigned_abs() as usize);
            }
            shape
        }
        PlanAction::Create { id, values, links, selection, .. } => {
            let mut shape = StatementShape::of_kind(2, &selection.statement_shape);
            shape.push_flag(id.is_some());
            shape.push_fields(values.iter().map(|(field, _)| *field));
            shape.push_fields(links.iter().map(|(field, _)| *field));
            shape
        }
        PlanAction::Update { values, links, expected_version, selection, .. } => {
            let mut shape = StatementShape::of_kind(3, &selection.statement_shape);
            shape.push_flag(expected_version.is_some());
            shape.push_fields(values.iter().map(|(field, _)| *field));
            shape.push_fields(links.iter().map(|(field, _)| *field));
            shape
        }
        PlanAction::Delete { expected_version, selection, .. } => {
            let mut shape = StatementShape::of_kind(4, &selection.statement_shape);
            shape.push_flag(expected_version.is_some());
            shape
        }
        PlanAction::CreateMany(plans) => {
            let mut shape = StatementShape::of_kind(5, &StatementShape::default());
            for plan in [false, true].map(|has_id| first_plan(plans, has_id)) {
                let part = plan.map(|plan| plan_shape(dialect, &plan.action)).unwrap_or_default();
                shape.push_bytes(part.as_bytes());
            }
            shape
        }
        PlanAction::UpdateMany { record, listing, values, links } => {
            let mut shape = StatementShape::of_kind(6, &StatementShape::default());
            shape.push_number(record.0);
            listing.push_shape(&mut shape);
            shape.push_fields(values.iter().map(|(field, _)| *field));
            shape.push_fields(links.iter().map(|(field, _)| *field));
            shape
        }
        PlanAction::DeleteMany { record, listing } => {
            let mut shape = StatementShape::of_kind(7, &StatementShape::default());
            shape.push_number(record.0);
            listing.push_shape(&mut shape);
            shape
        }
        PlanAction::Upsert { record, listing, create, values, links, selection } => {
            let mut shape = StatementShape::of_kind(8, &selection.statement_shape);
            shape.push_number(record.0);
            listing.push_shape(&mut shape);
            shape.push_bytes(plan_shape(dialect, &create.action).as_bytes());
            shape.push_fields(values.iter().map(|(field, _)| *field));
            shape.push_fields(links.iter().map(|(field, _)| *field));
            shape
        }
        PlanAction::Nested(nested) => StatementShape::of_kind(9, &nested.selection.statement_shape),
        PlanAction::Aggregate(aggregate) => {
            let mut shape = StatementShape::of_kind(10, &StatementShape::default());
            aggregate.push_shape(&mut shape);
            shape
        }
        PlanAction::PlainList(_) => StatementShape::default(),
    };
    Cow::Owned(shape)
}

#[cfg(test)]
mod tests {
    use trefoil_engine::{Authority, Condition, ListSlice, Listing, Operation, PlanLimits, RequestTime};
    use trefoil_model::{SourceFile, Value, parse_schema};

    use super::*;

    /// The number of programs for pages of all sizes, of the books of an author's name.
    fn program_count(dialect: Dialect) -> usize {
        const SCHEMA: &str = "type Author { id: ID! name: String! } type Book { id: ID! author: Author }";
        let files = [SourceFile { name: "a.graphqls".into(), text: SCHEMA.into() }];
        let model = Arc::new(parse_schema(&files, &[]).expect("a schema").0);
        let [author, book] = ["Author", "Book"].map(|name| model.find_record(name).expect("a type"));
        let name = model.record(author).find_field("name").expect("a field");
        let reference = model.record(book).find_field("author").expect("a field");
        let cache = ProgramCache::new(dialect);
        let mut programs: Vec<Arc<Program>> = Vec::new();
        for size in [1, 10, 50, 200, 900] {
            let condition =
                Condition::some_related(reference, vec![Condition::equals(name, Value::from("Ann"))]);
            let slice = ListSlice::Page { page: 1, size };
            let listing = Listing { conditions: vec![condition], slice, ..Listing::default() };
            let operation = Operation::List { record: book, listing, selection: Arc::default() };
            let (limits, time) = (PlanLimits::default(), RequestTime::default());
            let plan =
                Plan::prove(&model, &limits, &Authority::operator(), operation, &time).expect("planned");
            let program = cache.get_or_compile(&model, &plan).expect("compiled");
            if !programs.iter().any(|known| Arc::ptr_eq(known, &program)) {
                programs.push(program);
            }
        }
        programs.len()
    }

    #[test]
    fn only_statements_with_a_constant_bound_differ_by_it() {
        assert_eq!(program_count(Dialect::Sqlite), 1);
        assert_eq!(program_count(Dialect::Postgres), 5);
    }
}
