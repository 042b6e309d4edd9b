//! Brings the images in the change log to the new shape, so that a subscriber who comes back after a
//! migration reads what it missed under today's names and types.

use std::collections::HashMap;

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, params};
use serde_json::{Map, Value as Json};

use super::pair::{Pairs, TablePair};
use super::rebuild::{Passage, changes_values, default, tables};
use crate::model::Model;

/// Sets types aside that are gone and rewrites the images of the others where their columns changed.
pub fn follow(connection: &Connection, model: &Model, pairs: &Pairs<'_>) -> rusqlite::Result<()> {
    for table in &pairs.gone_tables {
        // The rows stay, since the log is without holes; a later type of this name is another one.
        let sql = "UPDATE \"trefoil_changes\" SET \"resource\" = '-' || \"resource\" WHERE \"resource\" = ?1";
        connection.execute(sql, [&table.name])?;
    }
    for pair in pairs.tables.iter().filter(|pair| is_touched(pairs, pair)) {
        rewrite(connection, model, pairs, pair)?;
    }
    Ok(())
}

fn is_touched(pairs: &Pairs<'_>, pair: &TablePair<'_>) -> bool {
    let touched = pair.columns.iter().any(|(old, new)| {
        old.column != new.column || (new.required && !old.required) || changes_values(pairs, old, new)
    });
    touched || !pair.new_columns.is_empty() || !pair.gone_columns.is_empty()
}

fn rewrite(
    connection: &Connection,
    model: &Model,
    pairs: &Pairs<'_>,
    pair: &TablePair<'_>,
) -> rusqlite::Result<()> {
    let tables = tables(pairs);
    let renewal = Renewal::of(pair, &tables, connection, model, pairs)?;
    let sql = "SELECT \"number\", \"image\" FROM \"trefoil_changes\" \
               WHERE \"resource\" = ?1 AND \"number\" > ?2 ORDER BY \"number\" LIMIT 1000";
    let mut reading = connection.prepare(sql)?;
    let mut writing =
        connection.prepare("UPDATE \"trefoil_changes\" SET \"image\" = ?2 WHERE \"number\" = ?1")?;
    let mut last = 0;
    loop {
        let rows = reading.query_map(params![pair.new.name, last], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let batch: Vec<(i64, String)> = rows.collect::<rusqlite::Result<_>>()?;
        let Some((number, _)) = batch.last() else { return Ok(()) };
        last = *number;
        for (number, image) in batch {
            // What is no JSON object was not written by a trigger of ours.
            if let Ok(Json::Object(image)) = serde_json::from_str(&image) {
                writing.execute(params![number, Json::Object(renewal.renew(image)?).to_string()])?;
            }
        }
    }
}

/// How each member of an image comes about.
struct Renewal<'a> {
    kept: Vec<(&'a str, &'a str, Passage<'a>)>,
    added: Vec<(&'a str, Json)>,
}

impl<'a> Renewal<'a> {
    fn of(
        pair: &TablePair<'a>,
        tables: &'a HashMap<&'a str, &'a str>,
        connection: &'a Connection,
        model: &'a Model,
        pairs: &Pairs<'a>,
    ) -> rusqlite::Result<Self> {
        let kept = pair.columns.iter().map(|(old, new)| {
            let passage = Passage::of(connection, model, pairs, pair, (old, new), tables)?;
            Ok((old.column.as_str(), new.column.as_str(), passage))
        });
        let added = pair.new_columns.iter().map(|column| {
            let value = default(connection, column)?;
            Ok((column.column.as_str(), json(ValueRef::from(&value))))
        });
        Ok(Renewal {
            kept: kept.collect::<rusqlite::Result<_>>()?,
            added: added.collect::<rusqlite::Result<_>>()?,
        })
    }

    fn renew(&self, mut old: Map<String, Json>) -> rusqlite::Result<Map<String, Json>> {
        let mut image = Map::new();
        for key in ["id", "_version"] {
            image.insert(key.to_owned(), old.remove(key).unwrap_or_default());
        }
        for (was, now, passage) in &self.kept {
            let value = cell(old.remove(*was).unwrap_or_default());
            image.insert((*now).to_owned(), json(passage.pass(ValueRef::from(&value))?.as_value()));
        }
        image.extend(self.added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        Ok(image)
    }
}

/// A member of an image as the column held it.
fn cell(json: Json) -> Sql {
    match json {
        Json::Null | Json::Array(_) | Json::Object(_) => Sql::Null,
        Json::Bool(flag) => Sql::Integer(i64::from(flag)),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Sql::Integer(integer),
            None => number.as_f64().map_or(Sql::Null, Sql::Real),
        },
        Json::String(text) => Sql::Text(text),
    }
}

fn json(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null | ValueRef::Blob(_) => Json::Null,
        ValueRef::Integer(number) => Json::from(number),
        ValueRef::Real(number) => Json::from(number),
        ValueRef::Text(text) => Json::String(String::from_utf8_lossy(text).into_owned()),
    }
}
