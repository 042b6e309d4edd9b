//! Which predicates an index answers.

use trefoil_engine::plan::Predicate;
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
        | Predicate::IndexedWords { .. } => false,
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

pub fn has_index(owner: &RecordType, field: FieldId) -> bool {
    let definition = owner.field(field);
    let is_always_indexed =
        definition.unique || matches!(definition.kind.value_type(), Some(ValueType::Key(_)));
    is_always_indexed || owner.indexes.iter().any(|fields| fields.first() == Some(&field))
}
