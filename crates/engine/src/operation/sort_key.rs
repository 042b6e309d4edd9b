//! What a list is sorted by: a value of its records, or of the records that references lead to.

use trefoil_model::{Field, FieldId, Model, RecordType};

use crate::operation::ValuePath;

/// The number of references and embedded values that a sort key may go through.
pub const MAX_SORT_DEPTH: usize = 3;

/// The number of sort keys of a list that may go through references and embedded values: each may join more tables.
pub const MAX_SORT_PATHS: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    pub value: SortValue,
    pub descending: bool,
}

/// What records are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SortValue {
    Path(ReferencePath),
    /// The weighted number of occurrences of the words of a search in the record itself; 0 without a search.
    Rank,
}

/// How a rank is named among sort keys. The best come first, and with `-` last.
pub const RANK_NAME: &str = "@rank";

/// Where the value is that records are sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferencePath {
    /// References, which lead from the record of the list to the one with the value.
    pub references: Vec<FieldId>,
    pub value: ValuePath,
}

impl SortKey {
    /// By a field of the record itself.
    pub fn by_field(field: FieldId, descending: bool) -> SortKey {
        let path = ReferencePath { references: Vec::new(), value: field.into() };
        SortKey { value: SortValue::Path(path), descending }
    }

    /// Appends it, unless there is one by the same value already.
    pub fn append_to(self, sort_keys: &mut Vec<SortKey>) {
        if !sort_keys.iter().any(|known| known.value == self.value) {
            sort_keys.push(self);
        }
    }

    /// The key as `sort` spells it: `-user.name`.
    pub fn word(&self, model: &Model, record: &RecordType) -> String {
        let is_marked = self.descending != (self.value == SortValue::Rank);
        format!("{}{}", if is_marked { "-" } else { "" }, self.value.name(model, record))
    }
}

impl SortValue {
    pub fn path(&self) -> Option<&ReferencePath> {
        match self {
            SortValue::Path(path) => Some(path),
            SortValue::Rank => None,
        }
    }

    /// The field of the record itself, if the value is in its column.
    pub fn own_field(&self) -> Option<FieldId> {
        self.path().and_then(ReferencePath::own_field)
    }

    pub fn name(&self, model: &Model, record: &RecordType) -> String {
        self.path().map_or_else(|| RANK_NAME.to_owned(), |path| path.name(model, record))
    }
}

impl ReferencePath {
    fn own_field(&self) -> Option<FieldId> {
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
