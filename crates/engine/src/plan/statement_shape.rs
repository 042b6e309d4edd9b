//! `StatementShape`: everything about a plan that decides its SQL statements, as bytes that can be compared.

use trefoil_model::FieldId;

/// Equal for two plans of a model exactly if they need the same statements; parameter values do not count. Each part
/// says where it ends, so that different parts never make the same bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementShape(Vec<u8>);

impl StatementShape {
    /// Begins the shape of a plan with its kind and selection. Kind 0 is that of a selection by itself.
    pub fn of_kind(kind: u8, selection: &StatementShape) -> StatementShape {
        let mut bytes = Vec::with_capacity(96 + selection.0.len());
        bytes.push(kind);
        bytes.extend(&selection.0);
        StatementShape(bytes)
    }

    pub fn push_flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    pub fn push_number(&mut self, number: usize) {
        self.0.extend((number as u32).to_le_bytes());
    }

    /// The bytes with their length.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.push_number(bytes.len());
        self.0.extend(bytes);
    }

    pub fn push_fields(&mut self, fields: impl ExactSizeIterator<Item = FieldId>) {
        self.push_number(fields.len());
        fields.for_each(|field| self.push_number(field.0));
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let shape = |lists: [&[usize]; 2]| {
            let mut shape = StatementShape::default();
            lists.iter().for_each(|list| shape.push_fields(list.iter().map(|field| FieldId(*field))));
            shape
        };
        assert_ne!(shape([&[1, 2], &[3]]), shape([&[1], &[2, 3]]));
        assert_ne!(shape([&[], &[1]]), shape([&[1], &[]]));
        let inside = |bytes: [&[u8]; 2]| {
            let mut shape = StatementShape::of_kind(1, &StatementShape::default());
            bytes.iter().for_each(|bytes| shape.push_bytes(bytes));
            shape
        };
        assert_ne!(inside([b"ab", b"c"]), inside([b"a", b"bc"]));
    }
}
