//! The statement of an aggregate: groups in a subquery `g`, with keys `k0`, `k1` … and measures `m0`, `m1` …, and
//! around it their conditions, order and limit. Records that references lead to are `j1`, `j2` ….

use trefoil_engine::plan::{PlannedAggregate, PlannedHaving, joined_references};
use trefoil_engine::{GroupKey, GroupMeasure, MeasureFunction, OrderTarget, ReferencePath};
use trefoil_model::{ComparisonOp, Field, FieldId, RecordType, RecordTypeId, Scalar, ZoneOffsets};

use crate::statements::access::key_columns::joined_column;
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::groups::group_cells::{GroupCell, GroupCells};
use crate::statements::predicate_sql::{TableScope, TestedValue};
use crate::statements::select::{RelationSource, SelectBuilder, SelectLevel};
use crate::statements::where_clause::WhereBuilder;

impl SelectBuilder<'_> {
    /// The groups of all records of a type.
    pub fn record_groups(self, aggregate: &PlannedAggregate) -> SelectLevel {
        let owner = self.model.record(aggregate.record);
        self.group_level(aggregate, &self.table_alias(owner), None)
    }

    /// The groups of the children of many parents, ordered by parent. The parents' keys are the first parameter.
    pub(in crate::statements) fn child_groups(
        self,
        source: &RelationSource,
        aggregate: &PlannedAggregate,
    ) -> SelectLevel {
        self.group_level(aggregate, &source.from, Some(source))
    }

    fn group_level(
        self,
        aggregate: &PlannedAggregate,
        from: &str,
        parent: Option<&RelationSource>,
    ) -> SelectLevel {
        let owner = self.model.record(aggregate.record);
        let mut filter = WhereBuilder::new(self.dialect, self.model, owner, from.to_owned());
        if let Some(source) = parent {
            let keys = filter.next_parameter();
            filter.terms.push(self.dialect.is_in_list(ValueComparison::Plain, &source.child_key, &keys));
        }
        filter.add_predicates(&aggregate.listing.predicates);
        let joins = JoinedTables::new(self, aggregate);
        let mut columns =
            GroupColumns { builder: self, aggregate, joins: &joins, inner: Vec::new(), read: Vec::new() };
        let mut group_by: Vec<String> = Vec::new();
        let mut cells: Vec<GroupCell> = Vec::new();
        for (position, key) in aggregate.group_keys.iter().enumerate() {
            cells.push(columns.add_key(position, key));
            group_by.push(columns.inner.len().to_string());
        }
        let measures: Vec<MeasureColumns> =
            aggregate.measures.iter().map(|measure| columns.add_measure(measure)).collect();
        cells.extend(measures.iter().map(|measure| measure.cell));
        if let Some(source) = parent {
            columns.inner.push(format!("{} AS p", source.child_key));
            columns.read.push(self.dialect.read_key(source.key_form, "g.p"));
            cells.push(GroupCell::Copied(columns.read.len() - 1));
            group_by.push(columns.inner.len().to_string());
        }
        // A statement must select something.
        if columns.inner.is_empty() {
            columns.inner.push("count(*) AS n0".to_owned());
            columns.read.push("g.n0".to_owned());
        }
        let groups = joins.grouped(&columns.inner, from, &filter.clause(), &group_by);
        let having = having_terms(self, aggregate, &measures, &mut filter);
        let order = order_terms(self, aggregate, &measures);
        let read = columns.read.join(", ");
        let sql = match (parent, aggregate.first) {
            (Some(_), first) => {
                let (number, is_first) = match first {
                    Some(_) => {
                        let order = if order.is_empty() { "g.p" } else { &order };
                        let number = format!(", row_number() OVER (PARTITION BY g.p ORDER BY {order}) AS n");
                        (number, format!(" WHERE g.n <= {}", filter.next_parameter()))
                    }
                    None => (String::new(), String::new()),
                };
                let order = if order.is_empty() { String::new() } else { format!(", {order}") };
                format!(
                    "SELECT {read} FROM (SELECT g.*{number} FROM ({groups}) AS g{having}) AS g{is_first} \
                     ORDER BY g.p{order} LIMIT {}",
                    filter.next_parameter()
                )
            }
            (None, first) => {
                let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {order}") };
                let limit = match first {
                    Some(_) => self.dialect.least(&filter.next_parameter(), &filter.next_parameter()),
                    None => filter.next_parameter(),
                };
                format!("SELECT {read} FROM ({groups}) AS g{having}{order} LIMIT {limit}")
            }
        };
        let width = cells.len();
        let groups =
            GroupCells { cells, is_whole: aggregate.group_keys.is_empty() && aggregate.having.is_empty() };
        let search_guard = aggregate.listing.max_search_rows.map(|_| {
            Box::new(match parent {
                Some(source) => self.child_guard(source, owner),
                None => self.list_guard(owner, &aggregate.listing),
            })
        });
        SelectLevel {
            search_guard,
            statement: self.statement(sql),
            is_guarded: self.is_guarded(),
            columns: Vec::new(),
            column_names: Vec::new(),
            width,
            parent_key: width.saturating_sub(1),
            branches: Vec::new(),
            groups: Some(groups),
        }
    }
}

/// The tables that are joined for values of other records.
struct JoinedTables {
    /// By position: the chain of references, the record type that it leads to, and the table's alias.
    tables: Vec<(Vec<FieldId>, RecordTypeId, String)>,
    sql: String,
}

impl JoinedTables {
    fn new(builder: SelectBuilder<'_>, aggregate: &PlannedAggregate) -> JoinedTables {
        let mut joined = JoinedTables { tables: Vec::new(), sql: String::new() };
        for chain in joined_references(&aggregate.group_keys, &aggregate.measures) {
            let Some((last, before)) = chain.split_last() else { continue };
            let (from, from_alias) = joined.table(before, aggregate.record);
            let field = builder.model.record(from).field(*last);
            let Some(relation) = field.kind.relation() else { continue };
            let target = builder.model.record(relation.target());
            let alias = format!("j{}", joined.tables.len() + 1);
            joined.sql += &format!(
                " LEFT JOIN {} AS {alias} ON {alias}.\"id\" = {from_alias}.{}",
                builder.dialect.quote_name(&target.table),
                builder.dialect.quote_name(&joined_column(field))
            );
            joined.tables.push((chain.clone(), relation.target(), alias));
        }
        joined
    }

    fn table(&self, chain: &[FieldId], record: RecordTypeId) -> (RecordTypeId, &str) {
        let joined = self.tables.iter().find(|(known, _, _)| known == chain);
        joined.map_or((record, "t"), |(_, record, alias)| (*record, alias.as_str()))
    }

    /// The subquery with the groups.
    fn grouped(&self, columns: &[String], from: &str, clause: &str, group_by: &[String]) -> String {
        let mut sql = format!("SELECT {} FROM {from}{}{clause}", columns.join(", "), self.sql);
        if !group_by.is_empty() {
            sql += &format!(" GROUP BY {}", group_by.join(", "));
        }
        sql
    }
}

/// The columns of the subquery, and the expressions that read them.
struct GroupColumns<'b> {
    builder: SelectBuilder<'b>,
    aggregate: &'b PlannedAggregate,
    joins: &'b JoinedTables,
    inner: Vec<String>,
    read: Vec<String>,
}

/// Where a measure is.
struct MeasureColumns {
    cell: GroupCell,
    /// The expression that conditions and order compare.
    compared: String,
    comparison: ValueComparison,
}

/// A value of a record with its field.
struct PathValue<'m> {
    sql: String,
    field: &'m Field,
    is_member: bool,
}

impl<'b> GroupColumns<'b> {
    fn dialect(&self) -> Dialect {
        self.builder.dialect
    }

    fn value(&self, path: &ReferencePath) -> PathValue<'b> {
        let (record, alias) = self.joins.table(&path.references, self.aggregate.record);
        let owner: &RecordType = self.builder.model.record(record);
        let scope = TableScope { record: owner, alias: alias.to_owned() };
        let tested = TestedValue::new(self.dialect(), self.builder.model, &scope, &path.value);
        PathValue { sql: tested.sql, field: tested.field, is_member: !path.value.members.is_empty() }
    }

    /// Adds a column and the expression that reads it; the position of the latter.
    fn add(&mut self, name: &str, inner: &str, read: impl FnOnce(String) -> String) -> usize {
        self.inner.push(format!("{inner} AS {name}"));
        self.read.push(read(format!("g.{name}")));
        self.read.len() - 1
    }

    fn add_key(&mut self, position: usize, key: &GroupKey) -> GroupCell {
        let (name, dialect) = (format!("k{position}"), self.dialect());
        let value = self.value(&key.path);
        if let Some(period) = key.period {
            let zone = &self.aggregate.time_zone;
            let scalar = value.field.kind.scalar();
            // Without a zone it is what clocks show, wherever they are.
            let utc = ZoneOffsets::utc();
            let zone = if scalar == Some(Scalar::LocalDateTime) { &utc } else { zone };
            let inner = dialect.period(period, &value.as_time(dialect), scalar, zone);
            let at = self.add(&name, &inner, |column| dialect.read_period(period, column));
            return match dialect {
                Dialect::Sqlite => GroupCell::Copied(at),
                Dialect::Postgres => GroupCell::TimePeriod(at, period),
            };
        }
        let comparison = ValueComparison::for_field(value.field);
        if comparison == ValueComparison::Decimal {
            let inner = dialect.equality_key(comparison, &value.sql);
            return GroupCell::Trimmed(self.add(&name, &inner, |column| value.read(dialect, column)));
        }
        GroupCell::Copied(self.add(&name, &value.sql, |column| value.read(dialect, column)))
    }

    fn add_measure(&mut self, measure: &GroupMeasure) -> MeasureColumns {
        let (name, dialect) = (format!("m{}", self.inner.len()), self.dialect());
        let GroupMeasure::OfField(function, path) = measure else {
            let at = self.add(&name, "count(*)", |column| column);
            return MeasureColumns::count(at, &name);
        };
        let value = self.value(path);
        let comparison = ValueComparison::for_field(value.field);
        match function {
            MeasureFunction::CountDistinct => {
                let key = dialect.equality_key(comparison, &value.sql);
                let at = self.add(&name, &format!("count(DISTINCT {key})"), |column| column);
                MeasureColumns::count(at, &name)
            }
            MeasureFunction::Sum => {
                let (at, comparison) = self.add_sum(&name, &value);
                let is_real = comparison == ValueComparison::Real;
                let cell = if is_real { GroupCell::Copied(at) } else { GroupCell::Decimal(at) };
                MeasureColumns { cell, compared: format!("g.{name}"), comparison }
            }
            MeasureFunction::Average => {
                let (sum, comparison) = self.add_sum(&name, &value);
                let is_real = comparison == ValueComparison::Real;
                let count_name = format!("{name}n");
                let count = self.add(&count_name, &format!("count({})", value.sql), |column| column);
                MeasureColumns {
                    cell: GroupCell::Mean { sum, count, is_real },
                    compared: dialect.mean(is_real, &format!("g.{name}"), &format!("g.{count_name}")),
                    comparison,
                }
            }
            MeasureFunction::Least | MeasureFunction::Greatest => self.add_extreme(&name, *function, &value),
        }
    }

    /// Adds a sum; the column that reads it, and how it compares.
    fn add_sum(&mut self, name: &str, value: &PathValue<'_>) -> (usize, ValueComparison) {
        let (dialect, scalar) = (self.dialect(), value.field.kind.scalar());
        if scalar == Some(Scalar::Float) {
            let at = self.add(name, &dialect.real_sum(&value.sql), |column| column);
            return (at, ValueComparison::Real);
        }
        let inner = dialect.exact_sum(&value.sql, scalar == Some(Scalar::Int));
        let at = self.add(name, &inner, |column| dialect.read_number(column));
        (at, ValueComparison::Decimal)
    }

    fn add_extreme(
        &mut self,
        name: &str,
        function: MeasureFunction,
        value: &PathValue<'_>,
    ) -> MeasureColumns {
        let dialect = self.dialect();
        let word = if function == MeasureFunction::Least { "min" } else { "max" };
        let comparison = ValueComparison::for_field(value.field);
        let compared = format!("g.{name}");
        if comparison != ValueComparison::Decimal {
            let at = self.add(name, &format!("{word}({})", value.sql), |column| value.read(dialect, column));
            return MeasureColumns { cell: GroupCell::Copied(at), compared, comparison };
        }
        let cell = match dialect {
            Dialect::Sqlite => {
                let inner = format!("trefoil_decimal_{word}({})", value.sql);
                GroupCell::Copied(self.add(name, &inner, |column| column))
            }
            Dialect::Postgres => {
                let at =
                    self.add(name, &format!("{word}({})", value.sql), |column| dialect.read_number(column));
                let places =
                    self.add(&format!("{name}s"), &format!("max(scale({}))", value.sql), |column| column);
                GroupCell::Padded { value: at, places }
            }
        };
        MeasureColumns { cell, compared, comparison }
    }
}

impl MeasureColumns {
    fn count(at: usize, name: &str) -> MeasureColumns {
        let comparison = ValueComparison::Plain;
        MeasureColumns { cell: GroupCell::Count(at), compared: format!("g.{name}"), comparison }
    }
}

impl PathValue<'_> {
    /// The expression that selects a value of this field.
    fn read(&self, dialect: Dialect, column: String) -> String {
        match (dialect, self.is_member) {
            (Dialect::Sqlite, _) => column,
            (Dialect::Postgres, false) => dialect.read_field_value(self.field, column),
            (Dialect::Postgres, true) if self.field.kind.scalar() == Some(Scalar::Decimal) => {
                dialect.read_number(column)
            }
            (Dialect::Postgres, true) => column,
        }
    }

    /// The value as a date or time: inside an embedded value it is text.
    fn as_time(&self, dialect: Dialect) -> String {
        match (dialect, self.is_member, self.field.kind.scalar()) {
            (Dialect::Postgres, true, Some(Scalar::Date)) => {
                format!("CAST(substring({} FROM '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}$') AS date)", self.sql)
            }
            (Dialect::Postgres, true, _) => format!(
                "CAST(substring({} FROM '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9.]+Z$') \
                 AS timestamptz)",
                self.sql
            ),
            (Dialect::Sqlite, _, _) | (Dialect::Postgres, false, _) => self.sql.clone(),
        }
    }
}

/// The WHERE clause around the groups.
fn having_terms(
    builder: SelectBuilder<'_>,
    aggregate: &PlannedAggregate,
    measures: &[MeasureColumns],
    filter: &mut WhereBuilder<'_>,
) -> String {
    let mut terms = Vec::with_capacity(aggregate.having.len());
    for PlannedHaving { measure, op, .. } in &aggregate.having {
        let MeasureColumns { compared, comparison, .. } = &measures[*measure];
        let key = |value: &str| builder.dialect.sort_key(*comparison, value);
        let (left, right) = (key(compared), key(&filter.next_parameter()));
        terms.push(match op {
            ComparisonOp::Eq => format!("{left} = {right}"),
            ComparisonOp::Ne => builder.dialect.null_safe_different(&left, &right),
            ComparisonOp::Lt => format!("{left} < {right}"),
            ComparisonOp::Lte => format!("{left} <= {right}"),
            ComparisonOp::Gt => format!("{left} > {right}"),
            ComparisonOp::Gte => format!("{left} >= {right}"),
        });
    }
    if terms.is_empty() { String::new() } else { format!(" WHERE {}", terms.join(" AND ")) }
}

/// Nulls last in both directions, ties by the keys.
fn order_terms(
    builder: SelectBuilder<'_>,
    aggregate: &PlannedAggregate,
    measures: &[MeasureColumns],
) -> String {
    let term = |target: OrderTarget, descending: bool| {
        let key = match target {
            OrderTarget::Key(position) => {
                let key = &aggregate.group_keys[position];
                let field_type = key.value_type(builder.model, aggregate.record);
                let comparison = ValueComparison::for_type(&field_type);
                builder.dialect.sort_key(comparison, &format!("g.k{position}"))
            }
            OrderTarget::Measure(position) => {
                builder.dialect.sort_key(measures[position].comparison, &measures[position].compared)
            }
        };
        format!("{key}{} NULLS LAST", if descending { " DESC" } else { "" })
    };
    let keys = (0..aggregate.group_keys.len()).map(OrderTarget::Key);
    let others = keys.filter(|key| !aggregate.order.iter().any(|order| order.target == *key));
    let given = aggregate.order.iter().map(|order| term(order.target, order.descending));
    given.chain(others.map(|key| term(key, false))).collect::<Vec<_>>().join(", ")
}
