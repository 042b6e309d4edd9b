//! Changes the columns of a table where it stands: no row is touched one by one, so no trigger of anyone sees it.

use crate::migrate::MigrateError;
use crate::migrate::apply::{rename_column, rename_table};
use crate::migrate::column_conversion::{Passage, changes_values};
use crate::migrate::ddl::{column, quoted};
use crate::migrate::migration_database::{Host, each_page};
use crate::migrate::model_pairs::{LinkPair, Pairs, TablePair};
use crate::migrate::postgres::catalog::foreign_parts;
use crate::migrate::postgres::ddl::SPELLING;
use crate::migrate::postgres::{Postgres, indexes};
use crate::migrate::stored_model::Column;
use trefoil_model::{Model, Stored};

/// Where converted values wait until their column takes them, by functions that have its row type as a parameter only
/// in order to go when it goes.
const CONVERTED: &str = "trefoil_converted";

pub fn reshape(
    host: &Postgres,
    model: &Model,
    pairs: &Pairs<'_>,
    pair: &TablePair<'_>,
) -> Result<(), MigrateError> {
    refuse_foreign_parts(host, pair)?;
    let conversions = Conversion::all(host, model, pairs, pair)?;
    drop_indexes(host, pair, &conversions)?;
    let mut first = Vec::new();
    let mut actions: Vec<String> =
        pair.gone_names().map(|(_, name)| format!("DROP COLUMN {}", quoted(&name))).collect();
    for (at, (old, new)) in pair.columns.iter().enumerate() {
        let name = quoted(&new.column);
        let using = match conversions.iter().find(|one| one.at == at) {
            Some(conversion) => Some(conversion.taken()),
            None => filled(host, pair, old, new)?,
        };
        if old.default != new.default || using.is_some() {
            // The old default may be none of the new type.
            first.push(format!("ALTER {name} DROP DEFAULT"));
            actions.extend((SPELLING.fill)(new).map(|value| format!("ALTER {name} SET DEFAULT {value}")));
        }
        if let Some(value) = using {
            let ty = (SPELLING.column_type)(&new.form);
            actions.push(format!("ALTER {name} TYPE {ty} USING {value}::{ty}"));
        }
        match (old.required, new.required) {
            (false, true) => actions.push(format!("ALTER {name} SET NOT NULL")),
            (true, false) => first.push(format!("ALTER {name} DROP NOT NULL")),
            (true, true) | (false, false) => {}
        }
    }
    let added = |new: &&Column| format!("ADD COLUMN {}", column(&SPELLING, pairs.new, new));
    actions.extend(pair.new_columns.iter().map(added));
    for actions in [first, actions].iter().filter(|actions| !actions.is_empty()) {
        host.batch(&format!("ALTER TABLE {} {}", quoted(&pair.new.table), actions.join(", ")))?;
    }
    if conversions.is_empty() { Ok(()) } else { host.batch(&format!("DROP TABLE {CONVERTED} CASCADE")) }
}

/// PostgreSQL drops what is on a column together with it, whoever put it there.
fn refuse_foreign_parts(host: &Postgres, pair: &TablePair<'_>) -> Result<(), MigrateError> {
    let ours: Vec<String> = pair.old.indexes.iter().flat_map(indexes::names).collect();
    let table = &pair.new.table;
    for (_, column) in pair.gone_names() {
        if let Some(part) = foreign_parts(host, table, &column, &ours)?.first() {
            return Err(MigrateError::Database(format!(
                "{part}, which another program has put on {table}, is in the way"
            )));
        }
    }
    Ok(())
}

/// A required column without a value in some records takes its default there.
fn filled(
    host: &Postgres,
    pair: &TablePair<'_>,
    old: &Column,
    new: &Column,
) -> Result<Option<String>, MigrateError> {
    let Some(value) = (SPELLING.fill)(new).filter(|_| new.required && !old.required) else { return Ok(None) };
    let (name, table) = (quoted(&new.column), quoted(&pair.new.table));
    let empty = host.rows(&format!("SELECT 1 FROM {table} WHERE {name} IS NULL LIMIT 1"), &[])?;
    Ok((!empty.is_empty()).then(|| format!("coalesce({name}, {value})")))
}

/// A column whose values become others.
struct Conversion {
    /// Which of the pair's columns.
    at: usize,
}

impl Conversion {
    fn all(
        host: &Postgres,
        model: &Model,
        pairs: &Pairs<'_>,
        pair: &TablePair<'_>,
    ) -> Result<Vec<Conversion>, MigrateError> {
        let changing =
            pair.columns.iter().enumerate().filter(|(_, (old, new))| changes_values(pairs, old, new));
        let mut passages = Vec::new();
        for (at, (old, new)) in changing {
            passages.push((at, Passage::of(host, model, pairs, pair, (old, new))?));
        }
        if passages.is_empty() {
            return Ok(Vec::new());
        }
        let columns: String = passages.iter().map(|(at, _)| format!(", c{at} text")).collect();
        host.batch(&format!("CREATE UNLOGGED TABLE {CONVERTED} (id bigint PRIMARY KEY{columns})"))?;
        let differing = convert(host, pair, &passages, &columns)?;
        let mut list = Vec::new();
        for at in passages.into_iter().map(|(at, _)| at) {
            let (old, new) = pair.columns[at];
            // Where only fewer values are allowed than before, all that are there may be allowed still.
            if (SPELLING.column_type)(&old.form) != (SPELLING.column_type)(&new.form)
                || differing.contains(&at)
            {
                host.batch(&format!(
                    "CREATE FUNCTION {CONVERTED}_{at}({CONVERTED}, bigint) RETURNS text LANGUAGE sql STABLE AS \
                     'SELECT c{at} FROM {schema}.{CONVERTED} WHERE id = $2'",
                    schema = host.schema.replace('\'', "''")
                ))?;
                list.push(Conversion { at });
            }
        }
        if list.is_empty() {
            host.batch(&format!("DROP TABLE {CONVERTED}"))?;
        }
        Ok(list)
    }

    /// An expression; a subquery may not stand there.
    fn taken(&self) -> String {
        format!("{CONVERTED}_{}(NULL, \"id\")", self.at)
    }
}

/// Puts every converted value beside its record's id; says which columns have values that are not what they were.
fn convert(
    host: &Postgres,
    pair: &TablePair<'_>,
    passages: &[(usize, Passage<'_>)],
    columns: &str,
) -> Result<Vec<usize>, MigrateError> {
    let read: String = passages
        .iter()
        .map(|(at, _)| {
            let (old, new) = pair.columns[*at];
            format!(", {}", (SPELLING.reading)(&old.form, &quoted(&new.column)))
        })
        .collect();
    let query = format!("SELECT \"id\"{read} FROM {} WHERE true", quoted(&pair.new.table));
    let write =
        format!("INSERT INTO {CONVERTED} SELECT * FROM json_to_recordset($1::json) AS r(id bigint{columns})");
    let mut differing = Vec::new();
    each_page(host, &query, "id", |rows| {
        let mut page = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells = row.into_iter();
            let mut member = serde_json::Map::new();
            member.insert("id".to_owned(), json(cells.next().unwrap_or(Stored::Null)));
            for ((at, passage), value) in passages.iter().zip(cells) {
                let passed = passage.pass(value.clone());
                if passed != value && !differing.contains(at) {
                    differing.push(*at);
                }
                member.insert(format!("c{at}"), json(passed));
            }
            page.push(serde_json::Value::Object(member));
        }
        host.rows(&write, &[Stored::Text(serde_json::Value::Array(page).to_string())]).map(drop)
    })?;
    Ok(differing)
}

/// As the text of a column of any type.
fn json(value: Stored) -> serde_json::Value {
    match value {
        Stored::Null => serde_json::Value::Null,
        Stored::Int(number) => serde_json::Value::String(number.to_string()),
        Stored::Real(number) => serde_json::Value::String(number.to_string()),
        Stored::Text(text) => serde_json::Value::String(text),
    }
}

/// Not every type has an index; `settle` makes those anew that are wanted still.
fn drop_indexes(
    host: &Postgres,
    pair: &TablePair<'_>,
    conversions: &[Conversion],
) -> Result<(), MigrateError> {
    let converted = |column: &String| {
        conversions.iter().any(|one| pair.columns.get(one.at).is_some_and(|(old, _)| old.column == *column))
    };
    let outdated = pair.old.indexes.iter().filter(|index| index.columns.iter().any(converted));
    let mut names: Vec<String> = outdated.flat_map(indexes::names).collect();
    if !names.is_empty() {
        names.extend(indexes::gone(host, &pair.new.table)?);
    }
    indexes::drop_all(host, &names)
}

/// Through names that nobody has: the two columns may change places.
pub fn move_link(host: &Postgres, pair: &LinkPair<'_>, temporary: &str) -> Result<(), MigrateError> {
    rename_table(host, &pair.old.table, temporary)?;
    let (first, second) = pair.old_sides();
    let sides = [(first, &pair.new.first), (second, &pair.new.second)];
    for (at, (old, _)) in sides.iter().enumerate() {
        rename_column(host, temporary, &old.column, &format!("trefoil_moving_{at}"))?;
    }
    for (at, (_, new)) in sides.iter().enumerate() {
        rename_column(host, temporary, &format!("trefoil_moving_{at}"), &new.column)?;
    }
    if !pair.swapped {
        return Ok(());
    }
    let key = "SELECT conname FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'p'";
    let table = quoted(temporary);
    for name in host.texts(key, &[&table])?.into_iter().flatten() {
        let key = [&pair.new.first.column, &pair.new.second.column].map(|column| quoted(column)).join(", ");
        host.batch(&format!(
            "ALTER TABLE {table} DROP CONSTRAINT {}, ADD PRIMARY KEY ({key})",
            quoted(&name)
        ))?;
    }
    Ok(())
}
