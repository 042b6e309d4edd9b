//! Brings the images in the change log to the new shape, so that a subscriber who comes back after a
//! migration reads what it missed under today's names and types.

use serde_json::{Map, Value as Json};

use crate::migrate::MigrateError;
use crate::migrate::column_conversion::{Passage, changes_values, default};
use crate::migrate::migration_database::{Host, each_page};
use crate::migrate::model_pairs::{Pairs, TablePair};
use crate::migrate::stored_model::Form;
use trefoil_model::{Model, Stored, Value};

/// Sets types aside that are gone and rewrites the images of the others where their columns changed.
pub fn follow(host: &dyn Host, model: &Model, pairs: &Pairs<'_>) -> Result<(), MigrateError> {
    for table in &pairs.gone_tables {
        // The rows stay, since the log is without holes; a later type of this name is another one.
        rename(host, &table.name, &format!("-{}", table.name))?;
    }
    for pair in pairs.tables.iter().filter(|pair| is_touched(pairs, pair)) {
        rewrite(host, model, pairs, pair)?;
    }
    Ok(())
}

/// The log's word for a type.
pub fn rename(host: &dyn Host, old: &str, new: &str) -> Result<(), MigrateError> {
    let sql = "UPDATE \"trefoil_changes\" SET \"resource\" = $1 WHERE \"resource\" = $2";
    host.rows(sql, &[new, old].map(|text| Stored::Text(text.to_owned()))).map(drop)
}

fn is_touched(pairs: &Pairs<'_>, pair: &TablePair<'_>) -> bool {
    let touched = pair.columns.iter().any(|(old, new)| {
        old.column != new.column || (new.required && !old.required) || changes_values(pairs, old, new)
    });
    touched || !pair.new_columns.is_empty() || !pair.gone_columns.is_empty()
}

fn rewrite(
    host: &dyn Host,
    model: &Model,
    pairs: &Pairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    let renewal = Renewal::of(host, model, pairs, pair)?;
    let resource = crate::migrate::ddl::text(&pair.new.name);
    let image = (host.spelling().reading)(&Form::Scalar("JSON".to_owned()), "\"image\"");
    let query =
        format!("SELECT \"number\", {image} FROM \"trefoil_changes\" WHERE \"resource\" = {resource}");
    each_page(host, &query, "number", |rows| {
        // What is no JSON object was not written by a trigger of ours.
        let renewed = rows.iter().filter_map(|row| match row.as_slice() {
            [Stored::Int(number), Stored::Text(image)] => match serde_json::from_str::<Value>(image)
                .map(|image| image.to_json())
            {
                Ok(Json::Object(image)) => Some((*number, Json::Object(renewal.renew(image)).to_string())),
                Ok(_) | Err(_) => None,
            },
            _ => None,
        });
        host.write_images(&renewed.collect::<Vec<_>>())
    })
}

/// How each member of an image comes about.
struct Renewal<'a> {
    kept: Vec<(&'a str, &'a str, Passage<'a>)>,
    added: Vec<(&'a str, Json)>,
}

impl<'a> Renewal<'a> {
    fn of(
        host: &dyn Host,
        model: &'a Model,
        pairs: &Pairs<'a>,
        pair: &TablePair<'a>,
    ) -> Result<Self, MigrateError> {
        let kept = pair.columns.iter().map(|(old, new)| {
            let passage = Passage::of(host, model, pairs, pair, (old, new))?;
            Ok((old.column.as_str(), new.column.as_str(), passage))
        });
        let added =
            pair.new_columns.iter().map(|column| Ok((column.column.as_str(), json(default(host, column)?))));
        Ok(Renewal {
            kept: kept.collect::<Result<_, MigrateError>>()?,
            added: added.collect::<Result<_, MigrateError>>()?,
        })
    }

    fn renew(&self, mut old: Map<String, Json>) -> Map<String, Json> {
        let mut image = Map::new();
        for key in ["id", "_version"] {
            image.insert(key.to_owned(), old.remove(key).unwrap_or_default());
        }
        for (was, now, passage) in &self.kept {
            let value = cell(old.remove(*was).unwrap_or_default());
            image.insert((*now).to_owned(), json(passage.pass(value)));
        }
        image.extend(self.added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        image
    }
}

/// A member of an image as the column held it.
fn cell(json: Json) -> Stored {
    match json {
        Json::Null | Json::Array(_) | Json::Object(_) => Stored::Null,
        Json::Bool(flag) => Stored::Int(i64::from(flag)),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Stored::Int(integer),
            None => number.as_f64().map_or(Stored::Null, Stored::Real),
        },
        Json::String(text) => Stored::Text(text),
    }
}

fn json(value: Stored) -> Json {
    match value {
        Stored::Null => Json::Null,
        Stored::Int(number) => Json::from(number),
        Stored::Real(number) => Json::from(number),
        Stored::Text(text) => Json::String(text),
    }
}
