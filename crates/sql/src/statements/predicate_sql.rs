//! Predicates as SQL terms. A relation becomes a subquery; its tables are `r1`, `r2` … and link tables `l1`, `l2` ….

use trefoil_engine::plan::{Predicate, searched_texts};
use trefoil_engine::{ReferencePath, ValuePath};
use trefoil_model::naming::names::VERSION_COLUMN;
use trefoil_model::{
    ComparisonOp, Field, FieldId, Model, RecordType, RecordTypeId, Relation, TextPart, ValueType,
};

use crate::statements::access::key_columns::{joined_column, list_key};
use crate::statements::dialect::{Dialect, ValueComparison};
use crate::statements::indexed_predicate::is_indexed_predicate;
use crate::statements::related::key_lists::KeyLists;
use crate::statements::search::search_index;
use crate::statements::sql_parameter::SqlParameter;

pub(super) fn is_nullable(field: &Field) -> bool {
    (!field.required || field.may_be_hidden) && !field.kind.is_id() && field.column != VERSION_COLUMN
}

/// A table in a statement, whose columns the predicates test.
pub(super) struct TableScope<'m> {
    pub record: &'m RecordType,
    pub alias: String,
}

impl TableScope<'_> {
    pub(super) fn column(&self, dialect: Dialect, name: &str) -> String {
        format!("{}.{}", self.alias, dialect.quote_name(name))
    }
}

/// A value that is tested.
pub(super) struct TestedValue<'m> {
    pub sql: String,
    pub field: &'m Field,
    pub may_be_null: bool,
}

impl<'m> TestedValue<'m> {
    /// The value at a path of a record.
    pub(super) fn new(
        dialect: Dialect,
        model: &'m Model,
        scope: &TableScope<'m>,
        path: &ValuePath,
    ) -> TestedValue<'m> {
        let mut field = scope.record.field(path.field);
        let column = scope.column(dialect, &field.column);
        let mut members = Vec::with_capacity(path.members.len());
        for member in &path.members {
            let embedded = field.kind.value_type().and_then(ValueType::embedded_name);
            let embedded = embedded.and_then(|name| model.embedded.get(name));
            if let Some(inner) = embedded.and_then(|embedded| embedded.fields.get(member.0)) {
                field = inner;
                members.push(inner.name.as_str());
            }
        }
        if members.is_empty() {
            return TestedValue { sql: column, field, may_be_null: is_nullable(field) };
        }
        let sql = dialect.json_member(&column, &members, field.kind.value_type());
        TestedValue { sql, field, may_be_null: true }
    }
}

/// The one predicate by which an index finds records, and its field: equality of a text. `None` if there are several, of which
/// the better one depends on the values.
fn only_index(record: &RecordType, predicates: &[Predicate]) -> Option<(usize, FieldId)> {
    let mut indexed = predicates.iter().enumerate().filter(|(_, predicate)| {
        is_indexed_predicate(record, predicate) || matches!(predicate, Predicate::Related { .. })
    });
    let (position, predicate) = indexed.next().filter(|_| indexed.next().is_none())?;
    let Predicate::Compare { path, op: ComparisonOp::Eq, .. } = predicate else { return None };
    let field = record.field(path.field);
    let is_text = matches!(field.kind.own_value(), Some(ValueType::Enum(_))) || field.kind.is_text();
    let is_plain = ValueComparison::for_field(field) == ValueComparison::Plain && !field.may_be_hidden;
    (is_text && is_plain).then_some((position, path.field))
}

fn search_columns(record: &RecordType) -> Vec<String> {
    record.search_fields().map(|field| field.column.clone()).collect()
}

/// Appends the parameters of a predicate, in the order in which [`PredicateWriter::predicate_sql`] numbers them.
pub(super) fn predicate_parameters<'a>(predicate: &'a Predicate, into: &mut Vec<SqlParameter<'a>>) {
    match predicate {
        Predicate::Compare { value, .. }
        | Predicate::Text { text: value, .. }
        | Predicate::TextPattern { pattern: value, .. }
        | Predicate::HasItem { item: value, .. } => into.push(SqlParameter::Cell(value.as_cell())),
        Predicate::LinkedFrom { id, .. } => into.push(SqlParameter::id(id)),
        Predicate::OneOf { values, .. }
        | Predicate::Words { patterns: values }
        | Predicate::IndexedWords { words: values }
        | Predicate::ShownWords { words: values } => into.push(SqlParameter::List(values)),
        Predicate::All(predicates) | Predicate::Any(predicates) | Predicate::Related { predicates, .. } => {
            predicates.iter().for_each(|inner| predicate_parameters(inner, into));
        }
        Predicate::Not(inner) => predicate_parameters(inner, into),
        Predicate::IsNull { .. }
        | Predicate::NotNull { .. }
        | Predicate::HasItems { .. }
        | Predicate::Never => {}
    }
}

/// Writes predicates and numbers the parameters of their statement.
pub(super) struct PredicateWriter<'m> {
    dialect: Dialect,
    model: &'m Model,
    parameter_count: usize,
    /// The number of tables in subqueries so far.
    table_count: usize,
    /// Within a negation.
    is_negated: bool,
    /// Related records are looked up for each record, because only some records are met.
    pub(super) looks_up_related: bool,
    /// How many required relations come before the one whose records are found first, by lists of their keys.
    pub(super) key_place: Option<usize>,
    pub(super) key_lists: KeyLists,
    is_in_key_list: bool,
    /// The full-text index is joined.
    pub(super) has_index_join: bool,
}

impl<'m> PredicateWriter<'m> {
    pub(super) fn new(dialect: Dialect, model: &'m Model) -> PredicateWriter<'m> {
        PredicateWriter {
            dialect,
            model,
            parameter_count: 0,
            table_count: 0,
            is_negated: false,
            looks_up_related: false,
            key_place: None,
            key_lists: KeyLists::new(dialect),
            is_in_key_list: false,
            has_index_join: false,
        }
    }

    pub(super) fn parameter_count(&self) -> usize {
        self.parameter_count
    }

    pub(super) fn next_parameter(&mut self) -> String {
        self.parameter_count += 1;
        self.dialect.parameter_mark(self.parameter_count)
    }

    pub(super) fn predicate_sql(&mut self, scope: &TableScope<'m>, predicate: &Predicate) -> String {
        match predicate {
            Predicate::Compare { path, op, .. } => self.compare_sql(scope, path, *op),
            Predicate::OneOf { path, or_null, .. } => {
                let own = self.tested_value(scope, path);
                let values = self.next_parameter();
                let comparison = ValueComparison::for_field(own.field);
                let is_listed = self.dialect.is_in_list(comparison, &own.sql, &values);
                if *or_null { format!("({is_listed} OR {} IS NULL)", own.sql) } else { is_listed }
            }
            Predicate::IsNull { path } => format!("{} IS NULL", self.tested_value(scope, path).sql),
            Predicate::NotNull { path } => format!("{} IS NOT NULL", self.tested_value(scope, path).sql),
            Predicate::Text { path, part, .. } => {
                let (own, text) = (self.tested_value(scope, path), self.next_parameter());
                match part {
                    TextPart::End => self.dialect.ends_with(&own.sql, &text),
                    TextPart::Whole | TextPart::Start | TextPart::Anywhere => {
                        self.dialect.contains(&own.sql, &text)
                    }
                }
            }
            Predicate::TextPattern { path, part, .. } => {
                let (own, pattern) = (self.tested_value(scope, path), self.next_parameter());
                self.dialect.matches_pattern(&own.sql, &pattern, *part)
            }
            Predicate::HasItem { path, .. } => {
                let (own, item) = (self.tested_value(scope, path), self.next_parameter());
                let item_type = own.field.kind.list_item().map(|item| &item.value_type);
                self.dialect.list_has_item(&own.sql, item_type, &item)
            }
            Predicate::HasItems { path } => self.dialect.list_has_items(&self.tested_value(scope, path).sql),
            Predicate::Words { .. } => self.words_sql(scope),
            Predicate::IndexedWords { .. } if self.has_index_join => {
                let words = self.next_parameter();
                search_index::joined_words(&scope.record.table, &words)
            }
            Predicate::IndexedWords { .. } => {
                let words = self.next_parameter();
                search_index::has_indexed_words(
                    self.dialect,
                    &scope.record.table,
                    &scope.alias,
                    &search_columns(scope.record),
                    &words,
                )
            }
            Predicate::ShownWords { .. } => {
                let words = self.next_parameter();
                let columns = search_columns(scope.record);
                search_index::has_shown_words(self.dialect, &scope.alias, &columns, &words)
            }
            Predicate::All(predicates) if predicates.is_empty() => "1 = 1".to_owned(),
            Predicate::All(predicates) => format!("({})", self.joined_sql(scope, predicates, " AND ")),
            Predicate::Any(predicates) => {
                let key_place = self.key_place.take();
                let terms = self.joined_sql(scope, predicates, " OR ");
                self.key_place = key_place;
                format!("({terms})")
            }
            // A comparison with null is unknown in SQL.
            Predicate::Not(inner) => {
                let was_negated = std::mem::replace(&mut self.is_negated, true);
                let key_place = self.key_place.take();
                let term = self.predicate_sql(scope, inner);
                (self.is_negated, self.key_place) = (was_negated, key_place);
                format!("({term}) IS NOT TRUE")
            }
            Predicate::Related { relation, predicates } => match self.key_place.take() {
                Some(0) => self.key_sql(scope, *relation, predicates),
                place => {
                    let term = self.related_sql(scope, *relation, predicates);
                    self.key_place = place.map(|place| place - 1);
                    term
                }
            },
            Predicate::LinkedFrom { owner, field, .. } => self.linked_sql(scope, *owner, *field),
            Predicate::Never => "1 = 0".to_owned(),
        }
    }

    /// Whether the list of a record leads to this one. Where there are rules, the record that has the list must be seen
    /// with it: the keys that lists are joined by say nothing of that.
    fn linked_sql(&mut self, scope: &TableScope<'m>, owner: RecordTypeId, field: FieldId) -> String {
        let (owner, id) = (self.model.record(owner), self.next_parameter());
        let list = owner.field(field);
        let linked = if let Some(inverse) = list.kind.inverse() {
            let reference = joined_column(scope.record.field(inverse.field));
            format!("{} = {id}", scope.column(self.dialect, &reference))
        } else if let Some(link) = list.kind.link() {
            let [table, own, other] =
                [&link.table, &link.own_column, &link.other_column].map(|name| self.dialect.quote_name(name));
            let target = scope.column(self.dialect, "id");
            format!("{target} IN (SELECT {other} FROM {table} WHERE {own} = {id})")
        } else {
            return "1 = 0".to_owned();
        };
        if self.model.access.is_none() {
            return linked;
        }
        let [table, key] = [&owner.table, &list_key(list)].map(|name| self.dialect.quote_name(name));
        format!("({linked} AND EXISTS (SELECT 1 FROM {table} AS o WHERE o.{key} = {id}))")
    }

    fn joined_sql(&mut self, scope: &TableScope<'m>, predicates: &[Predicate], separator: &str) -> String {
        let terms = predicates.iter().map(|predicate| self.predicate_sql(scope, predicate));
        terms.collect::<Vec<_>>().join(separator)
    }

    fn tested_value(&self, scope: &TableScope<'m>, path: &ValuePath) -> TestedValue<'m> {
        TestedValue::new(self.dialect, self.model, scope, path)
    }

    /// True if every pattern of a list matches one of the searched texts. They are one text, in lines of their own.
    fn words_sql(&mut self, scope: &TableScope<'m>) -> String {
        let patterns = self.next_parameter();
        let texts = searched_texts(self.model, scope.record);
        let texts: Vec<String> = texts.iter().map(|path| self.searched_text(scope, path)).collect();
        self.dialect.has_words(&texts, &patterns)
    }

    fn searched_text(&mut self, scope: &TableScope<'m>, path: &ReferencePath) -> String {
        let [reference, ..] = path.references.as_slice() else {
            return self.tested_value(scope, &path.value).sql;
        };
        let field = scope.record.field(*reference);
        let Some(relation) = field.kind.relation() else { return "''".to_owned() };
        let inner = self.next_scope(relation.target());
        format!(
            "(SELECT {} FROM {} AS {} WHERE {} = {})",
            self.tested_value(&inner, &path.value).sql,
            self.dialect.quote_name(&inner.record.table),
            inner.alias,
            inner.column(self.dialect, "id"),
            scope.column(self.dialect, &field.column)
        )
    }

    /// Null differs from every value and is neither less nor greater than any.
    fn compare_sql(&mut self, scope: &TableScope<'m>, path: &ValuePath, op: ComparisonOp) -> String {
        let own = self.tested_value(scope, path);
        let (comparison, dialect) = (ValueComparison::for_field(own.field), self.dialect);
        let (left, right) = (own.sql, self.next_parameter());
        let keys = || (dialect.equality_key(comparison, &left), dialect.equality_key(comparison, &right));
        let ordered = |sign: &str| {
            let [left, right] = [&left, &right].map(|value| dialect.sort_key(comparison, value));
            format!("{left} {sign} {right}")
        };
        match op {
            ComparisonOp::Eq => format!("{} = {}", keys().0, keys().1),
            ComparisonOp::Ne if own.may_be_null => dialect.null_safe_different(&keys().0, &keys().1),
            ComparisonOp::Ne => format!("{} <> {}", keys().0, keys().1),
            ComparisonOp::Lt => ordered("<"),
            ComparisonOp::Lte => ordered("<="),
            ComparisonOp::Gt => ordered(">"),
            ComparisonOp::Gte => ordered(">="),
        }
    }

    fn next_scope(&mut self, target: RecordTypeId) -> TableScope<'m> {
        self.table_count += 1;
        TableScope { record: self.model.record(target), alias: format!("r{}", self.table_count) }
    }

    /// True if one of the related records meets all predicates.
    fn related_sql(&mut self, scope: &TableScope<'m>, relation: FieldId, predicates: &[Predicate]) -> String {
        let field = scope.record.field(relation);
        let Some(relation) = field.kind.relation() else { return "1 = 0".to_owned() };
        let inner = self.next_scope(relation.target());
        let (dialect, alias) = (self.dialect, &inner.alias);
        let link_alias = format!("l{}", self.table_count);
        let (own_id, other_id) = (scope.column(dialect, &list_key(field)), inner.column(dialect, "id"));
        let mut from = format!("{} AS {alias}", dialect.quote_name(&inner.record.table));
        // A record is related if these are equal.
        let (own, other) = match relation {
            Relation::Reference(_) => (scope.column(dialect, &joined_column(field)), other_id),
            Relation::Inverse(inverse) => {
                let reference = joined_column(inner.record.field(inverse.field));
                (own_id, inner.column(dialect, &reference))
            }
            Relation::Link(link) => {
                let [table, own, other] =
                    [&link.table, &link.own_column, &link.other_column].map(|name| dialect.quote_name(name));
                from = format!("{table} AS {link_alias} JOIN {from} ON {other_id} = {link_alias}.{other}");
                (own_id, format!("{link_alias}.{own}"))
            }
        };
        // SQLite starts from the inner records, which are few as a rule, only if they are a list. Without the few, most
        // records remain: it finds the first ones soon.
        let is_list = dialect == Dialect::Sqlite && !self.is_negated && !self.looks_up_related;
        let was_negated = std::mem::replace(&mut self.is_negated, false);
        let terms = predicates.iter().map(|predicate| self.predicate_sql(&inner, predicate));
        let mut terms: Vec<String> = terms.collect();
        self.is_negated = was_negated;
        if is_list {
            terms.push(format!("{other} IS NOT NULL"));
            return format!("{own} IN (SELECT {other} FROM {from} WHERE {})", terms.join(" AND "));
        }
        let is_related = format!("{other} = {own}");
        match (dialect, relation) {
            // PostgreSQL would join all related records, or combine their index with one of a term.
            (Dialect::Postgres, Relation::Inverse(_)) if self.looks_up_related => {
                let terms = if terms.is_empty() { "true".to_owned() } else { terms.join(" AND ") };
                format!(
                    "EXISTS (SELECT 1 FROM (SELECT * FROM {from} WHERE {is_related} OFFSET 0) AS {alias} WHERE {terms})"
                )
            }
            (Dialect::Postgres | Dialect::Sqlite, _) => {
                let is_alone = dialect == Dialect::Postgres && self.looks_up_related;
                terms.insert(0, is_related);
                let fence = if is_alone { " OFFSET 0" } else { "" };
                format!("EXISTS (SELECT 1 FROM {from} WHERE {}{fence})", terms.join(" AND "))
            }
        }
    }

    /// Equality of a text that is hidden from the planner, and the column in the order of whose index the records are met.
    /// As a range, since the order of equal values would be that of anything.
    fn hidden_equality(&mut self, scope: &TableScope<'m>, field: FieldId) -> (String, String) {
        let column = scope.column(self.dialect, &scope.record.field(field).column);
        let value = format!("(SELECT CAST({} AS text))", self.next_parameter());
        (format!("{column} >= {value} AND {column} <= {value}"), column)
    }

    /// The same by lists of keys, which begin with the innermost related records.
    fn key_sql(&mut self, scope: &TableScope<'m>, relation: FieldId, predicates: &[Predicate]) -> String {
        let field = scope.record.field(relation);
        let Some(relation) = field.kind.relation() else { return "1 = 0".to_owned() };
        let inner = self.next_scope(relation.target());
        let dialect = self.dialect;
        let is_outermost = !std::mem::replace(&mut self.is_in_key_list, true);
        self.key_place = Some(0);
        let index = (dialect == Dialect::Postgres).then(|| only_index(inner.record, predicates)).flatten();
        let mut order = String::new();
        let mut terms = Vec::with_capacity(predicates.len());
        for (position, predicate) in predicates.iter().enumerate() {
            if let Some((at, field)) = index
                && at == position
            {
                let (term, column) = self.hidden_equality(&inner, field);
                order = format!(" ORDER BY {column}");
                terms.push(term);
            } else {
                terms.push(self.predicate_sql(&inner, predicate));
            }
        }
        (self.key_place, self.is_in_key_list) = (None, !is_outermost);
        let key = match relation {
            Relation::Reference(_) | Relation::Link(_) => inner.column(dialect, "id"),
            Relation::Inverse(inverse) => {
                let reference = inner.record.field(inverse.field);
                let key = inner.column(dialect, &joined_column(reference));
                if is_nullable(reference) {
                    terms.push(format!("{key} IS NOT NULL"));
                }
                key
            }
        };
        let clause = if terms.is_empty() { String::new() } else { format!(" WHERE {}", terms.join(" AND ")) };
        let table = dialect.quote_name(&inner.record.table);
        if !order.is_empty() {
            self.key_lists.find_alike();
        }
        self.key_lists.add(&format!("SELECT {key} FROM {table} AS {}{clause}{order}", inner.alias));
        let (own_id, own_form) = (scope.column(dialect, &list_key(field)), scope.record.key_form());
        match relation {
            Relation::Reference(_) => {
                let column = dialect.quote_name(&joined_column(field));
                let key_form = inner.record.key_form();
                let term = self.key_lists.has_key(&format!("{}.{column}", scope.alias), key_form);
                if is_outermost {
                    // A few records may have many that refer to them.
                    let refers = self.key_lists.has_key(&format!("o.{column}"), key_form);
                    let owner = dialect.quote_name(&scope.record.table);
                    self.key_lists.add(&format!("SELECT o.\"id\" FROM {owner} AS o WHERE {refers}"));
                }
                term
            }
            Relation::Inverse(_) => self.key_lists.has_key(&own_id, own_form),
            Relation::Link(link) => {
                let [table, own, other] =
                    [&link.table, &link.own_column, &link.other_column].map(|name| dialect.quote_name(name));
                let is_linked = self.key_lists.has_key(&format!("l.{other}"), link.key_form);
                self.key_lists.add(&format!("SELECT l.{own} FROM {table} AS l WHERE {is_linked}"));
                self.key_lists.has_key(&own_id, own_form)
            }
        }
    }
}
