//! SQL that creates tables and indexes, in the dialect of each database.

use crate::migrate::migration_database::DdlDialect;
use crate::migrate::stored_model::{
    DeleteAction, LinkSide, LinkTable, StoredColumn, StoredIndex, StoredModel, StoredTable, StoredType,
};

/// The name of an index or trigger and the statement that creates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectDefinition {
    pub name: String,
    pub sql: String,
}

pub fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The current time with six digits of a second, as `DateTime` is stored, so that text order is time order.
pub const SQLITE_NOW: &str = "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')";

pub fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The statement that creates `table` as `name`, which may be a temporary name.
pub fn create_table_sql(
    dialect: &DdlDialect,
    model: &StoredModel,
    table: &StoredTable,
    name: &str,
) -> String {
    let mut lines = vec![(dialect.id_column)(table.key).to_owned()];
    lines.extend(table.columns.iter().map(|column| column_definition(dialect, model, column)));
    lines.push(dialect.version_column.to_owned());
    let suffix = (dialect.table_suffix)(table.key);
    format!("CREATE TABLE {} (\n  {}\n){suffix}", quote_name(name), lines.join(",\n  "))
}

pub fn column_definition(dialect: &DdlDialect, model: &StoredModel, column: &StoredColumn) -> String {
    let mut line = format!("{} {}", quote_name(&column.column), (dialect.column_type)(&column.form));
    if column.required {
        line += " NOT NULL";
    }
    if let Some(value) = (dialect.default_value)(column) {
        line += &format!(" DEFAULT {value}");
    }
    match &column.form {
        StoredType::Reference { to, on_delete, .. } if dialect.inline_references => {
            line += &references_clause(model, to, *on_delete);
        }
        StoredType::Reference { .. }
        | StoredType::Scalar(_)
        | StoredType::Enum(_)
        | StoredType::Embedded(_)
        | StoredType::List { .. } => {}
    }
    line
}

/// The clause of a foreign key: ` REFERENCES "users"("id") ON DELETE CASCADE`
pub fn references_clause(model: &StoredModel, to: &str, on_delete: DeleteAction) -> String {
    let table = &model.table(to).expect("references lead to record types of the same model").table;
    let action = match on_delete {
        DeleteAction::Refuse => "NO ACTION",
        DeleteAction::Cascade => "CASCADE",
        DeleteAction::SetNull => "SET NULL",
    };
    format!(" REFERENCES {}(\"id\") ON DELETE {action}", quote_name(table))
}

pub fn create_link_sql(dialect: &DdlDialect, model: &StoredModel, link: &LinkTable, name: &str) -> String {
    let side = |side: &LinkSide| {
        let references = references_clause(model, &side.to, DeleteAction::Cascade);
        let column_type = (dialect.column_type)(&side.key.column_form());
        format!("{} {column_type} NOT NULL{references}", quote_name(&side.column))
    };
    format!(
        "CREATE TABLE {} (\n  {},\n  {},\n  PRIMARY KEY ({}, {})\n){}",
        quote_name(name),
        side(&link.first),
        side(&link.second),
        quote_name(&link.first.column),
        quote_name(&link.second.column),
        dialect.link_table_suffix,
    )
}

pub fn index_definition(dialect: &DdlDialect, table: &StoredTable, index: &StoredIndex) -> ObjectDefinition {
    let columns = index.columns.iter().enumerate();
    let terms: Vec<_> =
        columns.map(|(position, column)| index_term(dialect, table, index, position, column)).collect();
    let unique = if index.unique { "UNIQUE " } else { "" };
    let sql = format!(
        "CREATE {unique}INDEX {} ON {} ({})",
        quote_name(&index.name),
        quote_name(&table.table),
        terms.join(", ")
    );
    ObjectDefinition { name: index.name.clone(), sql }
}

/// The term of an index for one of its columns, which may still have another name in the table.
pub fn index_term(
    dialect: &DdlDialect,
    table: &StoredTable,
    index: &StoredIndex,
    position: usize,
    column: &str,
) -> String {
    let name = quote_name(column);
    if index.ignores_case && position + 1 == index.columns.len() {
        return (dialect.case_key)(&name);
    }
    table.column(column).map_or_else(|| name.clone(), |found| (dialect.equality_key)(&found.form, &name))
}

/// The definition of a link table's index.
pub fn link_index_definition(link: &LinkTable) -> ObjectDefinition {
    let name = link.index.clone();
    let columns = format!("{}, {}", quote_name(&link.second.column), quote_name(&link.first.column));
    let sql = format!("CREATE INDEX {} ON {} ({columns})", quote_name(&name), quote_name(&link.table));
    ObjectDefinition { name, sql }
}
