//! The statement that counts, up to a limit, the records that a search would read, before it reads them.

use trefoil_engine::plan::PlannedListing;
use trefoil_model::error::Error;
use trefoil_model::{CellValue, RecordType};

use crate::statements::access::read_statement::ReadStatement;
use crate::statements::predicate_sql::predicate_parameters;
use crate::statements::sql_parameter::SqlParameter;

#[derive(Debug)]
pub struct SearchGuard {
    /// Its own last parameter is the number at which it stops counting.
    pub statement: ReadStatement,
    /// The positions of the predicates that an index answers: the search reads no other records.
    predicates: Vec<usize>,
    type_name: String,
}

impl SearchGuard {
    pub(in crate::statements) fn new(
        statement: ReadStatement,
        predicates: Vec<usize>,
        owner: &RecordType,
    ) -> SearchGuard {
        SearchGuard { statement, predicates, type_name: owner.name.clone() }
    }

    /// The parameters; `parents` are those of a list of children.
    pub fn parameters<'a>(
        &self,
        listing: &'a PlannedListing,
        parents: Option<&[CellValue<'a>]>,
    ) -> Vec<SqlParameter<'a>> {
        let mut parameters: Vec<SqlParameter<'a>> =
            parents.map(|keys| SqlParameter::Keys(keys.to_vec())).into_iter().collect();
        for position in &self.predicates {
            predicate_parameters(&listing.predicates[*position], &mut parameters);
        }
        let max = i64::from(listing.max_search_rows.unwrap_or(u32::MAX));
        parameters.push(SqlParameter::integer(max + 1));
        parameters
    }

    /// Refuses a search that would read this number of records.
    pub fn check(&self, listing: &PlannedListing, count: Option<i64>) -> Result<(), Error> {
        match listing.max_search_rows {
            Some(max) if count.unwrap_or(0) > i64::from(max) => {
                Err(listing.search_limit_error(&self.type_name))
            }
            Some(_) | None => Ok(()),
        }
    }
}
