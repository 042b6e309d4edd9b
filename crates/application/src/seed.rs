//! The records and list values of `seed/*.json`, parsed but not yet checked against the schema.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use trefoil_model::{Diagnostic, Value};

/// The code of every diagnostic about a seed.
pub const SEED_CODE: &str = "SEED";

/// The initial contents of an empty store, in the order of file names.
#[derive(Debug, Default)]
pub struct Seed {
    pub files: Vec<SeedFile>,
}

/// `seed/users.json`: the initial contents of one collection or list.
#[derive(Debug)]
pub struct SeedFile {
    /// The file's path in the application folder.
    pub name: String,
    /// The collection's or list's path, without the slash: the file's name without `.json`.
    pub collection: String,
    pub rows: SeedRows,
}

#[derive(Debug)]
pub enum SeedRows {
    Records(Vec<SeedRecord>),
    /// The values of a plain list.
    Texts(Vec<String>),
}

/// One record as written in the file; a reference is the field `userId`.
#[derive(Debug)]
pub struct SeedRecord {
    /// The position in the file, in bytes.
    pub span: Range<usize>,
    /// An object.
    pub fields: Value,
}

impl SeedRecord {
    /// The position of the member with this name, from its name to its value; `text` is that of the file.
    pub fn field_span(&self, text: &str, name: &str) -> Option<Range<usize>> {
        let members: RawMembers = serde_json::from_str(text.get(self.span.clone())?).ok()?;
        let is_named =
            |key: &RawValue| serde_json::from_str::<String>(key.get()).is_ok_and(|key| key == name);
        let (key, value) = members.0.into_iter().rev().find(|(key, _)| is_named(key))?;
        Some(span(text, key).start..span(text, value).end)
    }
}

/// The members of an object as they are written.
struct RawMembers<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MemberVisitor;
        impl<'de> Visitor<'de> for MemberVisitor {
            type Value = RawMembers<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawMembers<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(MemberVisitor)
    }
}

impl SeedFile {
    /// The contents of the file, or every mistake in it.
    pub fn parse(name: &str, text: &str) -> Result<SeedFile, Vec<Diagnostic>> {
        let elements: Vec<&RawValue> =
            serde_json::from_str(text).map_err(|error| vec![json_diagnostic(name, text, &error)])?;
        let is_text = |element: &&RawValue| element.get().starts_with('"');
        let rows = if !elements.is_empty() && elements.iter().all(is_text) {
            SeedRows::Texts(read_texts(name, text, &elements)?)
        } else {
            SeedRows::Records(read_records(name, text, &elements)?)
        };
        let file = name.rsplit('/').next().unwrap_or(name);
        let collection = file.strip_suffix(".json").unwrap_or(file).to_owned();
        Ok(SeedFile { name: name.to_owned(), collection, rows })
    }
}

fn read_records(name: &str, text: &str, elements: &[&RawValue]) -> Result<Vec<SeedRecord>, Vec<Diagnostic>> {
    let mut records = Vec::new();
    let mut mistakes = Vec::new();
    for element in elements {
        let span = span(text, element);
        if element.get().starts_with('{') {
            match serde_json::from_str(element.get()) {
                Ok(fields) => records.push(SeedRecord { span, fields }),
                Err(error) => mistakes.push(unreadable(name, text, element, &error)),
            }
        } else {
            let message = "a seed file must contain an array of records, or of texts for a plain list";
            let mut mistake = Diagnostic::in_file(name, SEED_CODE, message).with_span(name, text, span);
            mistake.help("write each record as {\"field\": value, …}");
            mistakes.push(mistake);
        }
    }
    if mistakes.is_empty() { Ok(records) } else { Err(mistakes) }
}

fn read_texts(name: &str, text: &str, elements: &[&RawValue]) -> Result<Vec<String>, Vec<Diagnostic>> {
    let (mut texts, mut mistakes) = (Vec::new(), Vec::new());
    for element in elements {
        match serde_json::from_str(element.get()) {
            Ok(value) => texts.push(value),
            Err(error) => mistakes.push(unreadable(name, text, element, &error)),
        }
    }
    if mistakes.is_empty() { Ok(texts) } else { Err(mistakes) }
}

/// The position of an element: it is a slice of `text`, so its address gives the offset.
fn span(text: &str, element: &RawValue) -> Range<usize> {
    let start = element.get().as_ptr() as usize - text.as_ptr() as usize;
    start..start + element.get().len()
}

/// Valid JSON syntax that is not a value: half of a surrogate pair, or nested too deeply.
fn unreadable(name: &str, text: &str, element: &RawValue, error: &serde_json::Error) -> Diagnostic {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    let diagnostic = Diagnostic::in_file(name, SEED_CODE, format!("invalid value: {message}"));
    diagnostic.with_span(name, text, span(text, element))
}

fn json_diagnostic(name: &str, text: &str, error: &serde_json::Error) -> Diagnostic {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let offset = before + error.column().saturating_sub(1);
    if error.is_data() {
        let mut diagnostic = Diagnostic::in_file(name, SEED_CODE, "a seed file must contain one JSON array")
            .with_span(name, text, 0..1);
        diagnostic.help("write the records as [{…}, {…}]");
        return diagnostic;
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or(&message);
    Diagnostic::in_file(name, SEED_CODE, format!("invalid JSON: {message}")).with_span(
        name,
        text,
        offset..offset + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_spans_and_exact_numbers() {
        const TEXT: &str = "[\n {\"id\": 1, \"name\": \"Zoë\"},\n {\"price\": 1.10}\n]";
        let file = SeedFile::parse("seed/users.json", TEXT).unwrap();
        assert_eq!(file.collection, "users");
        let SeedRows::Records(records) = file.rows else { panic!("these are records") };
        assert_eq!((records[0].span.clone(), records[1].span.start), (3..28, 31));
        assert_eq!(records[0].fields.get("name"), Some(&Value::from("Zoë")));
        assert_eq!(records[1].fields.get("price").cloned(), Value::number("1.10"));
        let field = |name| records[0].field_span(TEXT, name).map(|span| &TEXT[span]);
        assert_eq!((field("name"), field("nme")), (Some("\"name\": \"Zoë\""), None));
    }

    #[test]
    fn texts_become_a_list() {
        let file = SeedFile::parse("seed/items.json", "[\"milk\", \"br\\u00f6d\"]").unwrap();
        assert!(matches!(file.rows, SeedRows::Texts(texts) if texts == ["milk", "bröd"]));
    }

    #[test]
    fn mistakes_are_reported_at_their_position() {
        let check = |text: &str, expected: &[&str]| {
            let mistakes = SeedFile::parse("seed/users.json", text).unwrap_err();
            let shown: Vec<String> = mistakes.iter().map(Diagnostic::to_string).collect();
            assert_eq!(shown.len(), expected.len(), "{shown:?}");
            for (shown, expected) in shown.iter().zip(expected) {
                assert!(shown.starts_with(expected), "{shown}");
            }
        };
        check("[\n {\"id\": 1,}\n]", &["seed/users.json:2:11: invalid JSON: "]);
        check("{}", &["seed/users.json:1:1: a seed file must contain one JSON array"]);
        check("", &["seed/users.json:1:1: invalid JSON: "]);
        check("[\n\"\\ud800\"]", &["seed/users.json:2:1: invalid value: "]);
        let deep = "[".repeat(200) + &"]".repeat(200);
        check(&format!("[{{}}, {{\"a\": {deep}}}]"), &["seed/users.json:1:6: invalid value: "]);
        check(
            "[{}, 1,\n \"x\"]",
            &[
                "seed/users.json:1:6: a seed file must contain an array",
                "seed/users.json:2:2: a seed file must contain an array",
            ],
        );
    }
}
