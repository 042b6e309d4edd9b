//! The WHERE clause of a listing: its predicates, and the records after a cursor and before another.

use trefoil_engine::cursor::{CursorKey, CursorPosition, CursorValue};
use trefoil_engine::plan::{PlannedListing, Predicate};
use trefoil_engine::{SortKey, ValuePath};
use trefoil_model::{ComparisonOp, Model, RecordType};

use crate::statements::dialect::Dialect;
use crate::statements::predicate_sql::{PredicateWriter, TableScope};
use crate::statements::related::key_lists::KeyLists;
use crate::statements::search::search_index;
use crate::statements::sort_sql::SortWriter;

/// The side of a cursor on which the wanted records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CursorSide {
    After,
    Before,
}

impl CursorSide {
    /// True if the wanted values are greater than that of the cursor.
    fn follows(self, descending: bool) -> bool {
        (self == CursorSide::After) != descending
    }

    fn sign(self, descending: bool) -> &'static str {
        if self.follows(descending) { ">" } else { "<" }
    }
}

/// Collects the terms of a WHERE clause and numbers the parameters of its statement.
pub(super) struct WhereBuilder<'m> {
    dialect: Dialect,
    model: &'m Model,
    owner: &'m RecordType,
    /// The FROM clause in which `t` is defined.
    from: String,
    pub(super) terms: Vec<String>,
    predicates: PredicateWriter<'m>,
    /// The number of the parameter with the words of a search.
    words: Option<usize>,
    /// The records are found by a full-text index.
    is_indexed: bool,
}

impl<'m> WhereBuilder<'m> {
    pub(super) fn new(dialect: Dialect, model: &'m Model, owner: &'m RecordType, from: String) -> Self {
        let predicates = PredicateWriter::new(dialect, model);
        WhereBuilder {
            dialect,
            model,
            owner,
            from,
            terms: Vec::new(),
            predicates,
            words: None,
            is_indexed: false,
        }
    }

    /// For the records of a listing: from its full-text index, if it has one and the database needs that.
    pub(super) fn for_listing(
        dialect: Dialect,
        model: &'m Model,
        owner: &'m RecordType,
        listing: &PlannedListing,
        table: String,
    ) -> Self {
        let is_indexed = matches!(listing.predicates.last(), Some(Predicate::IndexedWords { .. }));
        let has_index_join = is_indexed && dialect == Dialect::Sqlite;
        let from = if has_index_join { search_index::index_join(&owner.table, &table) } else { table };
        let mut builder = WhereBuilder::new(dialect, model, owner, from);
        builder.predicates.has_index_join = has_index_join;
        builder.is_indexed = is_indexed;
        builder.from += &builder.sort_writer("t").joins(&listing.sort_keys);
        builder
    }

    /// The parameter with the words that a full-text index finds, after the listing was added.
    pub(super) fn indexed_words(&self) -> Option<String> {
        self.words.filter(|_| self.is_indexed).map(|number| self.dialect.parameter_mark(number))
    }

    /// The records are met in the order of their ids, not by the full-text index.
    pub(super) fn order_by_id(&mut self) {
        self.is_indexed = false;
    }

    /// Related records are looked up for each record; those at this place are found first, by lists of keys.
    pub(super) fn look_up_related(&mut self, key_place: Option<usize>) {
        (self.predicates.looks_up_related, self.predicates.key_place) = (true, key_place);
    }

    pub(super) fn key_lists(&self) -> &KeyLists {
        &self.predicates.key_lists
    }

    /// The FROM clause in which `t` is defined.
    pub(super) fn from(&self) -> &str {
        &self.from
    }

    pub(super) fn next_parameter(&mut self) -> String {
        self.predicates.next_parameter()
    }

    pub(super) fn clause(&self) -> String {
        if self.terms.is_empty() { String::new() } else { format!(" WHERE {}", self.terms.join(" AND ")) }
    }

    pub(super) fn add_listing(&mut self, listing: &PlannedListing) {
        self.add_predicates(&listing.predicates);
        // A search is the last predicate and has one parameter.
        let is_search = matches!(
            listing.predicates.last(),
            Some(Predicate::Words { .. } | Predicate::IndexedWords { .. } | Predicate::ShownWords { .. })
        );
        self.words = is_search.then(|| self.predicates.parameter_count());
        for (position, side) in [(&listing.after, CursorSide::After), (&listing.before, CursorSide::Before)] {
            if let Some(position) = position {
                self.add_cursor(&listing.sort_keys, position, side);
            }
        }
    }

    /// Writes the sort keys; after the listing was added, those of its search too.
    pub(super) fn sort_writer<'a>(&self, alias: &'a str) -> SortWriter<'a>
    where
        'm: 'a,
    {
        let (dialect, model, owner) = (self.dialect, self.model, self.owner);
        SortWriter { dialect, model, owner, alias, words: self.words, is_indexed: self.is_indexed }
    }

    fn add_cursor(&mut self, sort_keys: &[SortKey], position: &CursorPosition, side: CursorSide) {
        let values: Vec<String> = position.values.iter().map(|_| self.next_parameter()).collect();
        let id = matches!(position.key, CursorKey::After(_)).then(|| self.next_parameter());
        let values = sort_keys.iter().zip(&position.values).zip(values);
        let values: Vec<String> = values
            .map(|((key, cursor), value)| match cursor {
                CursorValue::Full(_) => value,
                CursorValue::Prefix(_) => self.full_cursor_value(key, &value, id.as_deref(), side),
            })
            .collect();
        let tie = match (&position.key, id) {
            (CursorKey::After(_), Some(id)) => {
                format!("{} {} {id}", self.sort_writer("t").id(), side.sign(false))
            }
            (CursorKey::All, _) => "1 = 1".to_owned(),
            (CursorKey::None | CursorKey::After(_), _) => "1 = 0".to_owned(),
        };
        let term = self.beside_cursor(sort_keys, &values, &tie, side);
        self.terms.push(term);
    }

    /// A cursor holds only the beginning of a long text: this reads the whole value from the record itself. If the record
    /// is gone, not in the list or has another value by now, it is a bound that skips nothing; records with the same
    /// beginning are then listed again. The subquery repeats all terms so far, so that a forged cursor cannot reveal the
    /// value of a record that the list does not contain. The bound is also used if the cursor is at a
    /// record of another type.
    fn full_cursor_value(&self, key: &SortKey, prefix: &str, id: Option<&str>, side: CursorSide) -> String {
        let own = self.sort_writer("t").value(&key.value).sql;
        let end = self.dialect.prefix_upper_bound(prefix);
        let fallback = if side.follows(key.descending) { prefix } else { &end };
        let Some(id) = id else { return fallback.to_owned() };
        let terms: String = self.terms.iter().map(|term| format!(" AND {term}")).collect();
        format!(
            "COALESCE((SELECT {own} FROM {} WHERE t.\"id\" = {id} AND {own} >= {prefix} \
             AND {own} <= {end}{terms}), {fallback})",
            self.from
        )
    }

    pub(super) fn add_predicates(&mut self, predicates: &[Predicate]) {
        let scope = TableScope { record: self.owner, alias: "t".to_owned() };
        self.predicates.looks_up_related |=
            predicates.iter().any(|predicate| chooses_ids(self.owner, predicate));
        for predicate in predicates {
            let term = self.predicates.predicate_sql(&scope, predicate);
            self.terms.push(term);
        }
    }

    /// True if a record sorts after (or before) the one with these values: by the first sort key or, where that is
    /// equal, by the rest. `tie` decides where all are equal.
    fn beside_cursor(&self, sort_keys: &[SortKey], values: &[String], tie: &str, side: CursorSide) -> String {
        let ([first, sort_keys @ ..], [value, values @ ..]) = (sort_keys, values) else {
            return tie.to_owned();
        };
        let sorted = self.sort_writer("t").value(&first.value);
        let (own, other) = (sorted.key(&sorted.sql), sorted.key(value));
        let sign = side.sign(first.descending);
        let rest = self.beside_cursor(sort_keys, values, tie, side);
        if sorted.may_be_null {
            let same = self.dialect.null_safe_equal(&own, &other);
            // Nulls are last in both directions.
            let beyond = match side {
                CursorSide::After => format!("{own} IS NULL AND {other} IS NOT NULL"),
                CursorSide::Before => format!("{own} IS NOT NULL AND {other} IS NULL"),
            };
            format!("({own} {sign} {other} OR ({beyond}) OR ({same} AND {rest}))")
        } else {
            // An index can start from the first half alone.
            format!("({own} {sign}= {other} AND ({own} {sign} {other} OR {rest}))")
        }
    }
}

/// True if only records with certain ids match.
pub(super) fn chooses_ids(record: &RecordType, predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { path, op: ComparisonOp::Eq, .. }
        | Predicate::OneOf { path, or_null: false, .. } => *path == ValuePath::from(record.id_field()),
        Predicate::All(predicates) => predicates.iter().any(|predicate| chooses_ids(record, predicate)),
        Predicate::Compare { .. }
        | Predicate::OneOf { .. }
        | Predicate::IsNull { .. }
        | Predicate::NotNull { .. }
        | Predicate::Text { .. }
        | Predicate::TextPattern { .. }
        | Predicate::HasItem { .. }
        | Predicate::HasItems { .. }
        | Predicate::Words { .. }
        | Predicate::IndexedWords { .. }
        | Predicate::ShownWords { .. }
        | Predicate::Any(_)
        | Predicate::Not(_)
        | Predicate::Related { .. }
        | Predicate::LinkedFrom { .. }
        | Predicate::Never => false,
    }
}
