//! How a write treats fields that it is not given.

use trefoil_model::FieldId;

/// A field that the operation fills by itself if no value is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilledField {
    pub field: FieldId,
    pub value: FillValue,
    /// Also when a record changes, not only when it is created.
    pub on_update: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillValue {
    CurrentTime,
    CurrentDate,
    False,
    EmptyList,
}

impl FillValue {
    /// As it is told to people.
    pub fn description(self) -> &'static str {
        match self {
            FillValue::CurrentTime => "the time",
            FillValue::CurrentDate => "the date",
            FillValue::False => "false",
            FillValue::EmptyList => "an empty list",
        }
    }
}

/// How an update treats the fields that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingFields {
    Keep,
    Reset,
}
