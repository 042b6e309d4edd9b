//! Our functions and triggers as definitions, and the names that PostgreSQL accepts.

/// The schema of our objects.
pub const SCHEMA_OID: &str = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())";

/// PostgreSQL truncates longer names.
pub const MAX_NAME_BYTES: usize = 63;

/// A function. `{schema}` in the body is replaced by the schema, since the caller may have another search path.
#[derive(Debug, PartialEq)]
pub struct SqlFunction {
    pub name: String,
    pub parameters: &'static str,
    pub return_type: &'static str,
    /// The language, and what the function promises.
    pub language: &'static str,
    pub body: String,
}

/// A trigger. `{schema}` and `{table}` in the definition are replaced by their names.
#[derive(Debug, PartialEq)]
pub struct SqlTrigger {
    pub table: String,
    pub name: String,
    /// The text after the name in CREATE TRIGGER.
    pub definition: String,
}

impl SqlFunction {
    pub fn for_trigger(name: &str, body: &str) -> SqlFunction {
        SqlFunction {
            name: name.to_owned(),
            parameters: "",
            return_type: "trigger",
            language: "plpgsql",
            body: body.to_owned(),
        }
    }
}

/// The name, shortened with a hash if PostgreSQL would truncate it.
pub fn shorten_name(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let hash = xxhash_rust::xxh3::xxh3_64(name.as_bytes()) as u32;
    let prefix: String = name.chars().take(MAX_NAME_BYTES - 9).collect();
    format!("{prefix}_{hash:08x}")
}
