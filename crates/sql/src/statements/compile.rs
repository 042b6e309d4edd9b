//! A plan's program: the statements it needs, made once for all plans of the same shape.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use xxhash_rust::xxh3::xxh3_128;

use crate::statements::dialect::Dialect;
use crate::statements::select::{Level, Selects, is_sliced};
use crate::statements::write;
use crate::statements::write::{Counter, LinkStatements};
use trefoil_engine::plan::{Action, Bounds, Chosen};
use trefoil_engine::{Count, Plan};
use trefoil_model::error::Result;
use trefoil_model::{FieldId, Model};

/// How many programs are kept; then all are forgotten and those in use come back by themselves.
const KEPT: usize = 4_096;

/// The statements of a plan.
#[derive(Debug)]
pub enum Program {
    Get(Level),
    List {
        level: Level,
        count: Option<String>,
    },
    Create {
        /// Where the id is chosen and the database does not count on from it by itself.
        counter: Option<Counter>,
        insert: String,
        links: Vec<LinkStatements>,
        read: Level,
    },
    Update {
        /// `None` when nothing is to change.
        update: Option<String>,
        version: String,
        links: Vec<LinkStatements>,
        read: Level,
    },
    Delete {
        delete: String,
        version: String,
        read: Level,
    },
    /// Of a plain list: its statements are the same for all.
    Plain,
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
            | Program::Plain => false,
        }
    }
}

/// Pure: what [`Programs`] keeps.
pub fn compile(dialect: Dialect, model: &Model, plan: &Plan) -> Result<Program> {
    let selects = Selects { dialect, model };
    Ok(match &plan.action {
        Action::Get { record, selection, .. } | Action::Changed { record, selection, .. } => {
            Program::Get(selects.get(*record, selection)?)
        }
        Action::List { record, listing, selection } => Program::List {
            level: selects.list(*record, listing, selection)?,
            count: selects.count(*record, listing),
        },
        Action::Create { record, id, values, links, selection } => {
            let owner = model.record(*record);
            let read = selects.written(*record, selection)?;
            let insert = write::insert(dialect, owner, id.is_some(), &fields(values), read.told_by_row(), 1);
            let links = fields(links).into_iter().map(|id| write::links(dialect, owner.field(id)));
            let counter = id.and_then(|_| write::counter(dialect, owner));
            Program::Create { counter, insert, links: links.collect::<Result<_>>()?, read }
        }
        Action::Update { record, values, links, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read = selects.written(*record, selection)?;
            let changes = !(values.is_empty() && links.is_empty());
            let update = changes
                .then(|| write::update(dialect, owner, &fields(values), expected_version.is_some(), &read));
            let links = fields(links).into_iter().map(|id| write::links(dialect, owner.field(id)));
            let version = write::version(dialect, owner);
            Program::Update { update, version, links: links.collect::<Result<_>>()?, read }
        }
        Action::Delete { record, expected_version, selection, .. } => {
            let owner = model.record(*record);
            let read = selects.get(*record, selection)?;
            let delete = write::delete(dialect, owner, expected_version.is_some(), &read);
            Program::Delete { delete, version: write::version(dialect, owner), read }
        }
        Action::Plain(_) => Program::Plain,
    })
}

fn fields<T>(values: &[(FieldId, T)]) -> Vec<FieldId> {
    values.iter().map(|(field, _)| *field).collect()
}

/// The programs of the model in use, by the shape of their plans.
#[derive(Debug)]
pub struct Programs {
    dialect: Dialect,
    kept: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Held, so that no later model can be at the same address.
    model: Option<Arc<Model>>,
    /// By shape, which is a hash already.
    programs: BTreeMap<u128, Arc<Program>>,
}

impl Programs {
    pub fn new(dialect: Dialect) -> Programs {
        Programs { dialect, kept: RwLock::default() }
    }

    pub fn of(&self, model: &Arc<Model>, plan: &Plan) -> Result<Arc<Program>> {
        let shape = shape(&plan.action);
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = kept.get(model, shape) {
            return Ok(program);
        }
        drop(kept);
        let program = Arc::new(compile(self.dialect, model, plan)?);
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.put(model, shape, program.clone());
        Ok(program)
    }
}

impl Kept {
    fn is_of(&self, model: &Arc<Model>) -> bool {
        self.model.as_ref().is_some_and(|known| Arc::ptr_eq(known, model))
    }

    fn get(&self, model: &Arc<Model>, shape: u128) -> Option<Arc<Program>> {
        if self.is_of(model) { self.programs.get(&shape).cloned() } else { None }
    }

    fn put(&mut self, model: &Arc<Model>, shape: u128, program: Arc<Program>) {
        if !self.is_of(model) || self.programs.len() >= KEPT {
            self.programs.clear();
            self.model = Some(model.clone());
        }
        self.programs.insert(shape, program);
    }
}

/// Equal for two plans of a model exactly when [`compile`] makes the same of them.
fn shape(action: &Action) -> u128 {
    let mut shape = Shape(Vec::new());
    match action {
        // There is nothing more to it than the selection, which is of one record type.
        Action::Get { selection, .. } | Action::Changed { selection, .. } => return selection.shape,
        Action::List { listing, selection, .. } => {
            shape.head(1, selection);
            shape.bounds(listing);
        }
        Action::Create { id, values, links, selection, .. } => {
            shape.head(2, selection);
            shape.flag(id.is_some());
            shape.fields(values);
            shape.fields(links);
        }
        Action::Update { values, links, expected_version, selection, .. } => {
            shape.head(3, selection);
            shape.flag(expected_version.is_some());
            shape.fields(values);
            shape.fields(links);
        }
        Action::Delete { expected_version, selection, .. } => {
            shape.head(4, selection);
            shape.flag(expected_version.is_some());
        }
        Action::Plain(_) => shape.0.push(5),
    }
    xxh3_128(&shape.0)
}

/// Bytes that spell a shape; every list is preceded by its length.
struct Shape(Vec<u8>);

impl Shape {
    fn head(&mut self, kind: u8, selection: &Chosen) {
        self.0.reserve(96);
        self.0.push(kind);
        self.0.extend(selection.shape.to_le_bytes());
    }

    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn number(&mut self, number: usize) {
        self.0.extend((number as u32).to_le_bytes());
    }

    fn fields<T>(&mut self, values: &[(FieldId, T)]) {
        self.number(values.len());
        values.iter().for_each(|(field, _)| self.number(field.0));
    }

    fn bounds(&mut self, bounds: &Bounds) {
        self.number(bounds.conditions.len());
        for test in &bounds.conditions {
            test.shape().into_iter().for_each(|number| self.number(number));
        }
        self.number(bounds.order.len());
        for order in &bounds.order {
            self.number(order.field.0);
            self.flag(order.descending);
        }
        for flag in [is_sliced(bounds), bounds.cursors] {
            self.flag(flag);
        }
        self.number(match bounds.count {
            Count::No => 0,
            Count::Exact => 1,
            Count::UpTo(_) => 2,
        });
        match &bounds.after {
            Some(seen) => self.0.extend(seen.shape()),
            None => self.0.push(0),
        }
    }
}
