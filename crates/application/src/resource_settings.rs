//! `[resource.users]` of `trefoil.toml`: what differs for one collection of records, and whether its schema allows it.

use std::ops::Range;

use toml::de::DeTable;

use crate::manifest_reader::{MANIFEST_FILE, ManifestReader};
use crate::{App, endpoints};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::values::coerce;
use trefoil_model::{Diagnostic, Field, FieldId, FieldKind, Model, RecordType, Scalar, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceSettings {
    /// The collection's path, without the slash.
    pub collection: String,
    /// The `Cache-Control` its answers carry instead of `no-cache`.
    pub cache: Option<String>,
    /// `list = "name"`: what plain clients see of each record, and may add one by.
    pub list: Option<String>,
    span: Range<usize>,
}

/// A collection that is a list of texts to plain clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextList {
    pub field: FieldId,
    /// What a record made of its text alone has empty: texts that are required and have no default.
    pub blank_fields: Vec<FieldId>,
}

pub(crate) fn read_resource_settings(sheet: &mut ManifestReader, root: &DeTable) -> Vec<ResourceSettings> {
    let Some(tables) = sheet.table(root, "resource") else { return Vec::new() };
    let mut found = Vec::new();
    for key in tables.keys() {
        let collection = key.as_ref().to_string();
        let Some(table) = sheet.table(tables, &collection) else { continue };
        sheet.refuse_unknown_keys(table, &format!("[resource.{collection}]"), &["cache", "list"]);
        let cache = endpoints::read_cache_control(sheet, table);
        let list = sheet.string(table, "list");
        let span = list.as_ref().map_or(key.span(), toml::Spanned::span);
        let list = list.map(toml::Spanned::into_inner);
        found.push(ResourceSettings { collection, cache, list, span });
    }
    found
}

/// Everything that the manifest says of collections and the schema does not bear out.
pub fn schema_mismatches(app: &App, model: &Model) -> Vec<Diagnostic> {
    let text =
        app.other_files.iter().find(|file| file.name == MANIFEST_FILE).map_or("", |file| file.text.as_str());
    let wrong = app.manifest.resources.iter().filter_map(|resource| {
        let why = resource.check(model).err()?;
        Some(Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", why).with_span(
            MANIFEST_FILE,
            text,
            resource.span.clone(),
        ))
    });
    wrong.collect()
}

impl ResourceSettings {
    fn check(&self, model: &Model) -> Result<(), String> {
        let Some(record) = model.find_record_by_path(&self.collection) else {
            let near =
                nearest_name(&self.collection, model.records.iter().map(|record| record.path.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("no type of the schema has the path `/{}`{hint}", self.collection));
        };
        self.text_list(model, model.record(record)).map(drop)
    }

    /// The text list that is declared, if one is, or why the type cannot be one.
    pub fn text_list(&self, model: &Model, record: &RecordType) -> Result<Option<TextList>, String> {
        let Some(name) = &self.list else { return Ok(None) };
        let Some(field) = record.find_field(name) else {
            let near = nearest_name(name, record.fields.iter().map(|field| field.name.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("{} has no field `{name}`{hint}", record.name));
        };
        if !is_string_field(record.field(field)) || !record.field(field).required {
            return Err(format!("`{name}` must be a `String!` to be the text of {}", record.name));
        }
        let mut blank = Vec::new();
        for (position, other) in record.fields.iter().enumerate() {
            let needed = other.required && other.default.is_none() && other.is_writable();
            if position == field.0 || !needed {
                continue;
            }
            let takes_blank = is_string_field(other) && coerce::field(model, other, &Value::from("")).is_ok();
            if !takes_blank {
                let (record, other) = (&record.name, &other.name);
                return Err(format!(
                    "a {record} cannot be made of its `{name}` alone: `{other}` is required"
                ));
            }
            blank.push(FieldId(position));
        }
        Ok(Some(TextList { field, blank_fields: blank }))
    }
}

fn is_string_field(field: &Field) -> bool {
    matches!(field.kind, FieldKind::Scalar(Scalar::String))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Manifest;
    use trefoil_model::{SourceFile, parse_schema};

    fn judged(list: &str) -> Result<Option<TextList>, String> {
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
    fn a_resource_may_say_how_it_is_cached_and_listed() {
        let (manifest, mistakes) = Manifest::parse("[resource.users]\ncache = \"max-age=60\"\n");
        assert_eq!(mistakes, []);
        assert_eq!(manifest.resources[0].cache.as_deref(), Some("max-age=60"));
        assert_eq!(judged("[resource.users]"), Ok(None));
        let names = TextList { field: FieldId(1), blank_fields: vec![FieldId(2)] };
        assert_eq!(judged("[resource.users]\nlist = \"name\""), Ok(Some(names)));
    }

    #[test]
    fn what_the_schema_does_not_bear_out() {
        let table = [
            ("[resource.usres]", "did you mean `users`?"),
            ("[resource.users]\nlist = \"nmae\"", "did you mean `name`?"),
            ("[resource.users]\nlist = \"nick\"", "must be a `String!`"),
            ("[resource.users]\nlist = \"id\"", "must be a `String!`"),
            ("[resource.tags]\nlist = \"text\"", "`rank` is required"),
        ];
        for (text, expected) in table {
            let why = judged(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
