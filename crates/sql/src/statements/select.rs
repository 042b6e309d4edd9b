//! The statements that read: one for the selected records, and one for each level of children below them.
//!
//! Parameters are numbered in the order of [`listing_parameters`]; below the first level, the keys of the parents
//! come first. In the SQL, `t` is the record's table, `l` a link table, `p` a parent, and `o` the record's table
//! again where `t` occurs only in a subquery that selects ids. The tables of sort keys are `s1` and so on.

use trefoil_engine::cursor::{CursorKey, CursorPosition};
use trefoil_engine::plan::{PlannedChild, PlannedListing, PlannedSelection};
use trefoil_engine::{AccessView, CountMode};
use trefoil_model::error::{Error, Result};
use trefoil_model::naming::names::VERSION_COLUMN;
use trefoil_model::{CellValue, Field, FieldId, KeyForm, Model, RecordType, RecordTypeId, Relation};

use crate::statements::access::key_columns::{joined_column, list_key};
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::groups::aggregate_parameters::aggregate_parameters;
use crate::statements::groups::group_cells::GroupCells;
use crate::statements::indexed_predicate::is_indexed_predicate;
use crate::statements::predicate_sql::predicate_parameters;
use crate::statements::related::selected_rows::RowLimits;
use crate::statements::search::search_guard::SearchGuard;
use crate::statements::sort_sql::SortWriter;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::where_clause::WhereBuilder;

/// One level of a selection and everything below it.
#[derive(Debug)]
pub struct SelectLevel {
    pub statement: ReadStatement,
    /// Rules may refuse what is written, or hide a part of it: it is checked, and read again.
    pub is_guarded: bool,
    /// The record's own columns, quoted, which are the first of the statement: those selected, those of cursors, and
    /// those that lead to the branches.
    pub columns: Vec<String>,
    /// The same columns, not quoted.
    pub column_names: Vec<String>,
    /// Number of columns in the statement.
    pub width: usize,
    /// Below the first level: the column with the key of the parent.
    pub parent_key: usize,
    /// In the order of the selection's children.
    pub branches: Vec<ChildBranch>,
    /// Of a search that reads all records.
    pub search_guard: Option<Box<SearchGuard>>,
    /// Set if the rows are groups of records.
    pub groups: Option<GroupCells>,
}

/// Where the records of a child come from.
#[derive(Debug)]
pub enum ChildBranch {
    /// Only the id of a referenced record is selected, and the parent's own column has it.
    KeyOnly { column: usize },
    /// The rows of `level` whose key equals the parent's `column`.
    Rows { column: usize, level: SelectLevel },
}

impl SelectLevel {
    /// The columns to put in RETURNING; empty if the selection needs more than one statement.
    pub fn returning_columns(&self) -> &[String] {
        if self.is_returned() { &self.columns } else { &[] }
    }

    /// True if the statement that writes can return the whole selection.
    pub fn is_returned(&self) -> bool {
        self.is_flat() && !self.is_guarded
    }

    /// True if it, or a level below it, searches.
    pub fn has_search(&self) -> bool {
        self.search_guard.is_some()
            || self.branches.iter().any(|branch| match branch {
                ChildBranch::KeyOnly { .. } => false,
                ChildBranch::Rows { level, .. } => level.has_search(),
            })
    }

    /// True if groups are read somewhere below it.
    pub fn has_groups(&self) -> bool {
        self.branches.iter().any(|branch| match branch {
            ChildBranch::KeyOnly { .. } => false,
            ChildBranch::Rows { level, .. } => level.groups.is_some() || level.has_groups(),
        })
    }

    /// True if one statement reads the whole selection.
    pub fn is_flat(&self) -> bool {
        self.branches.iter().all(|branch| match branch {
            ChildBranch::KeyOnly { .. } => true,
            ChildBranch::Rows { .. } => false,
        })
    }
}

/// Appends the parameters of a listing, in the order in which the statements number them.
pub fn listing_parameters<'a>(listing: &'a PlannedListing, into: &mut Vec<SqlParameter<'a>>) {
    condition_parameters(listing, into);
    for CursorPosition { values, key } in [&listing.after, &listing.before].into_iter().flatten() {
        into.extend(values.iter().map(|value| SqlParameter::Cell(value.stored().as_cell())));
        if let CursorKey::After(id) = key {
            into.push(SqlParameter::id(id));
        }
    }
}

/// The parameters of a statement for the children of these parents.
pub fn child_parameters<'a>(child: &'a PlannedChild, parents: &[CellValue<'a>]) -> Vec<SqlParameter<'a>> {
    let mut parameters = vec![SqlParameter::Keys(parents.to_vec())];
    if let Some(aggregate) = &child.aggregate {
        aggregate_parameters(aggregate, &mut parameters);
        return parameters;
    }
    let listing = &child.listing;
    listing_parameters(listing, &mut parameters);
    if listing.has_limit_or_offset() {
        parameters.extend([listing.limit.unwrap_or(i64::MAX), listing.offset].map(SqlParameter::integer));
    }
    parameters
}

/// The number of matching records, if it follows from the rows: they begin at the offset and end with the list.
pub fn total_from_rows(listing: &PlannedListing, row_count: i64, has_more: bool) -> Option<u64> {
    let has_cursor = listing.after.is_some() || listing.before.is_some();
    let is_known = !has_cursor && !has_more && (row_count > 0 || listing.offset == 0);
    let total = listing.offset.saturating_add(row_count).unsigned_abs();
    is_known.then_some(match listing.count {
        CountMode::UpTo(most) => total.min(u64::from(most) + 1),
        CountMode::Skip | CountMode::Exact => total,
    })
}

/// The parameters of the count, which ignores the cursor, limit and offset.
pub fn count_parameters(listing: &PlannedListing) -> Vec<SqlParameter<'_>> {
    let mut parameters = match_parameters(listing);
    match listing.count {
        CountMode::UpTo(most) => parameters.push(SqlParameter::integer(i64::from(most) + 1)),
        CountMode::Skip | CountMode::Exact => {}
    }
    parameters
}

/// The parameters of the conditions alone.
pub fn match_parameters(listing: &PlannedListing) -> Vec<SqlParameter<'_>> {
    let mut parameters = Vec::new();
    condition_parameters(listing, &mut parameters);
    parameters
}

fn condition_parameters<'a>(listing: &'a PlannedListing, into: &mut Vec<SqlParameter<'a>>) {
    listing.predicates.iter().for_each(|predicate| predicate_parameters(predicate, into));
}

/// The names of columns, the same quoted, and the branches below them.
type LevelColumns = (Vec<String>, Vec<String>, Vec<ChildBranch>);

/// Builds the statements of one model in one dialect.
#[derive(Debug, Clone, Copy)]
pub struct SelectBuilder<'m> {
    pub dialect: Dialect,
    pub model: &'m Model,
    /// What the actor sees; everything without one.
    pub view: Option<&'m AccessView>,
}

impl SelectBuilder<'_> {
    /// One record; its id is the only parameter.
    pub fn record_by_id(self, record: RecordTypeId, selection: &PlannedSelection) -> Result<SelectLevel> {
        let columns = self.level_columns(self.model.record(record), &PlannedListing::default(), selection)?;
        Ok(self.single_record(record, columns))
    }

    /// One record after a write. Where the write statement does not return its version, that is the last column.
    pub fn written_record(self, record: RecordTypeId, selection: &PlannedSelection) -> Result<SelectLevel> {
        let (mut names, mut columns, branches) =
            self.level_columns(self.model.record(record), &PlannedListing::default(), selection)?;
        match self.dialect {
            Dialect::Sqlite => {
                columns.push(self.dialect.quote_name(VERSION_COLUMN));
                names.push(VERSION_COLUMN.to_owned());
            }
            Dialect::Postgres => {}
        }
        Ok(self.single_record(record, (names, columns, branches)))
    }

    fn single_record(self, record: RecordTypeId, (names, columns, branches): LevelColumns) -> SelectLevel {
        let owner = self.model.record(record);
        let id = self.dialect.parameter_mark(1);
        let sql = format!(
            "SELECT {} FROM {} WHERE t.\"id\" = {id}",
            self.dialect.read_columns(owner, "t.", &columns),
            self.table_alias(owner)
        );
        let statement = self.statement(sql.clone());
        SelectLevel {
            is_guarded: statement.sql != sql,
            statement,
            width: columns.len(),
            parent_key: 0,
            column_names: names,
            columns,
            branches,
            search_guard: None,
            groups: None,
        }
    }

    /// The records of a listing; limit and offset, if it has any, are the last parameters. Those that are counted from
    /// the end come in reverse.
    pub fn record_list(
        self,
        record: RecordTypeId,
        listing: &PlannedListing,
        selection: &PlannedSelection,
    ) -> Result<SelectLevel> {
        let owner = self.model.record(record);
        let (names, columns, branches) = self.level_columns(owner, listing, selection)?;
        let limits = if listing.has_limit_or_offset() { RowLimits::LimitAndOffset } else { RowLimits::None };
        let sql = self.rows_sql(owner, listing, limits, |filter| {
            let order = filter.sort_writer("t");
            let selected = read_columns(order, &columns, listing, selection);
            (selected, Some(order.order_by(&listing.sort_keys, listing.from_end)))
        });
        Ok(SelectLevel {
            statement: self.statement(sql),
            is_guarded: self.is_guarded(),
            width: columns.len(),
            parent_key: 0,
            column_names: names,
            columns,
            branches,
            search_guard: listing.max_search_rows.map(|_| Box::new(self.list_guard(owner, listing))),
            groups: None,
        })
    }

    /// Counts the matching records; with [`CountMode::UpTo`], one more than that number is the last parameter.
    pub fn count_statement(self, record: RecordTypeId, listing: &PlannedListing) -> Option<ReadStatement> {
        self.count_sql(record, listing).map(|sql| self.statement(sql))
    }

    fn count_sql(self, record: RecordTypeId, listing: &PlannedListing) -> Option<String> {
        let owner = self.model.record(record);
        let matching = PlannedListing { predicates: listing.predicates.clone(), ..PlannedListing::default() };
        let rows =
            |limits, selected: &str| self.rows_sql(owner, &matching, limits, |_| (selected.to_owned(), None));
        match listing.count {
            CountMode::Skip => None,
            CountMode::Exact => Some(rows(RowLimits::None, "count(*)")),
            CountMode::UpTo(_) if listing.predicates.is_empty() => {
                Some(self.dialect.count_up_to(&owner.table, &self.dialect.parameter_mark(1)))
            }
            CountMode::UpTo(_) => {
                Some(format!("SELECT count(*) FROM ({}) AS c", rows(RowLimits::Limit, "1")))
            }
        }
    }

    /// The children of many parents, ordered by parent. The parents' keys are the first parameter; limit and offset,
    /// which apply to each parent, are the last ones.
    fn child_level(
        self,
        source: &RelationSource,
        listing: &PlannedListing,
        selection: &PlannedSelection,
    ) -> Result<SelectLevel> {
        let owner = self.model.record(source.record);
        let (names, columns, branches) = self.level_columns(owner, listing, selection)?;
        let order = self.sort_writer(owner, "t");
        let (key, from) = (&source.child_key, source.from.clone() + &order.joins(&listing.sort_keys));
        let mut filter = WhereBuilder::new(self.dialect, self.model, owner, from.clone());
        let keys = filter.next_parameter();
        let sql = if listing.has_limit_or_offset() {
            filter.terms.push(format!("{key} = p.value"));
            filter.add_listing(listing);
            let order = filter.sort_writer("t");
            let ids = format!(
                "SELECT t.\"id\" FROM {from}{} ORDER BY {} LIMIT {} OFFSET {}",
                filter.clause(),
                order.order_by(&listing.sort_keys, listing.from_end),
                filter.next_parameter(),
                filter.next_parameter()
            );
            let parents = self.dialect.key_table(source.key_form, &keys, "p");
            let order = filter.sort_writer("o");
            let joins = order.joins(&listing.sort_keys);
            let from = self.dialect.first_rows_per_parent(&parents, &owner.table, &ids) + &joins;
            format!(
                "SELECT {}, {} FROM {from} ORDER BY {}, {}",
                read_columns(order, &columns, listing, selection),
                self.dialect.read_key(source.key_form, "p.value"),
                self.dialect.key_order(source.key_form, "p.value"),
                order.order_by(&listing.sort_keys, false)
            )
        } else {
            filter.terms.push(self.dialect.is_in_list(ValueComparison::Plain, key, &keys));
            filter.add_listing(listing);
            let order = filter.sort_writer("t");
            format!(
                "SELECT {}, {} FROM {from}{} ORDER BY {key}, {}",
                read_columns(order, &columns, listing, selection),
                self.dialect.read_key(source.key_form, key),
                filter.clause(),
                order.order_by(&listing.sort_keys, false)
            )
        };
        Ok(SelectLevel {
            statement: self.statement(sql),
            is_guarded: self.is_guarded(),
            width: columns.len() + 1,
            parent_key: columns.len(),
            column_names: names,
            columns,
            branches,
            search_guard: listing.max_search_rows.map(|_| Box::new(self.child_guard(source, owner))),
            groups: None,
        })
    }

    pub(super) fn list_guard(self, owner: &RecordType, listing: &PlannedListing) -> SearchGuard {
        let indexed = listing.predicates.iter().enumerate();
        let indexed = indexed.filter(|(_, predicate)| is_indexed_predicate(owner, predicate));
        let positions: Vec<usize> = indexed.map(|(position, _)| position).collect();
        let mut filter = WhereBuilder::new(self.dialect, self.model, owner, self.table_alias(owner));
        for position in &positions {
            filter.add_predicates(&listing.predicates[*position..=*position]);
        }
        let limit = filter.next_parameter();
        let sql = match positions.is_empty() {
            true => self.dialect.count_up_to(&owner.table, &limit),
            false => format!(
                "SELECT count(*) FROM (SELECT 1 FROM {}{} LIMIT {limit}) AS c",
                self.table_alias(owner),
                filter.clause()
            ),
        };
        SearchGuard::new(self.statement(sql), positions, owner)
    }

    /// Counts the children of all parents.
    pub(super) fn child_guard(self, source: &RelationSource, owner: &RecordType) -> SearchGuard {
        let mut filter = WhereBuilder::new(self.dialect, self.model, owner, source.from.clone());
        let keys = filter.next_parameter();
        let is_child = self.dialect.is_in_list(ValueComparison::Plain, &source.child_key, &keys);
        let limit = filter.next_parameter();
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {} WHERE {is_child} LIMIT {limit}) AS c",
            source.from
        );
        SearchGuard::new(self.statement(sql), Vec::new(), owner)
    }

    /// The columns that a statement reads of a record, and the branches below it.
    fn level_columns(
        self,
        owner: &RecordType,
        listing: &PlannedListing,
        selection: &PlannedSelection,
    ) -> Result<LevelColumns> {
        let column = |field: &FieldId| owner.field(*field).column.clone();
        let mut names: Vec<String> = selection.columns.iter().map(column).collect();
        if selection.includes_version {
            names.push(VERSION_COLUMN.to_owned());
        }
        if listing.with_cursors {
            names.extend(listing.sort_keys.iter().map(|key| match key.value.own_field() {
                Some(field) => column(&field),
                None => key.value.name(self.model, owner),
            }));
            names.push("id".to_owned());
        }
        let mut branches = Vec::with_capacity(selection.children.len());
        for child in &selection.children {
            branches.push(self.child_branch(owner, child, &mut names)?);
        }
        if names.is_empty() {
            names.push("id".to_owned());
        }
        let columns = names.iter().map(|name| self.dialect.quote_name(name)).collect();
        Ok((names, columns, branches))
    }

    fn child_branch(
        self,
        owner: &RecordType,
        child: &PlannedChild,
        names: &mut Vec<String>,
    ) -> Result<ChildBranch> {
        let source = self.relation_source(owner, owner.field(child.field))?;
        let column = column_index(names, source.parent_column.clone());
        if let Some(aggregate) = &child.aggregate {
            return Ok(ChildBranch::Rows { column, level: self.child_groups(&source, aggregate) });
        }
        if source.is_reference && self.is_key_only(source.record, &child.selection) {
            return Ok(ChildBranch::KeyOnly { column });
        }
        Ok(ChildBranch::Rows { column, level: self.child_level(&source, &child.listing, &child.selection)? })
    }

    fn is_key_only(self, record: RecordTypeId, selection: &PlannedSelection) -> bool {
        let id = self.model.record(record).id_field();
        selection.children.is_empty() && selection.columns.iter().all(|column| *column == id)
    }

    fn relation_source(self, owner: &RecordType, field: &Field) -> Result<RelationSource> {
        let relation = field.kind.relation();
        let relation =
            relation.ok_or_else(|| Error::internal(format!("`{}` is not a relation", field.name)))?;
        let record = relation.target();
        let table = self.table_alias(self.model.record(record));
        let own = |name: &str| format!("t.{}", self.dialect.quote_name(name));
        let (from, child_key, parent_column) = match relation {
            Relation::Reference(_) => (table, own("id"), field.column.clone()),
            Relation::Inverse(inverse) => {
                let reference = self.model.record(record).field(inverse.field);
                (table, own(&joined_column(reference)), list_key(field))
            }
            Relation::Link(link) => {
                let [link, own, other] = [&link.table, &link.own_column, &link.other_column]
                    .map(|name| self.dialect.quote_name(name));
                (
                    format!("{link} AS l JOIN {table} ON t.\"id\" = l.{other}"),
                    format!("l.{own}"),
                    list_key(field),
                )
            }
        };
        let is_reference = field.kind.is_reference();
        let key_form = if is_reference { self.model.record(record).key_form() } else { owner.key_form() };
        Ok(RelationSource { record, from, child_key, key_form, parent_column, is_reference })
    }

    pub(super) fn table_alias(self, owner: &RecordType) -> String {
        format!("{} AS t", self.dialect.quote_name(&owner.table))
    }

    fn sort_writer<'a>(&'a self, owner: &'a RecordType, alias: &'a str) -> SortWriter<'a> {
        SortWriter { dialect: self.dialect, model: self.model, owner, alias, words: None, is_indexed: false }
    }
}

/// Selects the columns of a level. The values of sort keys that are not in a column of the record have other names.
fn read_columns(
    order: SortWriter<'_>,
    columns: &[String],
    listing: &PlannedListing,
    selection: &PlannedSelection,
) -> String {
    let first_key = selection.columns.len() + usize::from(selection.includes_version);
    let keys = if listing.with_cursors { listing.sort_keys.as_slice() } else { &[] };
    let read = |(position, column): (usize, &String)| {
        let key = position.checked_sub(first_key).and_then(|position| keys.get(position));
        match key.filter(|key| key.value.own_field().is_none()) {
            Some(key) => order.value(&key.value).read_sql,
            None => order.dialect.read_column(order.owner, &format!("{}.", order.alias), column),
        }
    };
    columns.iter().enumerate().map(read).collect::<Vec<_>>().join(", ")
}

/// The tables and keys of a relation.
pub(super) struct RelationSource {
    pub record: RecordTypeId,
    pub from: String,
    /// The expression that a child row has in common with its parent.
    pub child_key: String,
    pub key_form: KeyForm,
    /// The parent's column with the same value.
    parent_column: String,
    is_reference: bool,
}

/// The index of a column, which is added if missing.
fn column_index(columns: &mut Vec<String>, column: String) -> usize {
    columns.iter().position(|name| *name == column).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}
