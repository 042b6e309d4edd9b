//! The statements that change or delete all records that match, and that find the record of an upsert.
//!
//! The parameters of each are those of the conditions, then its own.

use trefoil_engine::CountMode;
use trefoil_engine::plan::{self, PlannedListing, Predicate};
use trefoil_model::error::{Error, Result};
use trefoil_model::{Field, FieldId, Link, Model, RecordType};

use crate::link_table_side::{own_side, side_condition};
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::dialect::Dialect;
use crate::statements::where_clause::WhereBuilder;
use crate::statements::write::LinkStatements;

/// Writes statements about the records of one type that match.
pub struct MatchStatements<'a> {
    pub dialect: Dialect,
    pub model: &'a Model,
    pub record: &'a RecordType,
    pub listing: &'a PlannedListing,
}

impl<'a> MatchStatements<'a> {
    /// Own parameters: the values.
    pub fn update_sql(&self, fields: &[FieldId]) -> String {
        let mut filter = self.filter();
        let mut sets: Vec<String> = fields
            .iter()
            .map(|field| self.dialect.quote_name(&self.record.field(*field).column))
            .map(|column| format!("{column} = {}", filter.next_parameter()))
            .collect();
        sets.push("\"_version\" = \"_version\" + 1".to_owned());
        format!("UPDATE {} SET {}{}", self.table(), sets.join(", "), filter.clause())
    }

    pub fn delete_sql(&self) -> String {
        format!("DELETE FROM {}{}", self.table(), self.filter().clause())
    }

    /// Selects the id of the one record that matches; on PostgreSQL it is locked.
    pub fn find_sql(&self) -> String {
        self.locked_ids_sql(&self.filter().clause(), "1")
    }

    /// Selects the ids of the records that match; on PostgreSQL they are locked. Own parameter: how many at most.
    pub fn find_many_sql(&self) -> String {
        let mut filter = self.filter();
        let most = filter.next_parameter();
        self.locked_ids_sql(&filter.clause(), &most)
    }

    fn locked_ids_sql(&self, clause: &str, most: &str) -> String {
        let lock = match self.dialect {
            Dialect::Sqlite => "",
            // What an actor sees is no table: rules are asked again of the records themselves, which are locked then.
            Dialect::Postgres if self.model.access.is_some() => "",
            Dialect::Postgres => " FOR UPDATE",
        };
        let id = self.dialect.read_key(self.record.key_form(), "t.\"id\"");
        format!("SELECT {id} FROM {}{clause} LIMIT {most}{lock}", self.table())
    }

    /// Replaces the links of all records that match. Own parameter: the list of linked ids.
    pub fn link_statements(&self, field: &Field) -> Result<LinkStatements> {
        let Some(link) = field.kind.link() else {
            return Err(Error::internal(format!("`{}` is not a link", field.name)));
        };
        let Link { table, own_column, other_column, key_form, .. } = link;
        let (is_side, side) = (side_condition(self.dialect, link), own_side(link));
        let [link, own, other] = [table, own_column, other_column].map(|name| self.dialect.quote_name(name));
        let mut filter = self.filter();
        let list = filter.next_parameter();
        let (records, clause) = (self.table(), filter.clause());
        let (others, is_removed) =
            (self.dialect.key_table(*key_form, &list, "v"), self.dialect.is_not_in_list(&other, &list));
        let start = if clause.is_empty() { " WHERE" } else { " AND" };
        Ok(LinkStatements {
            remove: ReadStatement::plain(format!(
                "DELETE FROM {link} WHERE {own} IN (SELECT t.\"id\" FROM {records}{clause}) AND {is_removed} \
                 AND {is_side}"
            )),
            // Without a WHERE, SQLite's parser takes ON CONFLICT for a join condition.
            add: format!(
                "INSERT INTO {link} ({own}, {other}) SELECT t.\"id\", v.value FROM {records} CROSS JOIN \
                 {others}{clause}{start} {is_side} ON CONFLICT DO NOTHING"
            ),
            side,
        })
    }

    fn filter(&self) -> WhereBuilder<'a> {
        let mut filter = WhereBuilder::new(self.dialect, self.model, self.record, self.table());
        filter.add_predicates(&self.listing.predicates);
        filter
    }

    fn table(&self) -> String {
        format!("{} AS t", self.dialect.quote_name(&self.record.table))
    }
}

/// The records with certain ids: the parameter of its condition is their list.
pub fn found_records(record: &RecordType) -> PlannedListing {
    let path = record.id_field().into();
    let predicates = vec![Predicate::OneOf { path, values: Vec::new(), or_null: false }];
    PlannedListing { predicates, ..PlannedListing::default() }
}

/// The number of records that match, unless it is above the limit of the listing.
pub fn check_match_count(listing: &PlannedListing, count: i64) -> Result<u64> {
    let count = count.unsigned_abs();
    match listing.count {
        CountMode::UpTo(max) => plan::check_match_count(count, max),
        CountMode::Skip | CountMode::Exact => Ok(count),
    }
}
