//! Brings the images in the change log to the new shape, so that a subscriber who comes back after a
//! migration reads what it missed under today's names and types.

use serde_json::{Map, Value as Json};

use crate::migrate::MigrateError;
use crate::migrate::column_conversion::{ColumnConversion, changes_values, default_value};
use crate::migrate::migration_database::{MigrationDatabase, for_each_page};
use crate::migrate::model_pairs::{ModelPairs, TablePair};
use crate::migrate::stored_model::StoredType;
use trefoil_model::{Model, StoredValue, Value};

/// Sets types aside that are gone and rewrites the images of the others where their columns changed.
pub fn rewrite_images(
    host: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<(), MigrateError> {
    for table in &pairs.removed_tables {
        // The rows stay, since the log is without holes; a later type of this name is another one.
        rename_resource(host, &table.name, &format!("-{}", table.name))?;
    }
    for pair in pairs.tables.iter().filter(|pair| needs_rewrite(pairs, pair)) {
        rewrite_table_images(host, model, pairs, pair)?;
    }
    Ok(())
}

/// The log's word for a type.
pub fn rename_resource(host: &dyn MigrationDatabase, old: &str, new: &str) -> Result<(), MigrateError> {
    let sql = "UPDATE \"trefoil_changes\" SET \"resource\" = $1 WHERE \"resource\" = $2";
    host.query(sql, &[new, old].map(|text| StoredValue::Text(text.to_owned()))).map(drop)
}

fn needs_rewrite(pairs: &ModelPairs<'_>, pair: &TablePair<'_>) -> bool {
    let touched = pair.columns.iter().any(|(old, new)| {
        old.column != new.column || (new.required && !old.required) || changes_values(pairs, old, new)
    });
    touched || !pair.new_columns.is_empty() || !pair.removed_columns.is_empty()
}

fn rewrite_table_images(
    host: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    let renewal = ImageRewrite::new(host, model, pairs, pair)?;
    let resource = crate::migrate::ddl::quote_text(&pair.new.name);
    let image = (host.ddl_dialect().read_expression)(&StoredType::Scalar("JSON".to_owned()), "\"image\"");
    let query =
        format!("SELECT \"number\", {image} FROM \"trefoil_changes\" WHERE \"resource\" = {resource}");
    for_each_page(host, &query, "number", |rows| {
        // What is no JSON object was not written by a trigger of ours.
        let renewed = rows.iter().filter_map(|row| match row.as_slice() {
            [StoredValue::Int(number), StoredValue::Text(image)] => {
                match serde_json::from_str::<Value>(image).map(|image| image.to_json()) {
                    Ok(Json::Object(image)) => {
                        Some((*number, Json::Object(renewal.rewrite_image(image)).to_string()))
                    }
                    Ok(_) | Err(_) => None,
                }
            }
            _ => None,
        });
        host.update_images(&renewed.collect::<Vec<_>>())
    })
}

/// How each member of an image comes about.
struct ImageRewrite<'a> {
    columns: Vec<(&'a str, &'a str, ColumnConversion<'a>)>,
    added: Vec<(&'a str, Json)>,
}

impl<'a> ImageRewrite<'a> {
    fn new(
        host: &dyn MigrationDatabase,
        model: &'a Model,
        pairs: &ModelPairs<'a>,
        pair: &TablePair<'a>,
    ) -> Result<Self, MigrateError> {
        let kept = pair.columns.iter().map(|(old, new)| {
            let passage = ColumnConversion::new(host, model, pairs, pair, (old, new))?;
            Ok((old.column.as_str(), new.column.as_str(), passage))
        });
        let added = pair
            .new_columns
            .iter()
            .map(|column| Ok((column.column.as_str(), to_json(default_value(host, column)?))));
        Ok(ImageRewrite {
            columns: kept.collect::<Result<_, MigrateError>>()?,
            added: added.collect::<Result<_, MigrateError>>()?,
        })
    }

    fn rewrite_image(&self, mut old: Map<String, Json>) -> Map<String, Json> {
        let mut image = Map::new();
        for key in ["id", "_version"] {
            image.insert(key.to_owned(), old.remove(key).unwrap_or_default());
        }
        for (was, now, passage) in &self.columns {
            let value = stored_value(old.remove(*was).unwrap_or_default());
            image.insert((*now).to_owned(), to_json(passage.convert(value)));
        }
        image.extend(self.added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        image
    }
}

/// A member of an image as the column held it.
fn stored_value(json: Json) -> StoredValue {
    match json {
        Json::Null | Json::Array(_) | Json::Object(_) => StoredValue::Null,
        Json::Bool(flag) => StoredValue::Int(i64::from(flag)),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => StoredValue::Int(integer),
            None => number.as_f64().map_or(StoredValue::Null, StoredValue::Real),
        },
        Json::String(text) => StoredValue::Text(text),
    }
}

fn to_json(value: StoredValue) -> Json {
    match value {
        StoredValue::Null => Json::Null,
        StoredValue::Int(number) => Json::from(number),
        StoredValue::Real(number) => Json::from(number),
        StoredValue::Text(text) => Json::String(text),
    }
}
