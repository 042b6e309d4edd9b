//! Which predicates and orders an index answers.

use trefoil_engine::plan::{PlannedListing, Predicate};
use trefoil_model::{ComparisonOp, FieldId, RecordType, ValueType};

/// True if an index finds the records that the predicate is true of.
pub fn is_indexed_predicate(owner: &RecordType, predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Compare { op: ComparisonOp::Ne, .. }
        | Predicate::NotNull { .. }
        | Predicate::Text { .. }
        | Predicate::TextPattern { .. }
        | Predicate::HasItem { .. }
        | Predicate::HasItems { .. }
        | Predicate::Any(_)
        | Predicate::Not(_)
        | Predicate::Related { .. }
        | Predicate::LinkedFrom { .. }
        | Predicate::Words { .. }
        | Predicate::IndexedWords { .. }
        | Predicate::ShownWords { .. } => false,
        Predicate::Compare {
            path,
            op: ComparisonOp::Eq | ComparisonOp::Lt | ComparisonOp::Lte | ComparisonOp::Gt | ComparisonOp::Gte,
            ..
        }
        | Predicate::OneOf { path, .. }
        | Predicate::IsNull { path } => path.members.is_empty() && has_index(owner, path.field),
        Predicate::All(predicates) => {
            predicates.iter().all(|predicate| is_indexed_predicate(owner, predicate))
        }
        Predicate::Never => true,
    }
}

/// True if an index has the records in the order of the listing.
pub fn is_index_order(owner: &RecordType, listing: &PlannedListing) -> bool {
    listing.sort_keys.first().is_none_or(|key| {
        // Nulls come last in both directions, which an index provides in one only.
        key.value.own_field().is_some_and(|id| {
            let field = owner.field(id);
            let may_be_null = !field.required && !field.kind.is_id();
            has_index(owner, id) && !(key.descending && may_be_null)
        })
    })
}

pub fn has_index(owner: &RecordType, field: FieldId) -> bool {
    let definition = owner.field(field);
    let is_always_indexed =
        definition.unique || matches!(definition.kind.value_type(), Some(ValueType::Key(_)));
    is_always_indexed || owner.indexes.iter().any(|fields| fields.first() == Some(&field))
}
