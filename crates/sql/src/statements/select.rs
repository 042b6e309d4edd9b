//! The statements that read: one for the records asked for, and one for each level of records below them.
//!
//! Parameters are numbered in the order of [`parameters`]; below the first level, the keys of the parents
//! come before them. In the text, `t` is the record's table, `l` a link table, `p` a parent, and `o` the
//! record's table again where `t` only chooses from it.

use crate::statements::dialect::{Comparison, Dialect};
use trefoil_engine::cursor::{Seen, Told};
use trefoil_engine::plan::{Bounds, Chosen, ChosenChild, Test, holds_text};
use trefoil_engine::{Count, Op, Order};
use trefoil_model::error::Result;
use trefoil_model::{Cell, Field, FieldId, Kind, Model, RecordType, Stored, TypeId};

/// One level of a selection and everything below it.
#[derive(Debug)]
pub struct Level {
    pub sql: String,
    /// What of the record's own columns the statement gives, from its first column on: those selected, those
    /// a cursor is made of, and those that lead to the branches.
    pub columns: Vec<String>,
    /// The same columns by their plain names.
    pub names: Vec<String>,
    /// How many columns the statement gives.
    pub width: usize,
    /// Below the first level: where a row says to which parent it belongs.
    pub key: usize,
    /// In the order of the selection's children.
    pub branches: Vec<Branch>,
}

/// Where the records of a child come from.
#[derive(Debug)]
pub enum Branch {
    /// Nothing but the id of a referenced record is asked: the parent's own column has it.
    Key { column: usize },
    /// The rows of `level` whose key is what the parent's `column` holds.
    Rows { column: usize, level: Level },
}

impl Level {
    /// The columns by which a row that is written tells what is asked of it, where it can tell all of that.
    pub fn told_by_row(&self) -> &[String] {
        if self.is_flat() { &self.columns } else { &[] }
    }

    /// Whether one statement answers all of it.
    pub fn is_flat(&self) -> bool {
        self.branches.iter().all(|branch| match branch {
            Branch::Key { .. } => true,
            Branch::Rows { .. } => false,
        })
    }
}

/// A value for a statement.
#[derive(Debug)]
pub enum Parameter<'a> {
    Cell(Cell<'a>),
    /// A list in one parameter, which each database spells in its own way.
    List(&'a [Stored]),
    Integers(&'a [i64]),
}

impl Parameter<'_> {
    pub fn integer(number: i64) -> Parameter<'static> {
        Parameter::Cell(Cell::Int(number))
    }
}

/// Everything a listing binds, in the order in which the statements number it.
pub fn parameters<'a>(bounds: &'a Bounds, into: &mut Vec<Parameter<'a>>) {
    condition_parameters(bounds, into);
    if let Some(Seen { values, id }) = &bounds.after {
        into.extend(values.iter().map(|told| Parameter::Cell(told.stored().as_cell())));
        into.push(Parameter::Cell(Cell::Int(*id)));
    }
}

/// What a statement for the children of these parents binds.
pub fn child_parameters<'a>(bounds: &'a Bounds, parents: &'a [i64]) -> Vec<Parameter<'a>> {
    let mut bound = vec![Parameter::Integers(parents)];
    parameters(bounds, &mut bound);
    if is_sliced(bounds) {
        bound.extend([bounds.limit.unwrap_or(i64::MAX), bounds.offset].map(Parameter::integer));
    }
    bound
}

/// How many match, where the rows tell it by themselves: they were counted off from the beginning to the end.
pub fn told_total(bounds: &Bounds, given: i64, more: bool) -> Option<u64> {
    let is_told = bounds.after.is_none() && !more && (given > 0 || bounds.offset == 0);
    let total = bounds.offset.saturating_add(given).unsigned_abs();
    is_told.then_some(match bounds.count {
        Count::UpTo(most) => total.min(u64::from(most) + 1),
        Count::No | Count::Exact => total,
    })
}

/// What the count binds: it counts all that match, wherever the caller is in the list.
pub fn count_parameters(bounds: &Bounds) -> Vec<Parameter<'_>> {
    let mut bound = Vec::new();
    condition_parameters(bounds, &mut bound);
    match bounds.count {
        Count::UpTo(most) => bound.push(Parameter::integer(i64::from(most) + 1)),
        Count::No | Count::Exact => {}
    }
    bound
}

fn condition_parameters<'a>(bounds: &'a Bounds, into: &mut Vec<Parameter<'a>>) {
    into.extend(bounds.conditions.iter().filter_map(|test| match test {
        Test::Compare { value, .. } => Some(Parameter::Cell(value.as_cell())),
        Test::OneOf { values, .. } => Some(Parameter::List(values)),
        Test::Search { text } | Test::SearchPattern { pattern: text } => {
            Some(Parameter::Cell(text.as_cell()))
        }
        Test::IsNull { .. } | Test::NotNull { .. } | Test::Nothing => None,
    }));
}

/// Whether the window is only a part of what matches.
pub fn is_sliced(bounds: &Bounds) -> bool {
    bounds.limit.is_some() || bounds.offset > 0
}

const VERSION: &str = "_version";

/// The names of columns, the same quoted, and what hangs below them.
type Columns = (Vec<String>, Vec<String>, Vec<Branch>);

/// Writes the statements of one model in one dialect.
#[derive(Debug, Clone, Copy)]
pub struct Selects<'m> {
    pub dialect: Dialect,
    pub model: &'m Model,
}

impl Selects<'_> {
    /// One record; its id is the only parameter.
    pub fn get(self, record: TypeId, chosen: &Chosen) -> Result<Level> {
        let found = self.columns(self.model.record(record), &Bounds::default(), chosen)?;
        Ok(self.one(record, found))
    }

    /// One record that was written. Where the writing statement does not return its version, that is the last column.
    pub fn written(self, record: TypeId, chosen: &Chosen) -> Result<Level> {
        let (mut names, mut columns, branches) =
            self.columns(self.model.record(record), &Bounds::default(), chosen)?;
        match self.dialect {
            Dialect::Sqlite => {
                columns.push(self.dialect.quote(VERSION));
                names.push(VERSION.to_owned());
            }
            Dialect::Postgres => {}
        }
        Ok(self.one(record, (names, columns, branches)))
    }

    fn one(self, record: TypeId, (names, columns, branches): Columns) -> Level {
        let owner = self.model.record(record);
        let id = self.dialect.parameter(1);
        let sql = format!(
            "SELECT {} FROM {} WHERE t.\"id\" = {id}",
            self.dialect.all(owner, "t.", &columns),
            self.table(owner)
        );
        Level { sql, width: columns.len(), key: 0, names, columns, branches }
    }

    /// The records of a listing; limit and offset are the last parameters where it has any.
    pub fn list(self, record: TypeId, bounds: &Bounds, chosen: &Chosen) -> Result<Level> {
        let owner = self.model.record(record);
        let (names, columns, branches) = self.columns(owner, bounds, chosen)?;
        let mut filter = Filter::new(self.dialect, owner, self.table(owner));
        filter.add(bounds);
        let mut sql = format!(
            "SELECT {} FROM {}{}",
            self.dialect.all(owner, "t.", &columns),
            self.table(owner),
            filter.clause()
        );
        sql += &format!(" ORDER BY {}", self.order(owner, "t", &bounds.order));
        if is_sliced(bounds) {
            sql += &format!(" LIMIT {} OFFSET {}", filter.parameter(), filter.parameter());
        }
        Ok(Level { sql, width: columns.len(), key: 0, names, columns, branches })
    }

    /// How many records match; where they are counted up to a number only, one more than that is the last parameter.
    pub fn count(self, record: TypeId, bounds: &Bounds) -> Option<String> {
        let owner = self.model.record(record);
        let mut filter = Filter::new(self.dialect, owner, self.table(owner));
        filter.add_conditions(&bounds.conditions);
        let from = format!("FROM {}{}", self.table(owner), filter.clause());
        match bounds.count {
            Count::No => None,
            Count::Exact => Some(format!("SELECT count(*) {from}")),
            Count::UpTo(_) if bounds.conditions.is_empty() => {
                Some(self.dialect.count_up_to(&owner.table, &filter.parameter()))
            }
            Count::UpTo(_) => {
                Some(format!("SELECT count(*) FROM (SELECT 1 {from} LIMIT {}) AS c", filter.parameter()))
            }
        }
    }

    /// The children of up to a thousand parents, ordered by parent. The parents' keys are the first parameter;
    /// limit and offset, which then hold for each parent by itself, are the last ones.
    fn child(self, source: &Source, bounds: &Bounds, chosen: &Chosen) -> Result<Level> {
        let owner = self.model.record(source.record);
        let (names, columns, branches) = self.columns(owner, bounds, chosen)?;
        let (key, from) = (&source.key, &source.from);
        let mut filter = Filter::new(self.dialect, owner, from.clone());
        let keys = filter.parameter();
        let sql = if is_sliced(bounds) {
            filter.terms.push(format!("{key} = p.value"));
            filter.add(bounds);
            let first = format!(
                "SELECT t.\"id\" FROM {from}{} ORDER BY {} LIMIT {} OFFSET {}",
                filter.clause(),
                self.order(owner, "t", &bounds.order),
                filter.parameter(),
                filter.parameter()
            );
            let from = self.dialect.first_of_each(&keys, &owner.table, &first);
            let order = self.order(owner, "o", &bounds.order);
            format!(
                "SELECT {}, p.value FROM {from} ORDER BY p.value, {order}",
                self.dialect.all(owner, "o.", &columns)
            )
        } else {
            filter.terms.push(self.dialect.one_of(Comparison::Plain, key, &keys));
            filter.add(bounds);
            let (clause, order) = (filter.clause(), self.order(owner, "t", &bounds.order));
            format!(
                "SELECT {}, {key} FROM {from}{clause} ORDER BY {key}, {order}",
                self.dialect.all(owner, "t.", &columns)
            )
        };
        Ok(Level { sql, width: columns.len() + 1, key: columns.len(), names, columns, branches })
    }

    /// What a statement gives of a record, and what hangs below it.
    fn columns(self, owner: &RecordType, bounds: &Bounds, chosen: &Chosen) -> Result<Columns> {
        let column = |field: &FieldId| owner.field(*field).column.clone();
        let mut names: Vec<String> = chosen.columns.iter().map(column).collect();
        if chosen.versioned {
            names.push(VERSION.to_owned());
        }
        if bounds.cursors {
            names.extend(bounds.order.iter().map(|order| column(&order.field)));
            names.push("id".to_owned());
        }
        let mut branches = Vec::with_capacity(chosen.children.len());
        for child in &chosen.children {
            branches.push(self.branch(owner, child, &mut names)?);
        }
        if names.is_empty() {
            names.push("id".to_owned());
        }
        let columns = names.iter().map(|name| self.dialect.quote(name)).collect();
        Ok((names, columns, branches))
    }

    fn branch(self, owner: &RecordType, child: &ChosenChild, names: &mut Vec<String>) -> Result<Branch> {
        let source = self.source(owner.field(child.field))?;
        let column = position(names, source.parent.clone());
        if source.is_reference && self.is_key_only(source.record, &child.selection) {
            return Ok(Branch::Key { column });
        }
        Ok(Branch::Rows { column, level: self.child(&source, &child.listing, &child.selection)? })
    }

    fn is_key_only(self, record: TypeId, chosen: &Chosen) -> bool {
        let id = self.model.record(record).id_field();
        chosen.children.is_empty() && chosen.columns.iter().all(|column| *column == id)
    }

    fn source(self, field: &Field) -> Result<Source> {
        let record = trefoil_engine::plan::target(field)?;
        let table = self.table(self.model.record(record));
        let own = |name: &str| format!("t.{}", self.dialect.quote(name));
        let (from, key, parent) = match &field.kind {
            Kind::Reference { .. } => (table, own("id"), field.column.clone()),
            Kind::Inverse { of, field } => {
                (table, own(&self.model.record(*of).field(*field).column), "id".to_owned())
            }
            Kind::Link { table: link, own_column, other_column, .. } => {
                let [link, mine, other] =
                    [link, own_column, other_column].map(|name| self.dialect.quote(name));
                (
                    format!("{link} AS l JOIN {table} ON t.\"id\" = l.{other}"),
                    format!("l.{mine}"),
                    "id".to_owned(),
                )
            }
            Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::List(_)
            | Kind::Unstored => {
                return Err(trefoil_model::error::Error::internal(format!(
                    "`{}` leads to no record",
                    field.name
                )));
            }
        };
        let is_reference = matches!(field.kind, Kind::Reference { .. });
        Ok(Source { record, from, key, parent, is_reference })
    }

    fn table(self, owner: &RecordType) -> String {
        format!("{} AS t", self.dialect.quote(&owner.table))
    }

    /// Nulls last both ways, ties by id.
    fn order(self, owner: &RecordType, alias: &str, order: &[Order]) -> String {
        let mut text = String::new();
        for Order { field, descending } in order {
            let field = owner.field(*field);
            text += &self
                .dialect
                .sort_key(Comparison::of(field), &format!("{alias}.{}", self.dialect.quote(&field.column)));
            text += if *descending { " DESC" } else { "" };
            // Where there are no nulls the plain order lets an index do the sorting.
            text += if is_nullable(field) { " NULLS LAST, " } else { ", " };
        }
        text + &format!("{alias}.\"id\"")
    }
}

/// Where the records of a relation are.
struct Source {
    record: TypeId,
    from: String,
    /// What a child row shares with its parent …
    key: String,
    /// … and the parent's column that holds the same.
    parent: String,
    is_reference: bool,
}

/// Where a column is, added when it is not there yet.
fn position(columns: &mut Vec<String>, column: String) -> usize {
    columns.iter().position(|known| *known == column).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}

fn column(dialect: Dialect, field: &Field) -> String {
    format!("t.{}", dialect.quote(&field.column))
}

fn is_nullable(field: &Field) -> bool {
    !field.required && field.kind != Kind::Id && field.column != VERSION
}

/// The terms of a WHERE clause and how many parameters the statement has so far.
struct Filter<'m> {
    dialect: Dialect,
    owner: &'m RecordType,
    /// Where the statement reads `t` from.
    from: String,
    terms: Vec<String>,
    parameters: usize,
}

impl<'m> Filter<'m> {
    fn new(dialect: Dialect, owner: &'m RecordType, from: String) -> Self {
        Filter { dialect, owner, from, terms: Vec::new(), parameters: 0 }
    }

    fn parameter(&mut self) -> String {
        self.parameters += 1;
        self.dialect.parameter(self.parameters)
    }

    fn clause(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!(" WHERE {}", self.terms.join(" AND ")) }
    }

    fn add(&mut self, bounds: &Bounds) {
        self.add_conditions(&bounds.conditions);
        if let Some(seen) = &bounds.after {
            let values: Vec<String> = seen.values.iter().map(|_| self.parameter()).collect();
            let id = self.parameter();
            let values = bounds.order.iter().zip(&seen.values).zip(values);
            let values: Vec<String> = values
                .map(|((order, told), value)| match told {
                    Told::Whole(_) => value,
                    Told::Beginning(_) => self.continued(order, &value, &id),
                })
                .collect();
            let term = self.after(&bounds.order, &values, &id);
            self.terms.push(term);
        }
    }

    /// A long text of which only the beginning is told: as the record has it. Where that is gone, not in the list or
    /// begins otherwise by now, a value from which nothing is passed over; what begins alike comes again. The record is
    /// looked for in the list itself, with all its terms so far: a cursor of a client's own making must not tell where a
    /// record is that the list does not show.
    fn continued(&self, order: &Order, beginning: &str, id: &str) -> String {
        let own = column(self.dialect, self.owner.field(order.field));
        let end = self.dialect.last_beginning(beginning);
        let otherwise = if order.descending { &end } else { beginning };
        let listed: String = self.terms.iter().map(|term| format!(" AND {term}")).collect();
        format!(
            "COALESCE((SELECT {own} FROM {} WHERE t.\"id\" = {id} AND {own} >= {beginning} \
             AND {own} <= {end}{listed}), {otherwise})",
            self.from
        )
    }

    fn add_conditions(&mut self, tests: &[Test]) {
        for test in tests {
            let term = self.test(test);
            self.terms.push(term);
        }
    }

    fn test(&mut self, test: &Test) -> String {
        match test {
            Test::Compare { field, op, .. } => self.compare(*field, *op),
            Test::OneOf { field, or_null, .. } => {
                let field = self.owner.field(*field);
                let (comparison, own) = (Comparison::of(field), column(self.dialect, field));
                let values = self.parameter();
                let listed = self.dialect.one_of(comparison, &own, &values);
                if *or_null { format!("({listed} OR {own} IS NULL)") } else { listed }
            }
            Test::IsNull { field } => format!("{} IS NULL", column(self.dialect, self.owner.field(*field))),
            Test::NotNull { field } => {
                format!("{} IS NOT NULL", column(self.dialect, self.owner.field(*field)))
            }
            Test::Search { .. } => self.search(Dialect::contains_small),
            Test::SearchPattern { .. } => self.search(Dialect::fits),
            Test::Nothing => "1 = 0".to_owned(),
        }
    }

    /// Whether any text of the record `holds` what is looked for.
    fn search(&mut self, holds: fn(Dialect, &str, &str) -> String) -> String {
        let (dialect, text) = (self.dialect, self.parameter());
        let fields = self.owner.fields.iter().filter(|field| field.is_stored() && holds_text(&field.kind));
        let terms: Vec<String> = fields.map(|field| holds(dialect, &column(dialect, field), &text)).collect();
        format!("({})", terms.join(" OR "))
    }

    /// What is null differs from every value, and is neither less nor greater than any.
    fn compare(&mut self, field: FieldId, op: Op) -> String {
        let field = self.owner.field(field);
        let (comparison, dialect) = (Comparison::of(field), self.dialect);
        let (left, right) = (column(dialect, field), self.parameter());
        let same = || (dialect.identity(comparison, &left), dialect.identity(comparison, &right));
        let ordered = |sign: &str| {
            let [left, right] = [&left, &right].map(|value| dialect.sort_key(comparison, value));
            format!("{left} {sign} {right}")
        };
        match op {
            // A list arrives as `Test::OneOf`; what is left of `In` is the list of one.
            Op::Eq | Op::In => format!("{} = {}", same().0, same().1),
            Op::Ne if is_nullable(field) => dialect.differs(&same().0, &same().1),
            Op::Ne => format!("{} <> {}", same().0, same().1),
            Op::Lt => ordered("<"),
            Op::Lte => ordered("<="),
            Op::Gt => ordered(">"),
            Op::Gte => ordered(">="),
            Op::Contains => dialect.contains(&left, &right),
        }
    }

    /// Whether a record comes after the one with these values and this id: by the first field of the order,
    /// and where that is the same, by the rest of it.
    fn after(&self, order: &[Order], values: &[String], id: &str) -> String {
        let ([first, order @ ..], [value, values @ ..]) = (order, values) else {
            return format!("t.\"id\" > {id}");
        };
        let field = self.owner.field(first.field);
        let key = |value: &str| self.dialect.sort_key(Comparison::of(field), value);
        let (mine, theirs) = (key(&column(self.dialect, field)), key(value));
        let sign = if first.descending { "<" } else { ">" };
        let rest = self.after(order, values, id);
        if is_nullable(field) {
            let same = self.dialect.same(&mine, &theirs);
            format!(
                "({mine} {sign} {theirs} OR ({mine} IS NULL AND {theirs} IS NOT NULL) OR ({same} AND {rest}))"
            )
        } else {
            // The first half alone is what an index can start from.
            format!("({mine} {sign}= {theirs} AND ({mine} {sign} {theirs} OR {rest}))")
        }
    }
}
