//! Checks that the table of names in docs/operations.md is made of the table of verbs.

use std::fs;

use trefoil_model::naming::operation_verbs::{NamedVerb, VERB_TABLE, VerbRow};

const PAGE: &str = "docs/operations.md";
const HEADER: &str = "| does | words before the noun | words after it | declared type |\n|---|---|---|---|\n";

/// BLESS=1 writes the table into the page.
#[test]
fn names_of_operations_are_documented_from_the_table() {
    let page = fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(HEADER).expect("the head of the table");
    let (documented, after) = rest.split_once("\n\n").expect("an end of the table");
    let expected = VERB_TABLE.iter().map(table_line).collect::<Vec<String>>().join("\n");
    if std::env::var_os("BLESS").is_some() {
        fs::write(PAGE, format!("{before}{HEADER}{expected}\n\n{after}")).expect("the page is writable");
        return;
    }
    assert_eq!(documented, expected, "{PAGE}: BLESS=1 writes the table anew");
}

fn table_line(row: &VerbRow) -> String {
    let (does, result) = match row.verb {
        NamedVerb::List => ("list", "a list of records, a connection or a page"),
        NamedVerb::Search => ("list with a text", "the same; a text is contained, not equal"),
        NamedVerb::Count => ("count", "`Int` or `Long`"),
        NamedVerb::Exists => ("exists", "`Boolean`"),
        NamedVerb::Get => ("get", "a record or a payload"),
        NamedVerb::Create => ("create", "a record, a payload, `ID`, `String` (the id) or `Boolean`"),
        NamedVerb::Update => ("update", "the same"),
        NamedVerb::Set => ("update one field", "the same; the noun is a field, or a type and a field"),
        NamedVerb::Save => {
            ("create or update", "the same; with an id it updates that record, or creates one with the id")
        }
        NamedVerb::Delete => ("delete", "the same"),
        NamedVerb::Created => ("created", "a record"),
        NamedVerb::Updated => ("updated", "a record"),
        NamedVerb::Deleted => ("deleted", "a record"),
    };
    let none = if row.is_optional { "none, " } else { "" };
    let line = format!("| {does} | {none}{} | {} | {result} |", code_list(row.before), code_list(row.after));
    line.replace("|  |", "| |")
}

/// `` `all`, `getAll` ``
fn code_list(words: &str) -> String {
    words.split_whitespace().map(|word| format!("`{word}`")).collect::<Vec<String>>().join(", ")
}
