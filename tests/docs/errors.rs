//! Checks that docs/errors.md lists every error code of the source.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Words in capitals between quotes that are no error codes. Whatever else is found must be on the page.
const OTHERS: &[&[&str]] = &[
    // HTTP methods.
    &["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"],
    // Words and modes of SQL.
    &["ASC", "BEGIN", "CASCADE", "COMMIT", "DESC", "EXCLUSIVE", "FULL", "INSERT", "INTEGER", "MEMORY", "NEW"],
    &["OFF", "OLD", "ON", "REAL", "ROLLBACK", "TEXT", "TRIGGER", "UPDATE", "WAL"],
    // Kinds and places of GraphQL, values of directives and of the sample, tokens of its syntax.
    &["ARGUMENT_DEFINITION", "ENUM_VALUE", "FIELD_DEFINITION", "INPUT_FIELD_DEFINITION", "INPUT_OBJECT"],
    &["INTERFACE", "LIST", "NON_NULL", "OBJECT", "SCALAR", "SCHEMA", "UNION", "REFUSE", "SET_NULL", "ID"],
    &["L_BRACK", "L_CURLY", "L_PAREN", "R_BRACK", "R_CURLY", "R_PAREN", "PAID"],
    // Kinds of changes.
    &["CREATED", "DELETED", "UPDATED"],
    // What the help of a command calls a value.
    &[
        "ACTION", "ACTOR", "BOOL", "FIELD", "FOLDER", "FORMAT", "HOST", "MODE", "NAME", "PORT", "RATE",
        "RULE", "SIZE", "TIME",
    ],
    &["ZONE"],
    // Variables of the environment, and formats.
    &["DATABASE_URL", "RUST_LOG", "CSV", "NDJSON"],
    // The kinds of `@key`; `UUID` is also an error code.
    &["COUNT"],
    // Time zones, character sets, and roles in tests.
    &["UTC", "ASCII", "CHIEF", "EDITOR", "GUEST", "READER"],
    // Kinds of keys in JSON Web Key Sets, and what the help of `trefoil key` calls values.
    &["EC", "JWT", "OKP", "RSA", "LOGIN", "NETWORKS", "ROLE"],
    // Formats, widths and tones of `@display`.
    &["CURRENCY", "PERCENT", "CODE", "COLOR", "LINK", "MULTILINE", "NARROW", "MEDIUM", "WIDE"],
    &["BLUE", "GREEN", "PURPLE", "YELLOW", "RED", "TEAL", "GREY"],
    // Words that join conditions, as other servers spell them.
    &["AND", "OR", "NOT"],
];

#[test]
fn every_error_code_is_documented() {
    let page = fs::read_to_string("docs/errors.md").expect("the page");
    let mut words = BTreeSet::new();
    for folder in ["src", "crates"].map(Path::new) {
        collect(folder, &mut words);
    }
    let is_code =
        |word: &String| !is_variable(word) && !OTHERS.iter().any(|kind| kind.contains(&word.as_str()));
    let codes: Vec<String> = words.into_iter().filter(is_code).collect();
    assert!(codes.len() > 80, "only {} codes were found", codes.len());
    let missing: Vec<&String> = codes.iter().filter(|code| !page.contains(&format!("`{code}`"))).collect();
    assert!(
        missing.is_empty(),
        "docs/errors.md lacks {missing:?}; what is no error code belongs into tests/docs/errors.rs"
    );
}

fn is_variable(word: &str) -> bool {
    ["CARGO_", "TREFOIL_"].iter().any(|start| word.starts_with(start))
}

/// The words in capitals between quotes, but for those of tests: modules behind `#[cfg(test)]` and folders of that name.
fn collect(folder: &Path, words: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the tree") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("tests") {
            collect(&path, words);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("readable");
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            words.extend(code.lines().flat_map(quoted).filter(|word| is_capital(word)).map(str::to_owned));
        }
    }
}

/// What stands between two quotes on a line of code.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    let line = if line.trim_start().starts_with("//") { "" } else { line };
    line.split('"').skip(1).step_by(2)
}

fn is_capital(word: &str) -> bool {
    word.len() > 1
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}
