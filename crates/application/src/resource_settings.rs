//! `[resource.users]` of `trefoil.toml`: settings of one collection, checked against the schema.

use std::ops::Range;

use toml::de::DeTable;

use trefoil_model::naming::names::name_suggestion;
use trefoil_model::values::coerce;
use trefoil_model::{Diagnostic, Field, FieldId, Model, RecordType, Scalar, Value};

use crate::endpoints;
use crate::manifest_reader::{MANIFEST_FILE, ManifestReader};

/// The settings of one collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSettings {
    /// The collection's path, without the slash.
    pub collection: String,
    /// The `Cache-Control` of its responses instead of `no-cache`.
    pub cache: Option<String>,
    /// `list = "name"`: the field that plain clients see of each record and can create one from.
    pub list: Option<String>,
    pub default_format: Option<DefaultFormat>,
    span: Range<usize>,
}

/// The format for clients without a preference: no `Accept`, or `*/*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DefaultFormat {
    #[default]
    Json,
    Page,
}

/// A collection that plain clients see as a list of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextList {
    pub field: FieldId,
    /// Fields left empty in a record created from its text alone: required texts without a default.
    pub blank_fields: Vec<FieldId>,
}

pub(crate) fn read_resource_settings(reader: &mut ManifestReader, root: &DeTable) -> Vec<ResourceSettings> {
    let Some(tables) = reader.table(root, "resource") else { return Vec::new() };
    let mut found = Vec::new();
    for key in tables.keys() {
        let collection = key.as_ref().to_string();
        let Some(table) = reader.table(tables, &collection) else { continue };
        reader.refuse_unknown_keys(
            table,
            &format!("[resource.{collection}]"),
            &["cache", "list", "default-format"],
        );
        let cache = endpoints::read_cache_control(reader, table);
        let default_format = read_default_format(reader, table);
        let list = reader.string(table, "list");
        let span = list.as_ref().map_or(key.span(), toml::Spanned::span);
        let list = list.map(toml::Spanned::into_inner);
        found.push(ResourceSettings { collection, cache, list, default_format, span });
    }
    found
}

/// `default-format` of the application or of one collection.
pub(crate) fn read_default_format(reader: &mut ManifestReader, table: &DeTable) -> Option<DefaultFormat> {
    let name = reader.string(table, "default-format")?;
    match name.as_ref().as_str() {
        "json" => Some(DefaultFormat::Json),
        "page" => Some(DefaultFormat::Page),
        other => {
            let message = format!("`default-format` must be \"json\" or \"page\", not {other:?}");
            reader.report(&name.span(), message);
            None
        }
    }
}

impl ResourceSettings {
    /// The mistake if it does not fit the schema; `text` is the manifest.
    pub(crate) fn schema_mismatch(&self, text: &str, model: &Model) -> Option<Diagnostic> {
        let reason = self.check(model).err()?;
        let mistake = Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", reason);
        Some(mistake.with_span(MANIFEST_FILE, text, self.span.clone()))
    }

    fn check(&self, model: &Model) -> Result<(), String> {
        let Some(record) = model.find_record_by_path(&self.collection) else {
            let paths = model.records.iter().map(|record| record.path.as_str());
            let hint = name_suggestion(&self.collection, paths);
            return Err(format!("no record type has the path `/{}`{hint}", self.collection));
        };
        self.text_list(model, model.record(record)).map(drop)
    }

    /// The declared text list, if there is one, or why the type cannot have one.
    pub fn text_list(&self, model: &Model, record: &RecordType) -> Result<Option<TextList>, String> {
        let Some(name) = &self.list else { return Ok(None) };
        let Some(field) = record.find_field(name) else {
            let hint = name_suggestion(name, record.fields.iter().map(|field| field.name.as_str()));
            return Err(format!("{} has no field `{name}`{hint}", record.name));
        };
        if !is_string_field(record.field(field)) || !record.field(field).required {
            return Err(format!("`{name}` must be a `String!` to be used as the list of {}", record.name));
        }
        let mut blank_fields = Vec::new();
        for (position, other) in record.fields.iter().enumerate() {
            let is_needed = other.required && !other.has_default() && other.is_writable();
            if position == field.0 || !is_needed {
                continue;
            }
            let accepts_blank =
                is_string_field(other) && coerce::coerce_field(model, other, &Value::from("")).is_ok();
            if !accepts_blank {
                let (record, other) = (&record.name, &other.name);
                return Err(format!(
                    "a {record} cannot be created from its `{name}` alone: `{other}` is also required"
                ));
            }
            blank_fields.push(FieldId(position));
        }
        Ok(Some(TextList { field, blank_fields }))
    }
}

fn is_string_field(field: &Field) -> bool {
    field.kind.scalar() == Some(Scalar::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Manifest;
    use trefoil_model::{SourceFile, parse_schema};

    fn text_list(list: &str) -> Result<Option<TextList>, String> {
        let sdl = "type User { id: ID! name: String! email: String! nick: String } \
                   type Tag { id: ID! text: String! rank: Int! } type Query { a: Int }";
        let file = SourceFile { name: "a.graphqls".into(), text: sdl.into() };
        let (model, _) = parse_schema(&[file], &[]).unwrap();
        let (manifest, mistakes) = Manifest::parse(list);
        assert_eq!(mistakes, []);
        let resource = &manifest.resources[0];
        resource.check(&model)?;
        resource.text_list(&model, model.record(model.find_record_by_path(&resource.collection).unwrap()))
    }

    #[test]
    fn resource_has_cache_and_text_list() {
        let (manifest, mistakes) = Manifest::parse("[resource.users]\ncache = \"max-age=60\"\n");
        assert_eq!(mistakes, []);
        assert_eq!(manifest.resources[0].cache.as_deref(), Some("max-age=60"));
        assert_eq!(text_list("[resource.users]"), Ok(None));
        let names = TextList { field: FieldId(1), blank_fields: vec![FieldId(2)] };
        assert_eq!(text_list("[resource.users]\nlist = \"name\""), Ok(Some(names)));
    }

    #[test]
    fn default_format_is_json_unless_stated() {
        let format = |text: &str| {
            let (manifest, mistakes) = Manifest::parse(text);
            assert_eq!(mistakes, []);
            ["users", "tags"].map(|path| manifest.default_format_of(manifest.resource(path)))
        };
        let (json, page) = (DefaultFormat::Json, DefaultFormat::Page);
        assert_eq!(format(""), [json, json]);
        assert_eq!(format("default-format = \"page\""), [page, page]);
        assert_eq!(format("[resource.tags]\ndefault-format = \"page\""), [json, page]);
        assert_eq!(
            format("default-format = \"page\"\n[resource.users]\ndefault-format = \"json\""),
            [json, page]
        );
        let (_, mistakes) = Manifest::parse("default-format = \"html\"");
        assert!(
            mistakes[0].to_string().contains("must be \"json\" or \"page\", not \"html\""),
            "{mistakes:?}"
        );
    }

    #[test]
    fn settings_that_do_not_fit_the_schema_are_rejected() {
        let table = [
            ("[resource.usres]", "did you mean `users`?"),
            ("[resource.users]\nlist = \"nmae\"", "did you mean `name`?"),
            ("[resource.users]\nlist = \"nick\"", "must be a `String!`"),
            ("[resource.users]\nlist = \"id\"", "must be a `String!`"),
            ("[resource.tags]\nlist = \"text\"", "`rank` is also required"),
        ];
        for (text, expected) in table {
            let reason = text_list(text).unwrap_err();
            assert!(reason.contains(expected), "{text}: {reason}");
        }
    }
}
