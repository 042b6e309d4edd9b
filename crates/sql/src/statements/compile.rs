//! A plan's program: the statements it needs, made once for all plans of the same shape.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_128;

use trefoil_engine::plan::{PlanAction, PlannedListing, PlannedSelection};
use trefoil_engine::{CountMode, Plan};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Model};

use crate::statements::dialect::Dialect;
use crate::statements::select::{SelectBuilder, SelectLevel, has_limit_or_offset};
use crate::statements::write;
use crate::statements::write::{LinkStatements, SequenceStatements};

/// How many programs are kept; then all are forgotten and those in use come back by themselves.
const MAX_PROGRAMS: usize = 4_096;

/// The statements of a plan.
#[derive(Debug)]
pub enum Program {
    Get(SelectLevel),
    List {
        level: SelectLevel,
        count: Option<String>,
    },
    Create {
        /// Where the id is chosen and the database does not count on from it by itself.
        sequence: Option<SequenceStatements>,
        insert: String,
        links: Vec<LinkStatements>,
        read_level: SelectLevel,
    },
    Update {
        /// `None` when nothing is to change.
        update: Option<String>,
        version_query: String,
        links: Vec<LinkStatements>,
        read_level: SelectLevel,
    },
    Delete {
        delete: String,
        version_query: String,
        read_level: SelectLevel,
    },
    /// Of a plain list: its statements are the same for all.
    PlainList,
}

impl Program {
    /// Whether it is one statement, and so a snapshot by itself.
    pub fn is_one_statement(&self) -> bool {
        match self {
            Program::Get(level) | Program::List { level, count: None } => level.is_flat(),
            Program::List { count: Some(_), .. }
            | Program::Create { .. }
            | Program::Update { .. }
            | Program::Delete { .. }
            | Program::PlainList => false,
        }
    }
}

/// Pure: what [`Programs`] keeps.
pub fn compile_plan(dialect: Dialect, model: &Model, plan: &Plan) -> Result<Program> {
    let selects = SelectBuilder { dialect, model };
    Ok(match &plan.action {
        PlanAction::Get { record, selection, .. } | PlanAction::ReadImage { record, selection, .. } => {
            Program::Get(selects.record_by_id(*record, selection)?)
        }
        PlanAction::List { record, listing, selection } => Program::List {
            level: selects.record_list(*record, listing, selection)?,
            count: selects.count_sql(*record, listing),
        },
        PlanAction::Create { record, id, values, links, selection } => {
            let owner = model.record(*record);
            let read = selects.written_record(*record, selection)?;
            let insert = write::insert_sql(
                dialect,
                owner,
                id.is_some(),
                &field_ids(values),
                read.returning_columns(),
                1,
            );
            let links =
                field_ids(links).into_iter().map(|id| write::link_statements(dialect, owner.field(id)));
            let counter = id.and_then(|_| write::sequence_statements(dialect, owner));
            Program::Create {
                sequence: counter,
                insert,
                links: links.collect::<Result<_>>()?,
                read_level: read,
            }
        }
        PlanAction::Update { record, values, links, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read = selects.written_record(*record, selection)?;
            let changes = !(values.is_empty() && links.is_empty());
            let update = changes.then(|| {
                write::update_sql(dialect, owner, &field_ids(values), expected_version.is_some(), &read)
            });
            let links =
                field_ids(links).into_iter().map(|id| write::link_statements(dialect, owner.field(id)));
            let version = write::version_sql(dialect, owner);
            Program::Update {
                update,
                version_query: version,
                links: links.collect::<Result<_>>()?,
                read_level: read,
            }
        }
        PlanAction::Delete { record, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read = selects.record_by_id(*record, selection)?;
            let delete = write::delete_sql(dialect, owner, expected_version.is_some(), &read);
            Program::Delete { delete, version_query: write::version_sql(dialect, owner), read_level: read }
        }
        PlanAction::PlainList(_) => Program::PlainList,
    })
}

fn field_ids<T>(values: &[(FieldId, T)]) -> Vec<FieldId> {
    values.iter().map(|(field, _)| *field).collect()
}

/// The programs of the model in use, by the shape of their plans.
#[derive(Debug)]
pub struct ProgramCache {
    dialect: Dialect,
    cached: RwLock<CachedPrograms>,
}

#[derive(Debug, Default)]
struct CachedPrograms {
    /// Held, so that no later model can be at the same address.
    model: Option<Arc<Model>>,
    /// By shape, which is a hash already.
    programs: BTreeMap<u128, Arc<Program>>,
}

impl ProgramCache {
    pub fn new(dialect: Dialect) -> ProgramCache {
        ProgramCache { dialect, cached: RwLock::default() }
    }

    pub fn get_or_compile(&self, model: &Arc<Model>, plan: &Plan) -> Result<Arc<Program>> {
        let shape = shape_hash(&plan.action);
        let kept = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = kept.get(model, shape) {
            return Ok(program);
        }
        drop(kept);
        let program = Arc::new(compile_plan(self.dialect, model, plan)?);
        let mut kept = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        kept.put(model, shape, program.clone());
        Ok(program)
    }
}

impl CachedPrograms {
    fn is_for_model(&self, model: &Arc<Model>) -> bool {
        self.model.as_ref().is_some_and(|known| Arc::ptr_eq(known, model))
    }

    fn get(&self, model: &Arc<Model>, shape: u128) -> Option<Arc<Program>> {
        if self.is_for_model(model) { self.programs.get(&shape).cloned() } else { None }
    }

    fn put(&mut self, model: &Arc<Model>, shape: u128, program: Arc<Program>) {
        if !self.is_for_model(model) || self.programs.len() >= MAX_PROGRAMS {
            self.programs.clear();
            self.model = Some(model.clone());
        }
        self.programs.insert(shape, program);
    }
}

/// Equal for two plans of a model exactly when [`compile`] makes the same of them.
fn shape_hash(action: &PlanAction) -> u128 {
    let mut shape = ShapeBytes(Vec::new());
    match action {
        // There is nothing more to it than the selection, which is of one record type.
        PlanAction::Get { selection, .. } | PlanAction::ReadImage { selection, .. } => {
            return selection.statement_shape;
        }
        PlanAction::List { listing, selection, .. } => {
            shape.push_header(1, selection);
            shape.push_listing(listing);
        }
        PlanAction::Create { id, values, links, selection, .. } => {
            shape.push_header(2, selection);
            shape.push_flag(id.is_some());
            shape.push_fields(values);
            shape.push_fields(links);
        }
        PlanAction::Update { values, links, expected_version, selection, .. } => {
            shape.push_header(3, selection);
            shape.push_flag(expected_version.is_some());
            shape.push_fields(values);
            shape.push_fields(links);
        }
        PlanAction::Delete { expected_version, selection, .. } => {
            shape.push_header(4, selection);
            shape.push_flag(expected_version.is_some());
        }
        PlanAction::PlainList(_) => shape.0.push(5),
    }
    xxh3_128(&shape.0)
}

/// Bytes that spell a shape; every list is preceded by its length.
struct ShapeBytes(Vec<u8>);

impl ShapeBytes {
    fn push_header(&mut self, kind: u8, selection: &PlannedSelection) {
        self.0.reserve(96);
        self.0.push(kind);
        self.0.extend(selection.statement_shape.to_le_bytes());
    }

    fn push_flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn push_number(&mut self, number: usize) {
        self.0.extend((number as u32).to_le_bytes());
    }

    fn push_fields<T>(&mut self, values: &[(FieldId, T)]) {
        self.push_number(values.len());
        values.iter().for_each(|(field, _)| self.push_number(field.0));
    }

    fn push_listing(&mut self, bounds: &PlannedListing) {
        self.push_number(bounds.predicates.len());
        for test in &bounds.predicates {
            test.statement_shape().into_iter().for_each(|number| self.push_number(number));
        }
        self.push_number(bounds.sort_keys.len());
        for order in &bounds.sort_keys {
            self.push_number(order.field.0);
            self.push_flag(order.descending);
        }
        for flag in [has_limit_or_offset(bounds), bounds.with_cursors] {
            self.push_flag(flag);
        }
        self.push_number(match bounds.count {
            CountMode::Skip => 0,
            CountMode::Exact => 1,
            CountMode::UpTo(_) => 2,
        });
        match &bounds.after {
            Some(seen) => self.0.extend(seen.statement_shape()),
            None => self.0.push(0),
        }
    }
}
