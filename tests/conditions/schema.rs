//! A random schema: record types with single values, lists, embedded values, references, inverse lists and links.

use std::fmt::Write as _;

use crate::power::chance::Chance;

/// A schema and the time zone in which its application counts.
pub struct PlainSchema {
    pub zone: &'static str,
    /// The embedded types; one contains only those before it.
    pub parts: Vec<PlainType>,
    pub records: Vec<PlainType>,
}

/// A record type or an embedded type. The first field of a record type is its key.
pub struct PlainType {
    pub name: &'static str,
    /// The list in GraphQL and the collection in REST.
    pub plural: &'static str,
    pub fields: Vec<PlainField>,
}

pub struct PlainField {
    pub name: String,
    pub content: Content,
    pub required: bool,
}

/// What a field contains. Types and fields are positions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Key(ValueKind),
    Single(ValueKind),
    List(ValueKind),
    Part(usize),
    Reference {
        target: usize,
        /// The list on the other side.
        inverse: Option<usize>,
    },
    Inverse {
        target: usize,
        reference: usize,
    },
    Link {
        target: usize,
        /// The other direction, if it has a field.
        back: Option<usize>,
        /// The directive is on this side, and rows set it here.
        is_owner: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// Counted: a key alone.
    Digits,
    Int,
    Long,
    Float,
    Decimal,
    Text,
    Flag,
    Date,
    DateTime,
    Color,
    Uuid,
}

pub const COLORS: [&str; 4] = ["RED", "GREEN", "BLUE", "Amber"];
const ZONES: [&str; 5] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "UTC"];
const RECORDS: [(&str, &str); 4] =
    [("Alder", "alders"), ("Birch", "birches"), ("Cedar", "cedars"), ("Elm", "elms")];
const LINKS: [&str; 3] = ["marks", "topics", "badges"];
const BACK_LINKS: [&str; 3] = ["owners", "holders", "bearers"];
const PARTS: [&str; 2] = ["Spot", "Place"];
const KINDS: [ValueKind; 10] = [
    ValueKind::Int,
    ValueKind::Long,
    ValueKind::Float,
    ValueKind::Decimal,
    ValueKind::Text,
    ValueKind::Flag,
    ValueKind::Date,
    ValueKind::DateTime,
    ValueKind::Color,
    ValueKind::Uuid,
];
const KEYS: [ValueKind; 6] = [
    ValueKind::Digits,
    ValueKind::Digits,
    ValueKind::Digits,
    ValueKind::Int,
    ValueKind::Uuid,
    ValueKind::Text,
];

impl ValueKind {
    pub fn type_name(self) -> &'static str {
        match self {
            ValueKind::Digits => "ID",
            ValueKind::Int => "Int",
            ValueKind::Long => "Long",
            ValueKind::Float => "Float",
            ValueKind::Decimal => "Decimal",
            ValueKind::Text => "String",
            ValueKind::Flag => "Boolean",
            ValueKind::Date => "Date",
            ValueKind::DateTime => "DateTime",
            ValueKind::Color => "Color",
            ValueKind::Uuid => "UUID",
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, ValueKind::Int | ValueKind::Long | ValueKind::Float | ValueKind::Decimal)
    }

    /// Whether values have a least and a greatest one.
    pub fn is_ordered(self) -> bool {
        self.is_number() || matches!(self, ValueKind::Text | ValueKind::Date | ValueKind::DateTime)
    }
}

impl Content {
    fn linked(self) -> Option<usize> {
        if let Content::Link { target, .. } = self { Some(target) } else { None }
    }

    pub fn referred(self) -> Option<usize> {
        if let Content::Reference { target, .. } = self { Some(target) } else { None }
    }
}

impl PlainField {
    fn new(name: String, content: Content, required: bool) -> PlainField {
        PlainField { name, content, required }
    }

    /// The kind of a single value, also of the key that a reference holds.
    pub fn single(&self, schema: &PlainSchema) -> Option<ValueKind> {
        match self.content {
            Content::Key(kind) | Content::Single(kind) => Some(kind),
            Content::Reference { target, .. } => schema.records[target].fields[0].single(schema),
            Content::List(_) | Content::Part(_) | Content::Inverse { .. } | Content::Link { .. } => None,
        }
    }

    /// The name by which conditions and bodies know it.
    pub fn input_name(&self) -> String {
        match self.content {
            Content::Reference { .. } => format!("{}Id", self.name),
            Content::Link { .. } => format!("{}Ids", self.name.trim_end_matches('s')),
            _ => self.name.clone(),
        }
    }
}

impl PlainSchema {
    pub fn random(chance: &mut Chance) -> PlainSchema {
        let zone = *chance.pick(&ZONES).unwrap();
        let mut schema = PlainSchema { zone, parts: Vec::new(), records: Vec::new() };
        for (position, name) in PARTS.into_iter().enumerate() {
            let mut fields = values(chance, 2, 6);
            if position > 0 && chance.percent(70) {
                fields.push(PlainField::new("inner".to_owned(), Content::Part(position - 1), false));
            }
            schema.parts.push(PlainType { name, plural: "", fields });
        }
        for (name, plural) in RECORDS.into_iter().take(2 + chance.below(3)) {
            let key = Content::Key(*chance.pick(&KEYS).unwrap());
            let mut fields = vec![PlainField::new("id".to_owned(), key, true)];
            fields.extend(values(chance, 4, 9));
            if chance.percent(70) {
                let part = Content::Part(chance.below(PARTS.len()));
                fields.push(PlainField::new("place".to_owned(), part, chance.percent(20)));
            }
            schema.records.push(PlainType { name, plural, fields });
        }
        for from in 0..schema.records.len() {
            for number in 0..1 + chance.below(2) {
                schema.add_reference(chance, from, number);
            }
        }
        for number in 0..1 + chance.below(3) {
            schema.add_link(chance, number);
        }
        schema
    }

    /// A required reference leads to a type before its own, whose records are there first.
    fn add_reference(&mut self, chance: &mut Chance, from: usize, number: usize) {
        let target = chance.below(self.records.len());
        let required = target < from && chance.percent(30);
        let inverse = chance.percent(75).then(|| self.records[target].fields.len());
        let reference = self.records[from].fields.len();
        let content =
            Content::Reference { target, inverse: inverse.map(|at| at + usize::from(target == from)) };
        self.records[from].fields.push(PlainField::new(format!("one{number}"), content, required));
        if inverse.is_some() {
            let name = format!("lines{from}{number}");
            let content = Content::Inverse { target: from, reference };
            self.records[target].fields.push(PlainField::new(name, content, true));
        }
    }

    fn add_link(&mut self, chance: &mut Chance, number: usize) {
        let (from, target) = (chance.below(self.records.len()), chance.below(self.records.len()));
        let own = self.records[from].fields.len();
        // A list of the own type alone has one direction. Beside a reference it would be its inverse, and of two such
        // lists each could be the other direction of the other.
        let has_own = |is_own: fn(Content) -> Option<usize>| {
            from == target
                && self.records[from].fields.iter().any(|field| is_own(field.content) == Some(from))
        };
        if has_own(Content::linked) {
            return;
        }
        let has_back = from != target || has_own(Content::referred) || chance.percent(50);
        let back = has_back.then(|| self.records[target].fields.len() + usize::from(from == target));
        let content = Content::Link { target, back, is_owner: true };
        self.records[from].fields.push(PlainField::new(LINKS[number].to_owned(), content, true));
        if has_back {
            let content = Content::Link { target: from, back: Some(own), is_owner: false };
            self.records[target].fields.push(PlainField::new(BACK_LINKS[number].to_owned(), content, true));
        }
    }

    pub fn sdl(&self) -> String {
        let mut text = format!("enum Color {{ {} }}\n", COLORS.join(" "));
        for owner in self.parts.iter().chain(&self.records) {
            let _ = writeln!(text, "type {} {{", owner.name);
            for field in &owner.fields {
                let mark = if field.required { "!" } else { "" };
                let _ = writeln!(text, "  {}: {}", field.name, self.type_text(field.content, mark));
            }
            text += "}\n";
        }
        text
    }

    fn type_text(&self, content: Content, mark: &str) -> String {
        let directive = |target: usize, field: usize| {
            format!(" @reference(inverse: \"{}\")", self.records[target].fields[field].name)
        };
        match content {
            Content::Key(kind) | Content::Single(kind) => format!("{}{mark}", kind.type_name()),
            Content::List(kind) => format!("[{}!]{mark}", kind.type_name()),
            Content::Part(part) => format!("{}{mark}", self.parts[part].name),
            Content::Reference { target, inverse } => {
                let directive = inverse.map_or(String::new(), |field| directive(target, field));
                format!("{}{mark}{directive}", self.records[target].name)
            }
            Content::Inverse { target, .. } => format!("[{}!]!", self.records[target].name),
            Content::Link { target, back, is_owner } => {
                let directive =
                    back.filter(|_| is_owner).map_or(String::new(), |field| directive(target, field));
                format!("[{}!]!{directive}", self.records[target].name)
            }
        }
    }
}

/// Between `least` and `most` fields with values.
fn values(chance: &mut Chance, least: usize, most: usize) -> Vec<PlainField> {
    let count = least + chance.below(most - least + 1);
    let field = |number: usize| {
        let kind = *chance.pick(&KINDS).unwrap();
        let content = if chance.percent(15) { Content::List(kind) } else { Content::Single(kind) };
        PlainField::new(format!("{}{number}", kind.type_name().to_lowercase()), content, chance.percent(20))
    };
    (0..count).map(field).collect()
}
