//! The statements that read: one for the records asked for, and one for each level of records below them.
//!
//! Parameters are numbered in the order of [`parameters`]; below the first level, the keys of the parents
//! come before them. In the text, `t` is the record's table, `l` a link table, `p` a parent, and `o` the
//! record's table again where `t` only chooses from it.

use trefoil_engine::cursor::{CursorPosition, CursorValue};
use trefoil_engine::plan::{PlannedChild, PlannedListing, PlannedSelection, Predicate, is_text_kind};
use trefoil_engine::{ComparisonOp, CountMode, SortKey};
use trefoil_model::error::Result;
use trefoil_model::{CellValue, Field, FieldId, FieldKind, Model, RecordType, RecordTypeId, StoredValue};

use crate::statements::dialect::{Dialect, ValueComparison};

/// One level of a selection and everything below it.
#[derive(Debug)]
pub struct SelectLevel {
    pub sql: String,
    /// What of the record's own columns the statement gives, from its first column on: those selected, those
    /// a cursor is made of, and those that lead to the branches.
    pub columns: Vec<String>,
    /// The same columns by their plain names.
    pub column_names: Vec<String>,
    /// How many columns the statement gives.
    pub width: usize,
    /// Below the first level: where a row says to which parent it belongs.
    pub parent_key: usize,
    /// In the order of the selection's children.
    pub branches: Vec<ChildBranch>,
}

/// Where the records of a child come from.
#[derive(Debug)]
pub enum ChildBranch {
    /// Nothing but the id of a referenced record is asked: the parent's own column has it.
    KeyOnly { column: usize },
    /// The rows of `level` whose key is what the parent's `column` holds.
    Rows { column: usize, level: SelectLevel },
}

impl SelectLevel {
    /// The columns by which a row that is written tells what is asked of it, where it can tell all of that.
    pub fn returning_columns(&self) -> &[String] {
        if self.is_flat() { &self.columns } else { &[] }
    }

    /// Whether one statement answers all of it.
    pub fn is_flat(&self) -> bool {
        self.branches.iter().all(|branch| match branch {
            ChildBranch::KeyOnly { .. } => true,
            ChildBranch::Rows { .. } => false,
        })
    }
}

/// A value for a statement.
#[derive(Debug)]
pub enum SqlParameter<'a> {
    Cell(CellValue<'a>),
    /// A list in one parameter, which each database spells in its own way.
    List(&'a [StoredValue]),
    Integers(&'a [i64]),
}

impl SqlParameter<'_> {
    pub fn integer(number: i64) -> SqlParameter<'static> {
        SqlParameter::Cell(CellValue::Int(number))
    }
}

/// Everything a listing binds, in the order in which the statements number it.
pub fn listing_parameters<'a>(bounds: &'a PlannedListing, into: &mut Vec<SqlParameter<'a>>) {
    condition_parameters(bounds, into);
    if let Some(CursorPosition { values, id }) = &bounds.after {
        into.extend(values.iter().map(|told| SqlParameter::Cell(told.stored().as_cell())));
        into.push(SqlParameter::Cell(CellValue::Int(*id)));
    }
}

/// What a statement for the children of these parents binds.
pub fn child_parameters<'a>(bounds: &'a PlannedListing, parents: &'a [i64]) -> Vec<SqlParameter<'a>> {
    let mut bound = vec![SqlParameter::Integers(parents)];
    listing_parameters(bounds, &mut bound);
    if has_limit_or_offset(bounds) {
        bound.extend([bounds.limit.unwrap_or(i64::MAX), bounds.offset].map(SqlParameter::integer));
    }
    bound
}

/// How many match, where the rows tell it by themselves: they were counted off from the beginning to the end.
pub fn total_from_rows(bounds: &PlannedListing, given: i64, more: bool) -> Option<u64> {
    let is_told = bounds.after.is_none() && !more && (given > 0 || bounds.offset == 0);
    let total = bounds.offset.saturating_add(given).unsigned_abs();
    is_told.then_some(match bounds.count {
        CountMode::UpTo(most) => total.min(u64::from(most) + 1),
        CountMode::Skip | CountMode::Exact => total,
    })
}

/// What the count binds: it counts all that match, wherever the caller is in the list.
pub fn count_parameters(bounds: &PlannedListing) -> Vec<SqlParameter<'_>> {
    let mut bound = Vec::new();
    condition_parameters(bounds, &mut bound);
    match bounds.count {
        CountMode::UpTo(most) => bound.push(SqlParameter::integer(i64::from(most) + 1)),
        CountMode::Skip | CountMode::Exact => {}
    }
    bound
}

fn condition_parameters<'a>(bounds: &'a PlannedListing, into: &mut Vec<SqlParameter<'a>>) {
    into.extend(bounds.predicates.iter().filter_map(|test| match test {
        Predicate::Compare { value, .. } => Some(SqlParameter::Cell(value.as_cell())),
        Predicate::OneOf { values, .. } => Some(SqlParameter::List(values)),
        Predicate::Search { text } | Predicate::SearchPattern { pattern: text } => {
            Some(SqlParameter::Cell(text.as_cell()))
        }
        Predicate::IsNull { .. } | Predicate::NotNull { .. } | Predicate::Never => None,
    }));
}

/// Whether the window is only a part of what matches.
pub fn has_limit_or_offset(bounds: &PlannedListing) -> bool {
    bounds.limit.is_some() || bounds.offset > 0
}

const VERSION_COLUMN: &str = "_version";

/// The names of columns, the same quoted, and what hangs below them.
type LevelColumns = (Vec<String>, Vec<String>, Vec<ChildBranch>);

/// Writes the statements of one model in one dialect.
#[derive(Debug, Clone, Copy)]
pub struct SelectBuilder<'m> {
    pub dialect: Dialect,
    pub model: &'m Model,
}

impl SelectBuilder<'_> {
    /// One record; its id is the only parameter.
    pub fn record_by_id(self, record: RecordTypeId, chosen: &PlannedSelection) -> Result<SelectLevel> {
        let found = self.level_columns(self.model.record(record), &PlannedListing::default(), chosen)?;
        Ok(self.single_record(record, found))
    }

    /// One record that was written. Where the writing statement does not return its version, that is the last column.
    pub fn written_record(self, record: RecordTypeId, chosen: &PlannedSelection) -> Result<SelectLevel> {
        let (mut names, mut columns, branches) =
            self.level_columns(self.model.record(record), &PlannedListing::default(), chosen)?;
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
        SelectLevel { sql, width: columns.len(), parent_key: 0, column_names: names, columns, branches }
    }

    /// The records of a listing; limit and offset are the last parameters where it has any.
    pub fn record_list(
        self,
        record: RecordTypeId,
        bounds: &PlannedListing,
        chosen: &PlannedSelection,
    ) -> Result<SelectLevel> {
        let owner = self.model.record(record);
        let (names, columns, branches) = self.level_columns(owner, bounds, chosen)?;
        let mut filter = WhereBuilder::new(self.dialect, owner, self.table_alias(owner));
        filter.add_listing(bounds);
        let mut sql = format!(
            "SELECT {} FROM {}{}",
            self.dialect.read_columns(owner, "t.", &columns),
            self.table_alias(owner),
            filter.clause()
        );
        sql += &format!(" ORDER BY {}", self.order_by(owner, "t", &bounds.sort_keys));
        if has_limit_or_offset(bounds) {
            sql += &format!(" LIMIT {} OFFSET {}", filter.next_parameter(), filter.next_parameter());
        }
        Ok(SelectLevel { sql, width: columns.len(), parent_key: 0, column_names: names, columns, branches })
    }

    /// How many records match; where they are counted up to a number only, one more than that is the last parameter.
    pub fn count_sql(self, record: RecordTypeId, bounds: &PlannedListing) -> Option<String> {
        let owner = self.model.record(record);
        let mut filter = WhereBuilder::new(self.dialect, owner, self.table_alias(owner));
        filter.add_predicates(&bounds.predicates);
        let from = format!("FROM {}{}", self.table_alias(owner), filter.clause());
        match bounds.count {
            CountMode::Skip => None,
            CountMode::Exact => Some(format!("SELECT count(*) {from}")),
            CountMode::UpTo(_) if bounds.predicates.is_empty() => {
                Some(self.dialect.count_up_to(&owner.table, &filter.next_parameter()))
            }
            CountMode::UpTo(_) => {
                Some(format!("SELECT count(*) FROM (SELECT 1 {from} LIMIT {}) AS c", filter.next_parameter()))
            }
        }
    }

    /// The children of up to a thousand parents, ordered by parent. The parents' keys are the first parameter;
    /// limit and offset, which then hold for each parent by itself, are the last ones.
    fn child_level(
        self,
        source: &RelationSource,
        bounds: &PlannedListing,
        chosen: &PlannedSelection,
    ) -> Result<SelectLevel> {
        let owner = self.model.record(source.record);
        let (names, columns, branches) = self.level_columns(owner, bounds, chosen)?;
        let (key, from) = (&source.child_key, &source.from);
        let mut filter = WhereBuilder::new(self.dialect, owner, from.clone());
        let keys = filter.next_parameter();
        let sql = if has_limit_or_offset(bounds) {
            filter.terms.push(format!("{key} = p.value"));
            filter.add_listing(bounds);
            let first = format!(
                "SELECT t.\"id\" FROM {from}{} ORDER BY {} LIMIT {} OFFSET {}",
                filter.clause(),
                self.order_by(owner, "t", &bounds.sort_keys),
                filter.next_parameter(),
                filter.next_parameter()
            );
            let from = self.dialect.first_rows_per_parent(&keys, &owner.table, &first);
            let order = self.order_by(owner, "o", &bounds.sort_keys);
            format!(
                "SELECT {}, p.value FROM {from} ORDER BY p.value, {order}",
                self.dialect.read_columns(owner, "o.", &columns)
            )
        } else {
            filter.terms.push(self.dialect.is_in_list(ValueComparison::Plain, key, &keys));
            filter.add_listing(bounds);
            let (clause, order) = (filter.clause(), self.order_by(owner, "t", &bounds.sort_keys));
            format!(
                "SELECT {}, {key} FROM {from}{clause} ORDER BY {key}, {order}",
                self.dialect.read_columns(owner, "t.", &columns)
            )
        };
        Ok(SelectLevel {
            sql,
            width: columns.len() + 1,
            parent_key: columns.len(),
            column_names: names,
            columns,
            branches,
        })
    }

    /// What a statement gives of a record, and what hangs below it.
    fn level_columns(
        self,
        owner: &RecordType,
        bounds: &PlannedListing,
        chosen: &PlannedSelection,
    ) -> Result<LevelColumns> {
        let column = |field: &FieldId| owner.field(*field).column.clone();
        let mut names: Vec<String> = chosen.columns.iter().map(column).collect();
        if chosen.includes_version {
            names.push(VERSION_COLUMN.to_owned());
        }
        if bounds.with_cursors {
            names.extend(bounds.sort_keys.iter().map(|order| column(&order.field)));
            names.push("id".to_owned());
        }
        let mut branches = Vec::with_capacity(chosen.children.len());
        for child in &chosen.children {
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
        let source = self.relation_source(owner.field(child.field))?;
        let column = column_index(names, source.parent_column.clone());
        if source.is_reference && self.is_key_only(source.record, &child.selection) {
            return Ok(ChildBranch::KeyOnly { column });
        }
        Ok(ChildBranch::Rows { column, level: self.child_level(&source, &child.listing, &child.selection)? })
    }

    fn is_key_only(self, record: RecordTypeId, chosen: &PlannedSelection) -> bool {
        let id = self.model.record(record).id_field();
        chosen.children.is_empty() && chosen.columns.iter().all(|column| *column == id)
    }

    fn relation_source(self, field: &Field) -> Result<RelationSource> {
        let record = trefoil_engine::plan::relation_target(field)?;
        let table = self.table_alias(self.model.record(record));
        let own = |name: &str| format!("t.{}", self.dialect.quote_name(name));
        let (from, key, parent) = match &field.kind {
            FieldKind::Reference { .. } => (table, own("id"), field.column.clone()),
            FieldKind::Inverse { target: of, field } => {
                (table, own(&self.model.record(*of).field(*field).column), "id".to_owned())
            }
            FieldKind::Link { table: link, own_column, other_column, .. } => {
                let [link, mine, other] =
                    [link, own_column, other_column].map(|name| self.dialect.quote_name(name));
                (
                    format!("{link} AS l JOIN {table} ON t.\"id\" = l.{other}"),
                    format!("l.{mine}"),
                    "id".to_owned(),
                )
            }
            FieldKind::Id
            | FieldKind::Scalar(_)
            | FieldKind::Enum(_)
            | FieldKind::Embedded(_)
            | FieldKind::List(_)
            | FieldKind::Unstored => {
                return Err(trefoil_model::error::Error::internal(format!(
                    "`{}` leads to no record",
                    field.name
                )));
            }
        };
        let is_reference = matches!(field.kind, FieldKind::Reference { .. });
        Ok(RelationSource { record, from, child_key: key, parent_column: parent, is_reference })
    }

    fn table_alias(self, owner: &RecordType) -> String {
        format!("{} AS t", self.dialect.quote_name(&owner.table))
    }

    /// Nulls last both ways, ties by id.
    fn order_by(self, owner: &RecordType, alias: &str, order: &[SortKey]) -> String {
        let mut text = String::new();
        for SortKey { field, descending } in order {
            let field = owner.field(*field);
            text += &self.dialect.sort_key(
                ValueComparison::for_field(field),
                &format!("{alias}.{}", self.dialect.quote_name(&field.column)),
            );
            text += if *descending { " DESC" } else { "" };
            // Where there are no nulls the plain order lets an index do the sorting.
            text += if is_nullable(field) { " NULLS LAST, " } else { ", " };
        }
        text + &format!("{alias}.\"id\"")
    }
}

/// Where the records of a relation are.
struct RelationSource {
    record: RecordTypeId,
    from: String,
    /// What a child row shares with its parent …
    child_key: String,
    /// … and the parent's column that holds the same.
    parent_column: String,
    is_reference: bool,
}

/// Where a column is, added when it is not there yet.
fn column_index(columns: &mut Vec<String>, column: String) -> usize {
    columns.iter().position(|known| *known == column).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}

fn qualified_column(dialect: Dialect, field: &Field) -> String {
    format!("t.{}", dialect.quote_name(&field.column))
}

fn is_nullable(field: &Field) -> bool {
    !field.required && field.kind != FieldKind::Id && field.column != VERSION_COLUMN
}

/// The terms of a WHERE clause and how many parameters the statement has so far.
struct WhereBuilder<'m> {
    dialect: Dialect,
    owner: &'m RecordType,
    /// Where the statement reads `t` from.
    from: String,
    terms: Vec<String>,
    parameter_count: usize,
}

impl<'m> WhereBuilder<'m> {
    fn new(dialect: Dialect, owner: &'m RecordType, from: String) -> Self {
        WhereBuilder { dialect, owner, from, terms: Vec::new(), parameter_count: 0 }
    }

    fn next_parameter(&mut self) -> String {
        self.parameter_count += 1;
        self.dialect.parameter_mark(self.parameter_count)
    }

    fn clause(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!(" WHERE {}", self.terms.join(" AND ")) }
    }

    fn add_listing(&mut self, bounds: &PlannedListing) {
        self.add_predicates(&bounds.predicates);
        if let Some(seen) = &bounds.after {
            let values: Vec<String> = seen.values.iter().map(|_| self.next_parameter()).collect();
            let id = self.next_parameter();
            let values = bounds.sort_keys.iter().zip(&seen.values).zip(values);
            let values: Vec<String> = values
                .map(|((order, told), value)| match told {
                    CursorValue::Full(_) => value,
                    CursorValue::Prefix(_) => self.full_cursor_value(order, &value, &id),
                })
                .collect();
            let term = self.after_cursor(&bounds.sort_keys, &values, &id);
            self.terms.push(term);
        }
    }

    /// A long text of which only the beginning is told: as the record has it. Where that is gone, not in the list or
    /// begins otherwise by now, a value from which nothing is passed over; what begins alike comes again. The record is
    /// looked for in the list itself, with all its terms so far: a cursor of a client's own making must not tell where a
    /// record is that the list does not show.
    fn full_cursor_value(&self, order: &SortKey, beginning: &str, id: &str) -> String {
        let own = qualified_column(self.dialect, self.owner.field(order.field));
        let end = self.dialect.prefix_upper_bound(beginning);
        let otherwise = if order.descending { &end } else { beginning };
        let listed: String = self.terms.iter().map(|term| format!(" AND {term}")).collect();
        format!(
            "COALESCE((SELECT {own} FROM {} WHERE t.\"id\" = {id} AND {own} >= {beginning} \
             AND {own} <= {end}{listed}), {otherwise})",
            self.from
        )
    }

    fn add_predicates(&mut self, tests: &[Predicate]) {
        for test in tests {
            let term = self.predicate_sql(test);
            self.terms.push(term);
        }
    }

    fn predicate_sql(&mut self, test: &Predicate) -> String {
        match test {
            Predicate::Compare { field, op, .. } => self.compare_sql(*field, *op),
            Predicate::OneOf { field, or_null, .. } => {
                let field = self.owner.field(*field);
                let (comparison, own) =
                    (ValueComparison::for_field(field), qualified_column(self.dialect, field));
                let values = self.next_parameter();
                let listed = self.dialect.is_in_list(comparison, &own, &values);
                if *or_null { format!("({listed} OR {own} IS NULL)") } else { listed }
            }
            Predicate::IsNull { field } => {
                format!("{} IS NULL", qualified_column(self.dialect, self.owner.field(*field)))
            }
            Predicate::NotNull { field } => {
                format!("{} IS NOT NULL", qualified_column(self.dialect, self.owner.field(*field)))
            }
            Predicate::Search { .. } => self.search_sql(Dialect::contains_lowercase),
            Predicate::SearchPattern { .. } => self.search_sql(Dialect::matches_pattern),
            Predicate::Never => "1 = 0".to_owned(),
        }
    }

    /// Whether any text of the record `holds` what is looked for.
    fn search_sql(&mut self, holds: fn(Dialect, &str, &str) -> String) -> String {
        let (dialect, text) = (self.dialect, self.next_parameter());
        let fields = self.owner.fields.iter().filter(|field| field.is_stored() && is_text_kind(&field.kind));
        let terms: Vec<String> =
            fields.map(|field| holds(dialect, &qualified_column(dialect, field), &text)).collect();
        format!("({})", terms.join(" OR "))
    }

    /// What is null differs from every value, and is neither less nor greater than any.
    fn compare_sql(&mut self, field: FieldId, op: ComparisonOp) -> String {
        let field = self.owner.field(field);
        let (comparison, dialect) = (ValueComparison::for_field(field), self.dialect);
        let (left, right) = (qualified_column(dialect, field), self.next_parameter());
        let same = || (dialect.equality_key(comparison, &left), dialect.equality_key(comparison, &right));
        let ordered = |sign: &str| {
            let [left, right] = [&left, &right].map(|value| dialect.sort_key(comparison, value));
            format!("{left} {sign} {right}")
        };
        match op {
            // A list arrives as `Test::OneOf`; what is left of `In` is the list of one.
            ComparisonOp::Eq | ComparisonOp::In => format!("{} = {}", same().0, same().1),
            ComparisonOp::Ne if is_nullable(field) => dialect.null_safe_different(&same().0, &same().1),
            ComparisonOp::Ne => format!("{} <> {}", same().0, same().1),
            ComparisonOp::Lt => ordered("<"),
            ComparisonOp::Lte => ordered("<="),
            ComparisonOp::Gt => ordered(">"),
            ComparisonOp::Gte => ordered(">="),
            ComparisonOp::Contains => dialect.contains(&left, &right),
        }
    }

    /// Whether a record comes after the one with these values and this id: by the first field of the order,
    /// and where that is the same, by the rest of it.
    fn after_cursor(&self, order: &[SortKey], values: &[String], id: &str) -> String {
        let ([first, order @ ..], [value, values @ ..]) = (order, values) else {
            return format!("t.\"id\" > {id}");
        };
        let field = self.owner.field(first.field);
        let key = |value: &str| self.dialect.sort_key(ValueComparison::for_field(field), value);
        let (mine, theirs) = (key(&qualified_column(self.dialect, field)), key(value));
        let sign = if first.descending { "<" } else { ">" };
        let rest = self.after_cursor(order, values, id);
        if is_nullable(field) {
            let same = self.dialect.null_safe_equal(&mine, &theirs);
            format!(
                "({mine} {sign} {theirs} OR ({mine} IS NULL AND {theirs} IS NOT NULL) OR ({same} AND {rest}))"
            )
        } else {
            // The first half alone is what an index can start from.
            format!("({mine} {sign}= {theirs} AND ({mine} {sign} {theirs} OR {rest}))")
        }
    }
}
