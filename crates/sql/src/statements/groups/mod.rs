//! Groups of records: the statement, its parameters, and the cells that are read.

pub(crate) mod aggregate_parameters;
mod aggregate_select;
pub(crate) mod group_cells;
mod group_dialect;
