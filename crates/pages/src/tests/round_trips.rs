//! Property tests: the form of any record, submitted untouched as a browser does, changes nothing.

use proptest::prelude::*;

use trefoil_http::form_pairs::FormPairs;
use trefoil_model::values::coerce;
use trefoil_model::{
    FieldId, FieldKind, Model, RecordId, RecordType, Scalar, SourceFile, StoredValue, Value, ValueType,
    parse_schema,
};
use trefoil_resources::forms::form_input::FormInput;

use crate::form::choices::{OfferedRecords, ReferenceChoices};
use crate::form::controls::ControlBuilder;
use crate::form::editable_record::EditableRecord;
use crate::template_data::{ControlKind, ControlView};

const SCHEMA: &str = r#"
scalar Long  scalar Decimal  scalar Date  scalar DateTime  scalar UUID  scalar URL  scalar Email  scalar JSON
enum Few { RED GREEN }
enum Many { A B C D E F G }
type Place { city: String!  zip: Int  at: DateTime  open: Boolean!  few: Few!  inner: Place  tags: [String!]  notes: String }
type Line { label: String!  price: Decimal! @default(value: "1")  paid: Boolean  parts: [Line!] }
type Thing {
  id: ID!
  text: String  body: String!  int: Int!  float: Float  yes: Boolean!  maybe: Boolean  code: ID
  long: Long  decimal: Decimal!  date: Date  at: DateTime  uuid: UUID  url: URL  email: Email  json: JSON  mail: String @email
  few: Few  must: Few!  many: Many  all: Many!
  texts: [String]  ints: [Int!]!  matrix: [[Int]]  times: [DateTime!]  jsons: [JSON]  picks: [Many!]!  maybes: [Few]
  place: Place  there: Place!  lines: [Line!]!  places: [Place]
  owner: Owner!  other: Owner  groups: [Group!]!
}
type Owner { id: ID!  name: String!  things: [Thing!]! @reference(inverse: "owner")  others: [Thing!]! @reference(inverse: "other") }
type Group { id: ID!  things: [Thing!]! }
type Query { things: [Thing!]! }
"#;

fn model() -> Model {
    let files = [SourceFile { name: "t.graphqls".into(), text: SCHEMA.into() }];
    parse_schema(&files, &[]).expect("the schema is right").0
}

/// Pseudo-random values, the same for the same seed.
struct RandomValues {
    state: u64,
    /// Only values that controls can show in full: no blank texts, no empty lists, no line ends but `\n`.
    tame: bool,
}

impl RandomValues {
    fn number_below(&mut self, sides: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % sides
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.number_below(texts.len() as u64) as usize]
    }

    fn text(&mut self) -> Value {
        let tame = ["a", "two\nlines", " x ", "<b>&amp;\"'", "Grüße 你好", "[1]", "false", "a.b", "\nfirst"];
        let wild = ["", " ", "\r", "a\r\nb", "a\rb", "\n", "\u{1}", "\u{2028}x"];
        let text = if self.tame || self.number_below(2) == 0 { self.pick(&tame) } else { self.pick(&wild) };
        Value::from(text)
    }

    fn moment(&mut self) -> Value {
        let fraction = self.pick(&["", ".5", ".123", ".123456"]);
        let clock = format!(
            "{:02}:{:02}:{:02}",
            self.number_below(24),
            self.number_below(60),
            self.number_below(2) * 30
        );
        Value::String(format!(
            "{:04}-0{}-1{}T{clock}{fraction}Z",
            1 + self.number_below(9999),
            1 + self.number_below(9),
            self.number_below(9)
        ))
    }

    fn scalar(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::String | Scalar::Id => self.text(),
            Scalar::Int => Value::Int(self.number_below(1 << 31) as i64 - (1 << 30)),
            Scalar::Long => Value::Int((self.number_below(1 << 31) << 31) as i64 - (1 << 60)),
            Scalar::Float => {
                Value::number(&format!("{}e{}", self.number_below(1000), self.number_below(40) as i64 - 20))
                    .expect("a number")
            }
            Scalar::Boolean => Value::Bool(self.number_below(2) == 0),
            Scalar::Decimal => {
                Value::String(format!("-{}.{}0", self.number_below(1 << 30), self.number_below(1000)))
            }
            Scalar::Date => {
                Value::String(format!("{:04}-12-3{}", 1 + self.number_below(9999), self.number_below(2)))
            }
            Scalar::DateTime | Scalar::LocalDateTime => self.moment(),
            Scalar::Uuid => {
                Value::String(format!("123e4567-e89b-12d3-a456-4266141740{:02}", self.number_below(100)))
            }
            Scalar::Url => Value::from(self.pick(&["https://example.com/ä?b=c#d", "mailto:a@b"])),
            Scalar::Email => Value::from("name+tag@example.com"),
            Scalar::Json => match self.number_below(5) {
                0 => self.text(),
                1 => Value::List(vec![Value::Null, self.text(), Value::number("1.10").expect("a number")]),
                2 => Value::Object(vec![("a b".into(), self.text()), ("".into(), Value::List(vec![]))]),
                3 => Value::Bool(false),
                _ => Value::Int(7),
            },
        }
    }

    fn value(&mut self, model: &Model, kind: &FieldKind) -> Value {
        match kind.value_type() {
            Some(value_type) => self.typed_value(model, value_type, 0),
            None => Value::List((0..self.number_below(3)).map(|id| Value::Int(id as i64)).collect()),
        }
    }

    fn typed_value(&mut self, model: &Model, value_type: &ValueType, depth: usize) -> Value {
        match value_type {
            ValueType::Key(_) => Value::Int(1 + self.number_below(3) as i64),
            ValueType::Scalar(scalar) => self.scalar(*scalar),
            ValueType::Enum(name) => {
                let values = &model.enums[name].values;
                Value::from(values[self.number_below(values.len() as u64) as usize].as_str())
            }
            ValueType::Embedded(name) => {
                let fields = model.embedded[name].stored_fields().map(|(field, value_type)| {
                    let deep = depth > 5 && value_type.has_parts();
                    let none = !field.required && (deep || self.number_below(3) == 0);
                    let value =
                        if none { Value::Null } else { self.typed_value(model, value_type, depth + 1) };
                    (field.name.clone(), value)
                });
                Value::Object(fields.collect())
            }
            ValueType::List(item) => {
                // Sometimes more items than a form has groups for.
                let length = match (self.number_below(40), self.tame) {
                    (0, _) if depth == 0 => 60,
                    (_, true) => 1 + self.number_below(3),
                    (_, false) => self.number_below(4),
                };
                let items = (0..length).map(|_| {
                    let none = !item.required && !self.tame && self.number_below(3) == 0;
                    if none { Value::Null } else { self.typed_value(model, &item.value_type, depth + 1) }
                });
                Value::List(items.collect())
            }
        }
    }

    /// A record as it is stored and read.
    fn record(&mut self, model: &Model, record: &RecordType) -> EditableRecord {
        let mut values = Vec::new();
        for (position, field) in record.fields.iter().enumerate().filter(|(_, field)| field.is_writable()) {
            let none = !field.required && self.number_below(4) == 0;
            let value = if none { Value::Null } else { self.value(model, &field.kind) };
            if field.kind.is_link() {
                values.push((FieldId(position), value));
                continue;
            }
            let stored = coerce::coerce_type_only(model, field, &value);
            let stored = if none { StoredValue::Null } else { stored.expect("a value of its kind") };
            values.push((FieldId(position), field.cell_value(stored.as_cell())));
        }
        EditableRecord { version: 1, title: "Thing".into(), values, closed: Vec::new(), lists: Vec::new() }
    }
}

fn choices(record: &RecordType) -> ReferenceChoices {
    let fields = record.fields.iter().enumerate();
    let related = fields.filter(|(_, field)| field.kind.input_target().is_some());
    let options: Vec<(RecordId, String)> =
        (0..4).map(|id| (RecordId::Number(id), format!("Number {id}"))).collect();
    related
        .map(|(position, _)| {
            (FieldId(position), OfferedRecords { options: options.clone(), ..OfferedRecords::default() })
        })
        .collect()
}

/// The pairs that a browser submits for untouched controls.
fn browser_pairs(controls: &[ControlView], pairs: &mut FormPairs) {
    for control in controls {
        let mut push = |text: &str| pairs.push((control.name.clone(), text.to_owned()));
        let mut chosen =
            control.options.iter().filter(|option| option.chosen).map(|option| option.value.as_str());
        match control.kind {
            ControlKind::Textarea | ControlKind::Json => {
                push(&control.value.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n"));
            }
            ControlKind::Checkbox => {
                push("false");
                if control.value == "true" {
                    push("true");
                }
            }
            ControlKind::Radios => chosen.for_each(push),
            ControlKind::Select => push(chosen.next().unwrap_or(&control.options[0].value)),
            ControlKind::Checkboxes => {
                push("");
                chosen.for_each(push);
            }
            ControlKind::Group | ControlKind::Groups => browser_pairs(&control.children, pairs),
            ControlKind::Text
            | ControlKind::Hidden
            | ControlKind::Username
            | ControlKind::Password
            | ControlKind::Email
            | ControlKind::Url
            | ControlKind::Date
            | ControlKind::DateTime
            | ControlKind::Number => {
                assert!(!control.value.contains(['\n', '\r']), "{} would lose its lines", control.name);
                let trims = matches!(control.kind, ControlKind::Email | ControlKind::Url);
                push(if trims { control.value.trim() } else { &control.value });
            }
        }
    }
}

/// The form of a record, rendered and submitted.
fn submitted_input(model: &Model, record: &RecordType, stored_record: &EditableRecord) -> FormInput {
    let choices = choices(record);
    let controls = ControlBuilder::new(model, record, &choices)
        .build_controls(record, &stored_record.to_form_input(model, record));
    let mut pairs = FormPairs::new();
    browser_pairs(&controls, &mut pairs);
    FormInput::from_pairs(record, &pairs)
}

proptest! {
    #[test]
    fn untouched_form_changes_nothing(seed in any::<u64>()) {
        let model = model();
        let record = model.record(model.find_record("Thing").expect("the type"));
        let stored_record = RandomValues { state: seed, tame: false }.record(&model, record);
        let form_values = submitted_input(&model, record, &stored_record).read_values(&model, record);
        prop_assert_eq!(&form_values.violations, &[]);
        prop_assert_eq!(stored_record.changed_fields(&model, record, form_values.fields), vec![]);
    }

    /// Even without a comparison with the stored record.
    #[test]
    fn fully_shown_values_are_submitted_unchanged(seed in any::<u64>()) {
        let model = model();
        let record = model.record(model.find_record("Thing").expect("the type"));
        let stored_record = RandomValues { state: seed, tame: true }.record(&model, record);
        let form_values = submitted_input(&model, record, &stored_record).read_values(&model, record);
        for (id, value) in form_values.fields {
            let field = record.field(id);
            let before = stored_record.values.iter().find(|(known, _)| *known == id);
            let before = before.expect("it was shown").1.clone();
            let coerced = |value: &Value| coerce::coerce_field(&model, field, value);
            if !field.kind.is_link() {
                prop_assert_eq!(coerced(&value), coerced(&before), "{}", field.name);
            }
        }
    }
}
