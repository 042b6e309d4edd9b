//! The statements of a nested write: the SQL and the parameters of each step, and what went wrong if it matched nothing.

use trefoil_engine::plan::{NestedPlan, NestedStep, RecordKey, RecordOwner, RowValues, StepAction, StepItem};
use trefoil_model::error::{Error, PathSegment, Result, Violation};
use trefoil_model::{
    CellValue, FieldId, KeyForm, Link, Model, RecordId, RecordType, RecordTypeId, Relation, StoredValue,
};

use crate::link_table_side::{own_side, side_condition};
use crate::statements::dialect::Dialect;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write;
use crate::statements::write_parts::{WriteKind, WriteParts};

/// A nested write while it runs.
pub struct NestedRun<'a> {
    pub dialect: Dialect,
    pub model: &'a Model,
    /// The ids of the new records by number, as far as they are known.
    new_ids: Vec<Option<RecordId>>,
}

/// What the database says about a step that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepResult {
    /// A new record per item.
    NewRecords,
    /// A row for each item; fewer mean that an item is missing.
    RowPerItem,
    /// Any number of rows.
    AnyRows,
}

/// The values of one item with all ids, to explain why it was refused.
pub struct OwnedParts {
    kind: WriteKind,
    record: RecordTypeId,
    id: Option<RecordId>,
    values: Vec<(FieldId, StoredValue)>,
    links: Vec<(FieldId, Vec<RecordId>)>,
}

impl OwnedParts {
    pub fn parts(&self) -> WriteParts<'_> {
        WriteParts {
            kind: self.kind,
            record: Some(self.record),
            id: self.id.as_ref(),
            expected_version: None,
            values: &self.values,
            links: &self.links,
        }
    }
}

impl<'a> NestedRun<'a> {
    pub fn new(dialect: Dialect, model: &'a Model, plan: &'a NestedPlan) -> NestedRun<'a> {
        NestedRun { dialect, model, new_ids: plan.new_ids.clone() }
    }

    pub fn step_result(step: &NestedStep) -> StepResult {
        match &step.action {
            StepAction::Insert { .. } => StepResult::NewRecords,
            StepAction::Change { .. }
            | StepAction::Check { .. }
            | StepAction::Delete { .. }
            | StepAction::Unlink(_) => StepResult::RowPerItem,
            StepAction::ChangeOthers { .. } | StepAction::Link(_) | StepAction::UnlinkOthers { .. } => {
                StepResult::AnyRows
            }
        }
    }

    /// True if it only reads.
    pub fn is_check(step: &NestedStep) -> bool {
        matches!(step.action, StepAction::Check { .. })
    }

    /// The number of parameters per item of a step whose statement gets longer with its items.
    pub fn insert_width(step: &NestedStep) -> Option<usize> {
        match &step.action {
            StepAction::Insert { fields, has_id } => Some(fields.len() + usize::from(*has_id)),
            StepAction::Change { .. }
            | StepAction::Check { .. }
            | StepAction::Delete { .. }
            | StepAction::Unlink(_)
            | StepAction::ChangeOthers { .. }
            | StepAction::Link(_)
            | StepAction::UnlinkOthers { .. } => None,
        }
    }

    /// The id of a new record that an earlier step wrote.
    pub fn new_id(&self, number: usize) -> Result<&RecordId> {
        let id = self.new_ids.get(number).and_then(Option::as_ref);
        id.ok_or_else(|| Error::internal("a step needs the id of a record that does not exist yet"))
    }

    /// Keeps the id that the database gave to a new record.
    pub fn set_new_id(&mut self, item: &StepItem, id: RecordId) {
        if let Some(RecordKey::New(number)) = item.key {
            self.new_ids[number] = Some(id);
        }
    }

    /// The statement for this number of items of a step.
    pub(super) fn sql(&self, step: &NestedStep, count: usize) -> Result<String> {
        let (dialect, record) = (self.dialect, self.model.record(step.record));
        let table = dialect.quote_name(&record.table);
        let mark = |number: usize| dialect.parameter_mark(number);
        Ok(match &step.action {
            StepAction::Insert { fields, has_id } => {
                write::insert_sql(dialect, record, *has_id, fields, &[], count)
            }
            StepAction::Change { values, owner } => {
                let next = values.values.len() + 1;
                let matching = self.match_condition(record, owner.as_ref(), next)?;
                let set = self.assignments(record, values);
                format!(
                    "UPDATE {table} SET {set} WHERE {matching}{}",
                    self.returning(record.key_form(), "id")
                )
            }
            StepAction::Check { owner, expected_version } => {
                let mut matching = self.match_condition(record, owner.as_ref(), 1)?;
                if expected_version.is_some() {
                    let number = 2 + usize::from(owner.is_some());
                    matching.push_str(&format!(" AND \"_version\" = {}", mark(number)));
                }
                let lock = match dialect {
                    Dialect::Sqlite => "",
                    Dialect::Postgres => " FOR UPDATE",
                };
                let id = dialect.read_key(record.key_form(), "\"id\"");
                format!("SELECT {id} FROM {table} WHERE {matching}{lock}")
            }
            StepAction::Delete { owner } => {
                let matching = self.match_condition(record, Some(owner), 1)?;
                format!("DELETE FROM {table} WHERE {matching}{}", self.returning(record.key_form(), "id"))
            }
            StepAction::ChangeOthers { values, owner, .. } => {
                let next = values.values.len() + 1;
                let belongs = self.owner_condition(record, owner, next)?;
                let others = dialect.is_not_in_list("\"id\"", &mark(next + 1));
                let set = self.assignments(record, values);
                format!("UPDATE {table} SET {set} WHERE {belongs} AND {others}")
            }
            StepAction::Link(field) => {
                let link = self.link(step.record, *field)?;
                let Link { table, own_column, other_column, key_form, .. } = link;
                let is_side = side_condition(dialect, link);
                let [table, own, other] =
                    [table, own_column, other_column].map(|name| dialect.quote_name(name));
                let pairs = match dialect {
                    Dialect::Sqlite => "SELECT ?1, ?2".to_owned(),
                    Dialect::Postgres => {
                        let [own, other] = [record.key_form(), *key_form].map(|form| dialect.key_type(form));
                        format!("SELECT * FROM unnest(CAST($1 AS {own}[]), CAST($2 AS {other}[]))")
                    }
                };
                // Without a WHERE, SQLite's parser takes ON CONFLICT for a join condition.
                format!("INSERT INTO {table} ({own}, {other}) {pairs} WHERE {is_side} ON CONFLICT DO NOTHING")
            }
            StepAction::Unlink(field) => {
                let link = self.link(step.record, *field)?;
                let Link { table, own_column, other_column, key_form, .. } = link;
                let is_side = side_condition(dialect, link);
                let [table, own, other] =
                    [table, own_column, other_column].map(|name| dialect.quote_name(name));
                let (own_id, keys) = (mark(1), dialect.key_table(*key_form, &mark(2), "v"));
                let returning = self.returning(*key_form, other_column);
                format!(
                    "DELETE FROM {table} WHERE {own} = {own_id} AND {other} IN (SELECT v.value FROM {keys}) \
                     AND {is_side}{returning}"
                )
            }
            StepAction::UnlinkOthers { field, .. } => {
                write::link_statements(dialect, record, record.field(*field))?.remove.sql
            }
        })
    }

    /// The side whose links a step changes.
    pub fn link_side(&self, step: &NestedStep) -> Result<Option<String>> {
        match &step.action {
            StepAction::Link(field) | StepAction::Unlink(field) | StepAction::UnlinkOthers { field, .. } => {
                Ok(Some(own_side(self.link(step.record, *field)?)))
            }
            StepAction::Insert { .. }
            | StepAction::Change { .. }
            | StepAction::Check { .. }
            | StepAction::Delete { .. }
            | StepAction::ChangeOthers { .. } => Ok(None),
        }
    }

    /// The parameters for these items of a step, in the order of [`NestedRun::sql`].
    pub fn parameters<'s>(
        &'s self,
        step: &'s NestedStep,
        items: &'s [StepItem],
    ) -> Result<Vec<SqlParameter<'s>>>
    where
        'a: 's,
    {
        let mut parameters = Vec::new();
        match &step.action {
            StepAction::Insert { has_id, .. } => {
                for item in items {
                    if *has_id {
                        parameters.push(SqlParameter::id(self.item_id(item)?));
                    }
                    self.push_values(&item.values, &mut parameters)?;
                }
            }
            StepAction::Change { values, owner } => {
                self.push_values(values, &mut parameters)?;
                parameters.push(self.keys(items, |item| item.key.as_ref())?);
                self.push_owner(owner.as_ref(), &mut parameters)?;
            }
            StepAction::Check { owner, expected_version } => {
                parameters.push(self.keys(items, |item| item.key.as_ref())?);
                self.push_owner(owner.as_ref(), &mut parameters)?;
                parameters.extend(expected_version.map(SqlParameter::integer));
            }
            StepAction::Delete { owner } => {
                parameters.push(self.keys(items, |item| item.key.as_ref())?);
                self.push_owner(Some(owner), &mut parameters)?;
            }
            StepAction::ChangeOthers { values, owner, kept } => {
                self.push_values(values, &mut parameters)?;
                self.push_owner(Some(owner), &mut parameters)?;
                parameters.push(SqlParameter::ids(kept));
            }
            StepAction::Link(_) => match (self.dialect, items) {
                (Dialect::Sqlite, [item]) => {
                    parameters.push(SqlParameter::id(self.item_id(item)?));
                    parameters.push(SqlParameter::id(self.other_id(item)?));
                }
                (Dialect::Sqlite | Dialect::Postgres, items) => {
                    parameters.push(self.keys(items, |item| item.key.as_ref())?);
                    parameters.push(self.keys(items, |item| item.other.as_ref())?);
                }
            },
            StepAction::Unlink(_) => {
                let first = items.first().ok_or_else(|| Error::internal("a step has no items"))?;
                parameters.push(SqlParameter::id(self.item_id(first)?));
                parameters.push(self.keys(items, |item| item.other.as_ref())?);
            }
            StepAction::UnlinkOthers { kept, .. } => {
                let first = items.first().ok_or_else(|| Error::internal("a step has no items"))?;
                parameters.extend([SqlParameter::id(self.item_id(first)?), SqlParameter::ids(kept)]);
            }
        }
        Ok(parameters)
    }

    /// The error for the items that a step did not find.
    pub fn missing_error(&self, step: &NestedStep, items: &[StepItem], found: &[StoredValue]) -> Error {
        let owner = match &step.action {
            StepAction::Change { owner, .. } | StepAction::Check { owner, .. } => owner.as_ref(),
            StepAction::Delete { owner } => Some(owner),
            StepAction::Insert { .. }
            | StepAction::ChangeOthers { .. }
            | StepAction::Link(_)
            | StepAction::Unlink(_)
            | StepAction::UnlinkOthers { .. } => None,
        };
        let is_link = matches!(step.action, StepAction::Unlink(_));
        let has_version = matches!(step.action, StepAction::Check { expected_version: Some(_), .. });
        let mut violations = Vec::new();
        for item in items {
            let Some(RecordKey::Known(id)) = (if is_link { &item.other } else { &item.key }) else {
                continue;
            };
            if found.iter().any(|value| value.as_cell() == id.as_cell()) {
                continue;
            }
            let mut path = item.path.clone();
            // The id stands beside the input of a change.
            if let Some(PathSegment::Field(last)) = path.last_mut()
                && last == "input"
            {
                *last = "id".to_owned();
            }
            let record = match &step.action {
                StepAction::Unlink(field) => self.link_target(step.record, *field),
                StepAction::Insert { .. }
                | StepAction::Change { .. }
                | StepAction::Check { .. }
                | StepAction::Delete { .. }
                | StepAction::ChangeOthers { .. }
                | StepAction::Link(_)
                | StepAction::UnlinkOthers { .. } => self.model.record(step.record),
            };
            let label = record.label().to_lowercase();
            let (code, message) = if has_version {
                ("STALE", format!("the {label} with the id {id} was changed or deleted meanwhile"))
            } else if is_link || owner.is_some() {
                let owner = self.owner_label(step, owner);
                ("NOT_RELATED", format!("this {owner} has no {label} with the id {id}"))
            } else {
                ("REFERENCE", format!("there is no {label} with the id {id}"))
            };
            violations.push(Violation { path, code, message });
        }
        if violations.is_empty() {
            // What was missing is there by now.
            return Error::Unavailable {
                reason: "the records were changed meanwhile; try again".to_owned(),
                retry_after: std::time::Duration::from_secs(1),
            };
        }
        if has_version { Error::Conflict(violations) } else { Error::Invalid(violations) }
    }

    fn owner_label(&self, step: &NestedStep, owner: Option<&RecordOwner>) -> String {
        let record = self.model.record(step.record);
        let owner = match owner {
            Some(RecordOwner::ByReference { field, .. }) => {
                let target = record.field(*field).kind.relation().map(Relation::target);
                target.map_or(record, |target| self.model.record(target))
            }
            Some(RecordOwner::ByLink { record, .. }) => self.model.record(*record),
            None => record,
        };
        owner.label().to_lowercase()
    }

    /// The values of one item, to explain why it was refused.
    pub fn owned_parts(&self, step: &NestedStep, item: &StepItem) -> Result<OwnedParts> {
        let id = match &item.key {
            Some(RecordKey::Known(id)) => Some(id.clone()),
            Some(RecordKey::New(number)) => self.new_ids[*number].clone(),
            None => None,
        };
        let owned = |kind, values, links| OwnedParts { kind, record: step.record, id, values, links };
        Ok(match &step.action {
            StepAction::Insert { .. } => {
                owned(WriteKind::Create, self.owned_values(&item.values)?, Vec::new())
            }
            StepAction::Change { values, .. } => {
                owned(WriteKind::Update, self.owned_values(values)?, Vec::new())
            }
            StepAction::ChangeOthers { values, .. } => {
                owned(WriteKind::UpdateMany, self.owned_values(values)?, Vec::new())
            }
            StepAction::Delete { .. } => owned(WriteKind::Delete, Vec::new(), Vec::new()),
            StepAction::Link(field) => {
                let other = self.other_id(item)?.clone();
                owned(WriteKind::Update, Vec::new(), vec![(*field, vec![other])])
            }
            StepAction::Check { .. } | StepAction::Unlink(_) | StepAction::UnlinkOthers { .. } => {
                owned(WriteKind::Other, Vec::new(), Vec::new())
            }
        })
    }

    /// The error of one item, at its place in the input.
    pub fn item_error(step: &NestedStep, item: &StepItem, mut error: Error) -> Error {
        // The place of an id is known already: its field would repeat it.
        if let (
            StepAction::Link(_) | StepAction::Delete { .. },
            Error::Invalid(found) | Error::Conflict(found),
        ) = (&step.action, &mut error)
        {
            found.iter_mut().for_each(|violation| violation.path.clear());
        }
        error.under_path(&item.path)
    }

    fn owned_values(&self, values: &RowValues) -> Result<Vec<(FieldId, StoredValue)>> {
        let mut owned = values.values.clone();
        for (position, number) in &values.new_keys {
            owned[*position].1 = self.new_id(*number)?.clone().into_stored();
        }
        Ok(owned)
    }

    fn push_values<'s>(&'s self, values: &'s RowValues, into: &mut Vec<SqlParameter<'s>>) -> Result<()> {
        for (position, (_, value)) in values.values.iter().enumerate() {
            let new_key = values.new_keys.iter().find(|(known, _)| *known == position);
            into.push(match new_key {
                Some((_, number)) => SqlParameter::id(self.new_id(*number)?),
                None => SqlParameter::Cell(value.as_cell()),
            });
        }
        Ok(())
    }

    pub(super) fn push_owner<'s>(
        &'s self,
        owner: Option<&'s RecordOwner>,
        into: &mut Vec<SqlParameter<'s>>,
    ) -> Result<()> {
        if let Some(owner) = owner {
            into.push(SqlParameter::id(self.key_id(owner.key())?));
        }
        Ok(())
    }

    fn keys<'s>(
        &'s self,
        items: &'s [StepItem],
        key: impl Fn(&'s StepItem) -> Option<&'s RecordKey>,
    ) -> Result<SqlParameter<'s>> {
        let ids = items.iter().filter_map(key).map(|key| self.key_id(key).map(RecordId::as_cell));
        Ok(SqlParameter::Keys(ids.collect::<Result<Vec<CellValue<'s>>>>()?))
    }

    fn key_id<'s>(&'s self, key: &'s RecordKey) -> Result<&'s RecordId> {
        match key {
            RecordKey::Known(id) => Ok(id),
            RecordKey::New(number) => self.new_id(*number),
        }
    }

    fn item_id<'s>(&'s self, item: &'s StepItem) -> Result<&'s RecordId> {
        let key = item.key.as_ref().ok_or_else(|| Error::internal("an item of a step has no record"))?;
        self.key_id(key)
    }

    fn other_id<'s>(&'s self, item: &'s StepItem) -> Result<&'s RecordId> {
        let key = item.other.as_ref().ok_or_else(|| Error::internal("a link of a step has one side only"))?;
        self.key_id(key)
    }

    /// On PostgreSQL a step with many items returns those that it found; on SQLite it has one.
    fn returning(&self, form: KeyForm, column: &str) -> String {
        match self.dialect {
            Dialect::Sqlite => String::new(),
            Dialect::Postgres => {
                format!(" RETURNING {}", self.dialect.read_key(form, &self.dialect.quote_name(column)))
            }
        }
    }

    fn assignments(&self, record: &RecordType, values: &RowValues) -> String {
        let fields = values.values.iter().map(|(field, _)| record.field(*field)).enumerate();
        let mut list: Vec<String> = fields
            .map(|(i, field)| {
                let column = self.dialect.quote_name(&field.column);
                format!("{column} = {}", self.dialect.parameter_mark(i + 1))
            })
            .collect();
        list.push("\"_version\" = \"_version\" + 1".to_owned());
        list.join(", ")
    }

    /// The records in a list of ids that belong to their owner. The list is the parameter `first`, the owner the next.
    fn match_condition(
        &self,
        record: &RecordType,
        owner: Option<&RecordOwner>,
        first: usize,
    ) -> Result<String> {
        let list = self.dialect.key_table(record.key_form(), &self.dialect.parameter_mark(first), "v");
        let listed = format!("\"id\" IN (SELECT v.value FROM {list})");
        match owner {
            None => Ok(listed),
            Some(owner) => Ok(format!("{listed} AND {}", self.owner_condition(record, owner, first + 1)?)),
        }
    }

    pub(super) fn owner_condition(
        &self,
        record: &RecordType,
        owner: &RecordOwner,
        number: usize,
    ) -> Result<String> {
        let id = self.dialect.parameter_mark(number);
        match owner {
            RecordOwner::ByReference { field, .. } => {
                Ok(format!("{} = {id}", self.dialect.quote_name(&record.field(*field).column)))
            }
            RecordOwner::ByLink { record, field, .. } => {
                let Link { table, own_column, other_column, .. } = self.link(*record, *field)?;
                let [table, own, other] =
                    [table, own_column, other_column].map(|name| self.dialect.quote_name(name));
                Ok(format!("\"id\" IN (SELECT l.{other} FROM {table} AS l WHERE l.{own} = {id})"))
            }
        }
    }

    pub(super) fn link(&self, record: RecordTypeId, field: FieldId) -> Result<&'a Link> {
        let field = self.model.record(record).field(field);
        field.kind.link().ok_or_else(|| Error::internal(format!("`{}` is not a link", field.name)))
    }

    fn link_target(&self, record: RecordTypeId, field: FieldId) -> &'a RecordType {
        let owner = self.model.record(record);
        owner.field(field).kind.link().map_or(owner, |link| self.model.record(link.target))
    }
}
