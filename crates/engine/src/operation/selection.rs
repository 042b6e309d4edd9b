//! The columns and children that are wanted of each record.

use trefoil_model::FieldId;

use crate::operation::aggregate::AggregateQuery;
use crate::operation::listing::Listing;

/// The columns and children to read of each record, both addressed by position.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Fields with a column; [`crate::Row::cell`] takes a position in this list.
    pub columns: Vec<FieldId>,
    /// References, inverses and links; [`crate::Row::each_child`] takes a position in this list.
    pub children: Vec<ChildSelection>,
    /// Also reads the record's version, after the selected columns. Not for children.
    pub includes_version: bool,
}

impl Selection {
    pub fn new(columns: Vec<FieldId>, children: Vec<ChildSelection>) -> Selection {
        Selection { columns, children, includes_version: false }
    }

    /// The same selection with the version after the columns.
    pub fn with_version(self) -> Selection {
        Selection { includes_version: true, ..self }
    }
}

#[derive(Debug, Clone)]
pub struct ChildSelection {
    pub field: FieldId,
    /// Empty for references.
    pub listing: Listing,
    pub selection: Selection,
    /// What is computed of the related records, instead of reading them. [`crate::Row::each_child`] visits the groups.
    pub aggregate: Option<AggregateQuery>,
}

impl ChildSelection {
    /// The related records themselves.
    pub fn new(field: FieldId, listing: Listing, selection: Selection) -> ChildSelection {
        ChildSelection { field, listing, selection, aggregate: None }
    }

    /// Groups of the related records.
    pub fn groups(field: FieldId, aggregate: AggregateQuery) -> ChildSelection {
        let aggregate = Some(aggregate);
        ChildSelection { field, listing: Listing::default(), selection: Selection::default(), aggregate }
    }
}
