//! The parameters of an aggregate.

use trefoil_engine::plan::PlannedAggregate;

use crate::statements::predicate_sql::predicate_parameters;
use crate::statements::sql_parameter::SqlParameter;

/// Appends the parameters of an aggregate, in the order in which the statement numbers them.
pub(in crate::statements) fn aggregate_parameters<'a>(
    aggregate: &'a PlannedAggregate,
    into: &mut Vec<SqlParameter<'a>>,
) {
    aggregate.listing.predicates.iter().for_each(|predicate| predicate_parameters(predicate, into));
    into.extend(aggregate.having.iter().map(|condition| SqlParameter::Cell(condition.value.as_cell())));
    into.extend(aggregate.first.map(SqlParameter::integer));
    // One more shows that there are too many.
    into.push(SqlParameter::integer(aggregate.max_groups.saturating_add(1)));
}

/// The parameters of an aggregate over all records of a type.
pub fn root_parameters(aggregate: &PlannedAggregate) -> Vec<SqlParameter<'_>> {
    let mut parameters = Vec::new();
    aggregate_parameters(aggregate, &mut parameters);
    parameters
}
