//! The way to a value of a record, or of a record that references lead to.

use trefoil_model::{Field, FieldId, Model, RecordType};

use crate::operation::condition::ValuePath;

/// Where a value is that records are sorted or grouped by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencePath {
    /// References, which lead from the record itself to the one with the value.
    pub references: Vec<FieldId>,
    pub value: ValuePath,
}

impl From<FieldId> for ReferencePath {
    fn from(field: FieldId) -> ReferencePath {
        ReferencePath { references: Vec::new(), value: field.into() }
    }
}

impl ReferencePath {
    /// The field of the record itself, if the value is in its column.
    pub fn own_field(&self) -> Option<FieldId> {
        (self.references.is_empty() && self.value.members.is_empty()).then_some(self.value.field)
    }

    /// The references with the types that have them, and then the type that has the value.
    fn walk<'m>(&self, model: &'m Model, record: &'m RecordType) -> (Vec<&'m Field>, &'m RecordType) {
        let mut owner = record;
        let mut fields = Vec::with_capacity(self.references.len());
        for reference in &self.references {
            let field = owner.field(*reference);
            fields.push(field);
            if let Some(relation) = field.kind.relation() {
                owner = model.record(relation.target());
            }
        }
        (fields, owner)
    }

    /// The record type with the value.
    pub fn owner<'m>(&self, model: &'m Model, record: &'m RecordType) -> &'m RecordType {
        self.walk(model, record).1
    }

    /// The field that holds the value.
    pub fn target<'m>(&'m self, model: &'m Model, record: &'m RecordType) -> &'m Field {
        self.value.target(model, self.walk(model, record).1)
    }

    /// All fields on the way to the value, which the last one holds.
    pub fn fields<'m>(&'m self, model: &'m Model, record: &'m RecordType) -> Vec<&'m Field> {
        let (mut fields, owner) = self.walk(model, record);
        fields.extend(self.value.fields(model, owner));
        fields
    }

    /// `user.name`
    pub fn name(&self, model: &Model, record: &RecordType) -> String {
        let names = self.fields(model, record).into_iter().map(|field| field.name.as_str());
        names.collect::<Vec<_>>().join(".")
    }
}
