//! Rewrites the images in the change log for the new model, so that a subscriber that reconnects after a
//! migration reads the changes it missed with the current names and types.

use serde_json::{Map, Value as Json};

use trefoil_engine::changes::CHANGED_COLUMNS;
use trefoil_model::{Model, StoredValue, Value};

use crate::migrate::MigrateError;
use crate::migrate::column_rewrite::{ColumnRewrite, changes_values, default_value};
use crate::migrate::create_statements::quote_text;
use crate::migrate::migration_database::{MigrationDatabase, for_each_page};
use crate::migrate::model_pairs::{ModelPairs, TablePair};
use crate::migrate::stored_model::StoredType;

/// Renames removed types in the log and rewrites the images of types whose columns changed.
pub fn rewrite_images(
    database: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
) -> Result<(), MigrateError> {
    for table in &pairs.removed_tables {
        // The rows stay, since the log has no gaps. The other name keeps them apart from a later type of this name.
        rename_resource(database, &table.name, &format!("-{}", table.name))?;
    }
    for pair in pairs.tables.iter().filter(|pair| needs_rewrite(pairs, pair)) {
        rewrite_table_images(database, model, pairs, pair)?;
    }
    Ok(())
}

/// Renames a record type in the change log.
pub fn rename_resource(database: &dyn MigrationDatabase, old: &str, new: &str) -> Result<(), MigrateError> {
    let sql = "UPDATE \"trefoil_changes\" SET \"resource\" = $1 WHERE \"resource\" = $2";
    database.query(sql, &[new, old].map(|text| StoredValue::Text(text.to_owned()))).map(drop)
}

fn needs_rewrite(pairs: &ModelPairs<'_>, pair: &TablePair<'_>) -> bool {
    let is_changed = pair.columns.iter().any(|(old, new)| {
        old.column != new.column || (new.required && !old.required) || changes_values(pairs, old, new)
    });
    is_changed || !pair.new_columns.is_empty() || !pair.removed_columns.is_empty()
}

fn rewrite_table_images(
    database: &dyn MigrationDatabase,
    model: &Model,
    pairs: &ModelPairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    let rewrite = ImageRewrite::new(database, model, pairs, pair)?;
    let resource = quote_text(&pair.new.name);
    let image = (database.ddl_dialect().read_expression)(&StoredType::Scalar("JSON".to_owned()), "\"image\"");
    let query =
        format!("SELECT \"number\", {image} FROM \"trefoil_changes\" WHERE \"resource\" = {resource}");
    for_each_page(database, &query, "number", |rows| {
        // An image that is not a JSON object was not written by our triggers.
        let rewritten = rows.iter().filter_map(|row| match row.as_slice() {
            [StoredValue::Int(number), StoredValue::Text(image)] => {
                match serde_json::from_str::<Value>(image).map(|image| image.to_json()) {
                    Ok(Json::Object(image)) => {
                        Some((*number, Json::Object(rewrite.rewrite_image(image)).to_string()))
                    }
                    Ok(_) | Err(_) => None,
                }
            }
            _ => None,
        });
        database.update_images(&rewritten.collect::<Vec<_>>())
    })
}

/// The conversion of an image: (old column, new column, conversion) of each column, and the added columns.
struct ImageRewrite<'a> {
    columns: Vec<(&'a str, &'a str, ColumnRewrite<'a>)>,
    added: Vec<(&'a str, Json)>,
}

impl<'a> ImageRewrite<'a> {
    fn new(
        database: &dyn MigrationDatabase,
        model: &'a Model,
        pairs: &ModelPairs<'a>,
        pair: &TablePair<'a>,
    ) -> Result<Self, MigrateError> {
        let columns = pair.columns.iter().map(|(old, new)| {
            let conversion = ColumnRewrite::new(database, model, pairs, pair, (old, new))?;
            Ok((old.column.as_str(), new.column.as_str(), conversion))
        });
        let added = pair
            .new_columns
            .iter()
            .map(|column| Ok((column.column.as_str(), to_json(default_value(database, column)?))));
        Ok(ImageRewrite {
            columns: columns.collect::<Result<_, MigrateError>>()?,
            added: added.collect::<Result<_, MigrateError>>()?,
        })
    }

    fn rewrite_image(&self, mut old: Map<String, Json>) -> Map<String, Json> {
        let mut image = Map::new();
        for key in ["id", "_version"] {
            image.insert(key.to_owned(), old.remove(key).unwrap_or_default());
        }
        for (old_name, new_name, conversion) in &self.columns {
            let value = stored_value(old.remove(*old_name).unwrap_or_default());
            image.insert((*new_name).to_owned(), to_json(conversion.convert(value)));
        }
        if let Some(changed) = old.remove(CHANGED_COLUMNS) {
            image.insert(CHANGED_COLUMNS.to_owned(), self.rename_columns(changed));
        }
        image.extend(self.added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        image
    }

    /// The list of changed columns with their new names, without those that are gone.
    fn rename_columns(&self, changed: Json) -> Json {
        let columns = changed.as_array().map(Vec::as_slice).unwrap_or_default();
        let renamed = columns.iter().filter_map(|name| {
            let (_, new_name, _) = self.columns.iter().find(|(old_name, ..)| name == *old_name)?;
            Some(Json::from(*new_name))
        });
        renamed.collect()
    }
}

/// The stored value of an image's member.
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
