//! What `@display` says: the words for types, fields and enum values, and where and how pages show them.

/// How pages show a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldDisplay {
    pub label: Option<String>,
    pub hint: Option<String>,
    pub placeholder: Option<String>,
    /// Fields with a number come first, by it.
    pub order: Option<i32>,
    /// The fields of a group stand together, under its name.
    pub group: Option<String>,
    /// Where it is left out.
    pub off: HiddenPlaces,
    /// The sum of the values stands below lists. Only a number of a record has it.
    pub sum: bool,
    pub format: Option<ValueFormat>,
    /// Shown, and not on forms.
    pub is_read_only: bool,
    pub width: Option<ControlWidth>,
}

/// The places where pages do not show a field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HiddenPlaces {
    pub list: bool,
    pub form: bool,
    pub detail: bool,
    pub filter: bool,
}

/// How a value is written, and typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFormat {
    /// A number with two digits after the point, in groups.
    Currency,
    /// A number of hundredths: 19 is 19%.
    Percent,
    Code,
    Color,
    Link,
    Multiline,
}

impl ValueFormat {
    pub const NAMES: [(&'static str, ValueFormat); 6] = [
        ("CURRENCY", ValueFormat::Currency),
        ("PERCENT", ValueFormat::Percent),
        ("CODE", ValueFormat::Code),
        ("COLOR", ValueFormat::Color),
        ("LINK", ValueFormat::Link),
        ("MULTILINE", ValueFormat::Multiline),
    ];

    /// True if it is for numbers; the others are for texts.
    pub fn is_of_numbers(self) -> bool {
        match self {
            ValueFormat::Currency | ValueFormat::Percent => true,
            ValueFormat::Code | ValueFormat::Color | ValueFormat::Link | ValueFormat::Multiline => false,
        }
    }
}

/// The width of a control in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlWidth {
    Narrow,
    Medium,
    Wide,
}

impl ControlWidth {
    pub const NAMES: [(&'static str, ControlWidth); 3] =
        [("NARROW", ControlWidth::Narrow), ("MEDIUM", ControlWidth::Medium), ("WIDE", ControlWidth::Wide)];
}

/// How pages show the records of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordDisplay {
    pub label: Option<String>,
    pub plural: Option<String>,
    /// The part of the navigation and of the start page.
    pub group: Option<String>,
    /// Types with a number come first in the navigation, by it.
    pub order: Option<i32>,
    /// Left out of the navigation.
    pub is_unlisted: bool,
    /// The columns of lists, by the names of fields; empty for those that suit a table.
    pub columns: Vec<String>,
    /// The order of lists, in the syntax of `sort`: `-startsAt`, `patient.lastName`.
    pub sort: Vec<String>,
    pub page_size: Option<i64>,
}

/// How pages show an enum value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceDisplay {
    pub label: Option<String>,
    pub tone: Option<ChoiceTone>,
}

/// The colour of an enum value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChoiceTone {
    Blue,
    Green,
    Purple,
    Yellow,
    Red,
    Teal,
    Grey,
}

impl ChoiceTone {
    pub const NAMES: [(&'static str, ChoiceTone); 7] = [
        ("BLUE", ChoiceTone::Blue),
        ("GREEN", ChoiceTone::Green),
        ("PURPLE", ChoiceTone::Purple),
        ("YELLOW", ChoiceTone::Yellow),
        ("RED", ChoiceTone::Red),
        ("TEAL", ChoiceTone::Teal),
        ("GREY", ChoiceTone::Grey),
    ];

    /// The tones of values that say none, in turn.
    pub(crate) const IN_TURN: usize = 6;
}
