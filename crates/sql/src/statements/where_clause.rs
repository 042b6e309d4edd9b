//! The WHERE clause of a listing: its predicates, and the records after a cursor.

use trefoil_engine::cursor::{CursorKey, CursorValue};
use trefoil_engine::plan::{PlannedListing, Predicate};
use trefoil_engine::{ComparisonOp, SortKey};
use trefoil_model::naming::names::VERSION_COLUMN;
use trefoil_model::{Field, FieldId, RecordType};

use crate::statements::dialect::{Dialect, ValueComparison};

fn qualified_column(dialect: Dialect, field: &Field) -> String {
    format!("t.{}", dialect.quote_name(&field.column))
}

pub(super) fn is_nullable(field: &Field) -> bool {
    !field.required && !field.kind.is_id() && field.column != VERSION_COLUMN
}

/// Collects the terms of a WHERE clause and numbers the parameters of its statement.
pub(super) struct WhereBuilder<'m> {
    dialect: Dialect,
    owner: &'m RecordType,
    /// The FROM clause in which `t` is defined.
    from: String,
    pub(super) terms: Vec<String>,
    parameter_count: usize,
}

impl<'m> WhereBuilder<'m> {
    pub(super) fn new(dialect: Dialect, owner: &'m RecordType, from: String) -> Self {
        WhereBuilder { dialect, owner, from, terms: Vec::new(), parameter_count: 0 }
    }

    pub(super) fn next_parameter(&mut self) -> String {
        self.parameter_count += 1;
        self.dialect.parameter_mark(self.parameter_count)
    }

    pub(super) fn clause(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!(" WHERE {}", self.terms.join(" AND ")) }
    }

    pub(super) fn add_listing(&mut self, listing: &PlannedListing) {
        self.add_predicates(&listing.predicates);
        if let Some(position) = &listing.after {
            let values: Vec<String> = position.values.iter().map(|_| self.next_parameter()).collect();
            let id = matches!(position.key, CursorKey::After(_)).then(|| self.next_parameter());
            let values = listing.sort_keys.iter().zip(&position.values).zip(values);
            let values: Vec<String> = values
                .map(|((key, cursor), value)| match cursor {
                    CursorValue::Full(_) => value,
                    CursorValue::Prefix(_) => self.full_cursor_value(key, &value, id.as_deref()),
                })
                .collect();
            let tie = match (&position.key, id) {
                (CursorKey::After(_), Some(id)) => format!("t.\"id\" > {id}"),
                (CursorKey::All, _) => "1 = 1".to_owned(),
                (CursorKey::None | CursorKey::After(_), _) => "1 = 0".to_owned(),
            };
            let term = self.after_cursor(&listing.sort_keys, &values, &tie);
            self.terms.push(term);
        }
    }

    /// A cursor holds only the beginning of a long text: this reads the whole value from the record itself. If the record
    /// is gone, not in the list or has another value by now, it is a bound that skips nothing; records with the same
    /// beginning are then listed again. The subquery repeats all terms so far, so that a forged cursor cannot reveal the
    /// value of a record that the list does not contain. The bound also stands for a record of another type.
    fn full_cursor_value(&self, key: &SortKey, prefix: &str, id: Option<&str>) -> String {
        let own = qualified_column(self.dialect, self.owner.field(key.field));
        let end = self.dialect.prefix_upper_bound(prefix);
        let fallback = if key.descending { &end } else { prefix };
        let Some(id) = id else { return fallback.to_owned() };
        let terms: String = self.terms.iter().map(|term| format!(" AND {term}")).collect();
        format!(
            "COALESCE((SELECT {own} FROM {} WHERE t.\"id\" = {id} AND {own} >= {prefix} \
             AND {own} <= {end}{terms}), {fallback})",
            self.from
        )
    }

    pub(super) fn add_predicates(&mut self, predicates: &[Predicate]) {
        for predicate in predicates {
            let term = self.predicate_sql(predicate);
            self.terms.push(term);
        }
    }

    fn predicate_sql(&mut self, predicate: &Predicate) -> String {
        match predicate {
            Predicate::Compare { field, op, .. } => self.compare_sql(*field, *op),
            Predicate::OneOf { field, or_null, .. } => {
                let field = self.owner.field(*field);
                let (comparison, own) =
                    (ValueComparison::for_field(field), qualified_column(self.dialect, field));
                let values = self.next_parameter();
                let is_listed = self.dialect.is_in_list(comparison, &own, &values);
                if *or_null { format!("({is_listed} OR {own} IS NULL)") } else { is_listed }
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

    /// True if any text field of the record matches.
    fn search_sql(&mut self, matches: fn(Dialect, &str, &str) -> String) -> String {
        let (dialect, text) = (self.dialect, self.next_parameter());
        let fields = self.owner.fields.iter().filter(|field| field.is_stored() && field.kind.is_text());
        let terms: Vec<String> =
            fields.map(|field| matches(dialect, &qualified_column(dialect, field), &text)).collect();
        format!("({})", terms.join(" OR "))
    }

    /// Null differs from every value and is neither less nor greater than any.
    fn compare_sql(&mut self, field: FieldId, op: ComparisonOp) -> String {
        let field = self.owner.field(field);
        let (comparison, dialect) = (ValueComparison::for_field(field), self.dialect);
        let (left, right) = (qualified_column(dialect, field), self.next_parameter());
        let keys = || (dialect.equality_key(comparison, &left), dialect.equality_key(comparison, &right));
        let ordered = |sign: &str| {
            let [left, right] = [&left, &right].map(|value| dialect.sort_key(comparison, value));
            format!("{left} {sign} {right}")
        };
        match op {
            // A list arrives as `Predicate::OneOf`; `In` here is a list of one.
            ComparisonOp::Eq | ComparisonOp::In => format!("{} = {}", keys().0, keys().1),
            ComparisonOp::Ne if is_nullable(field) => dialect.null_safe_different(&keys().0, &keys().1),
            ComparisonOp::Ne => format!("{} <> {}", keys().0, keys().1),
            ComparisonOp::Lt => ordered("<"),
            ComparisonOp::Lte => ordered("<="),
            ComparisonOp::Gt => ordered(">"),
            ComparisonOp::Gte => ordered(">="),
            ComparisonOp::Contains => dialect.contains(&left, &right),
        }
    }

    /// True if a record sorts after the one with these values: by the first sort key or, where that is equal, by the
    /// rest. `tie` decides where all are equal.
    fn after_cursor(&self, sort_keys: &[SortKey], values: &[String], tie: &str) -> String {
        let ([first, sort_keys @ ..], [value, values @ ..]) = (sort_keys, values) else {
            return tie.to_owned();
        };
        let field = self.owner.field(first.field);
        let key = |value: &str| self.dialect.sort_key(ValueComparison::for_field(field), value);
        let (own, other) = (key(&qualified_column(self.dialect, field)), key(value));
        let sign = if first.descending { "<" } else { ">" };
        let rest = self.after_cursor(sort_keys, values, tie);
        if is_nullable(field) {
            let same = self.dialect.null_safe_equal(&own, &other);
            format!(
                "({own} {sign} {other} OR ({own} IS NULL AND {other} IS NOT NULL) OR ({same} AND {rest}))"
            )
        } else {
            // An index can start from the first half alone.
            format!("({own} {sign}= {other} AND ({own} {sign} {other} OR {rest}))")
        }
    }
}
