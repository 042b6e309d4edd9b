//! The text that creates tables and indexes, out of the pieces that each database spells its own way.

use crate::migrate::migration_database::Spelling;
use crate::migrate::stored_model::{Action, Column, Form, Index, LinkSide, LinkTable, StoredModel, Table};

/// Something with a name, and the statement that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    pub sql: String,
}

pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

pub fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `called` is the table's name for now: a table may be built under another one.
pub fn table(spelling: &Spelling, model: &StoredModel, table: &Table, called: &str) -> String {
    let mut lines = vec![spelling.id.to_owned()];
    lines.extend(table.columns.iter().map(|column| self::column(spelling, model, column)));
    lines.push(spelling.version.to_owned());
    format!("CREATE TABLE {} (\n  {}\n)", quoted(called), lines.join(",\n  "))
}

pub fn column(spelling: &Spelling, model: &StoredModel, column: &Column) -> String {
    let mut line = format!("{} {}", quoted(&column.column), (spelling.column_type)(&column.form));
    if column.required {
        line += " NOT NULL";
    }
    if let Some(value) = (spelling.fill)(column) {
        line += &format!(" DEFAULT {value}");
    }
    match &column.form {
        Form::Reference { to, on_delete } if spelling.inline_references => {
            line += &references(model, to, *on_delete);
        }
        Form::Reference { .. } | Form::Scalar(_) | Form::Enum(_) | Form::Embedded(_) | Form::List { .. } => {}
    }
    line
}

/// ` REFERENCES "users"("id") ON DELETE CASCADE`
pub fn references(model: &StoredModel, to: &str, on_delete: Action) -> String {
    let table = &model.table(to).expect("references lead to record types of the same model").table;
    let action = match on_delete {
        Action::Refuse => "NO ACTION",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
    };
    format!(" REFERENCES {}(\"id\") ON DELETE {action}", quoted(table))
}

pub fn link(spelling: &Spelling, model: &StoredModel, link: &LinkTable, called: &str) -> String {
    let side = |side: &LinkSide| {
        let references = references(model, &side.to, Action::Cascade);
        format!("{} {} NOT NULL{references}", quoted(&side.column), spelling.integer)
    };
    format!(
        "CREATE TABLE {} (\n  {},\n  {},\n  PRIMARY KEY ({}, {})\n){}",
        quoted(called),
        side(&link.first),
        side(&link.second),
        quoted(&link.first.column),
        quoted(&link.second.column),
        spelling.link_end,
    )
}

pub fn index(spelling: &Spelling, table: &Table, index: &Index) -> Definition {
    let terms: Vec<_> = index.columns.iter().map(|column| index_term(spelling, table, column)).collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let sql = format!(
        "CREATE {unique}INDEX {} ON {} ({})",
        quoted(&index.name),
        quoted(&table.table),
        terms.join(", ")
    );
    Definition { name: index.name.clone(), sql }
}

pub fn index_term(spelling: &Spelling, table: &Table, column: &str) -> String {
    let name = quoted(column);
    table.column(column).map_or_else(|| name.clone(), |found| (spelling.identity)(&found.form, &name))
}

/// The index of a link table, as if it were one of a record's table.
pub fn link_index(link: &LinkTable) -> Definition {
    let name = link.index.clone();
    let columns = format!("{}, {}", quoted(&link.second.column), quoted(&link.first.column));
    let sql = format!("CREATE INDEX {} ON {} ({columns})", quoted(&name), quoted(&link.table));
    Definition { name, sql }
}
