//! Compiles a plan into its program, the statements it needs, once for all plans of the same shape.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_128;

use trefoil_engine::plan::{PlanAction, PlannedListing, PlannedSelection};
use trefoil_engine::{CountMode, Plan};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Model};

use crate::statements::dialect::Dialect;
use crate::statements::select::{SelectBuilder, SelectLevel, has_limit_or_offset};
use crate::statements::write::{self, LinkStatements, SequenceStatements};

/// Number of programs at which the cache is cleared; those in use are compiled again.
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
        /// Present if the caller chooses the id and the database does not advance its sequence by itself.
        sequence: Option<SequenceStatements>,
        insert: String,
        links: Vec<LinkStatements>,
        read_level: SelectLevel,
    },
    Update {
        /// `None` if the plan changes nothing.
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
    /// An action on a plain list; its statements do not depend on the plan.
    PlainList,
}

impl Program {
    /// True if it is one statement, which sees one snapshot without a transaction.
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

/// Compiles one plan, without the cache.
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
            let read_level = selects.written_record(*record, selection)?;
            let insert = write::insert_sql(
                dialect,
                owner,
                id.is_some(),
                &field_ids(values),
                read_level.returning_columns(),
                1,
            );
            let links =
                field_ids(links).into_iter().map(|id| write::link_statements(dialect, owner.field(id)));
            let sequence = id.and_then(|_| write::sequence_statements(dialect, owner));
            Program::Create { sequence, insert, links: links.collect::<Result<_>>()?, read_level }
        }
        PlanAction::Update { record, values, links, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read_level = selects.written_record(*record, selection)?;
            let changes = !(values.is_empty() && links.is_empty());
            let update = changes.then(|| {
                write::update_sql(dialect, owner, &field_ids(values), expected_version.is_some(), &read_level)
            });
            let links =
                field_ids(links).into_iter().map(|id| write::link_statements(dialect, owner.field(id)));
            let version_query = write::version_sql(dialect, owner);
            Program::Update { update, version_query, links: links.collect::<Result<_>>()?, read_level }
        }
        PlanAction::Delete { record, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read_level = selects.record_by_id(*record, selection)?;
            let delete = write::delete_sql(dialect, owner, expected_version.is_some(), &read_level);
            Program::Delete { delete, version_query: write::version_sql(dialect, owner), read_level }
        }
        PlanAction::PlainList(_) => Program::PlainList,
    })
}

fn field_ids<T>(values: &[(FieldId, T)]) -> Vec<FieldId> {
    values.iter().map(|(field, _)| *field).collect()
}

/// The programs of the current model, by the shape of their plans.
#[derive(Debug)]
pub struct ProgramCache {
    dialect: Dialect,
    cached: RwLock<CachedPrograms>,
}

#[derive(Debug, Default)]
struct CachedPrograms {
    /// Held so that no later model can have the same address.
    model: Option<Arc<Model>>,
    /// By shape, which already is a hash.
    programs: BTreeMap<u128, Arc<Program>>,
}

impl ProgramCache {
    pub fn new(dialect: Dialect) -> ProgramCache {
        ProgramCache { dialect, cached: RwLock::default() }
    }

    pub fn get_or_compile(&self, model: &Arc<Model>, plan: &Plan) -> Result<Arc<Program>> {
        let shape = shape_hash(&plan.action);
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = cached.get(model, shape) {
            return Ok(program);
        }
        drop(cached);
        let program = Arc::new(compile_plan(self.dialect, model, plan)?);
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        cached.put(model, shape, program.clone());
        Ok(program)
    }
}

impl CachedPrograms {
    fn is_for_model(&self, model: &Arc<Model>) -> bool {
        self.model.as_ref().is_some_and(|cached| Arc::ptr_eq(cached, model))
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

/// Equal for two plans of a model exactly if [`compile_plan`] returns the same program for both.
fn shape_hash(action: &PlanAction) -> u128 {
    let mut shape = ShapeBytes(Vec::new());
    match action {
        // The program depends on the selection alone, which belongs to one record type.
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

/// The bytes of a shape; every list is preceded by its length.
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

    fn push_listing(&mut self, listing: &PlannedListing) {
        self.push_number(listing.predicates.len());
        for predicate in &listing.predicates {
            predicate.statement_shape().into_iter().for_each(|number| self.push_number(number));
        }
        self.push_number(listing.sort_keys.len());
        for key in &listing.sort_keys {
            self.push_number(key.field.0);
            self.push_flag(key.descending);
        }
        for flag in [has_limit_or_offset(listing), listing.with_cursors] {
            self.push_flag(flag);
        }
        self.push_number(match listing.count {
            CountMode::Skip => 0,
            CountMode::Exact => 1,
            CountMode::UpTo(_) => 2,
        });
        match &listing.after {
            Some(position) => self.0.extend(position.statement_shape()),
            None => self.0.push(0),
        }
    }
}
