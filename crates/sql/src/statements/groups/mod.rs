//! Groups of records: the statement, its parameters, and the cells that are read.

mod aggregate;
pub(crate) mod aggregate_parameters;
pub(crate) mod group_cells;
mod group_dialect;
