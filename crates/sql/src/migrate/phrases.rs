//! Phrases that describe the steps of a migration.

use trefoil_model::values::digit_grouping::group_thousands;

use crate::migrate::model_pairs;
use crate::migrate::stored_model::{ColumnDefault, DeleteAction, LoggedChanges, StoredIndex, StoredType};

pub fn describe_default(default: &ColumnDefault) -> Option<String> {
    match default {
        ColumnDefault::Nothing => None,
        ColumnDefault::Int(number) => Some(number.to_string()),
        ColumnDefault::Real(number) => Some(number.to_string()),
        ColumnDefault::Text(text) => Some(format!("{text:?}")),
        ColumnDefault::Created | ColumnDefault::Updated => Some("the time of this change".to_owned()),
    }
}

pub fn describe_on_delete(stored_type: &StoredType) -> &'static str {
    match model_pairs::delete_action(stored_type) {
        Some(DeleteAction::Cascade) => "is now deleted with the record it refers to",
        Some(DeleteAction::SetNull) => "becomes null when the record it refers to is deleted",
        Some(DeleteAction::Refuse) | None => "now prevents deletion of the record it refers to",
    }
}

pub fn describe_index(index: &StoredIndex) -> String {
    let kind = if index.unique { "unique index" } else { "index" };
    let case = if index.ignores_case { ", ignoring case" } else { "" };
    format!("{kind} on {}{case}", index.columns.join(", "))
}

pub fn describe_search(columns: &[String]) -> String {
    match columns.is_empty() {
        true => "full-text index dropped".to_owned(),
        false => format!("new full-text index on {}", columns.join(", ")),
    }
}

pub fn describe_logging(logged: LoggedChanges) -> String {
    let kinds = [(logged.created, "created"), (logged.updated, "updated"), (logged.deleted, "deleted")];
    let names: Vec<_> = kinds.into_iter().filter(|(is_logged, _)| *is_logged).map(|(_, name)| name).collect();
    match names.is_empty() {
        true => "changes are no longer logged".to_owned(),
        false if logged.changed_columns => {
            format!("logged changes: {}, with the changed fields", names.join(", "))
        }
        false => format!("logged changes: {}", names.join(", ")),
    }
}

pub fn count_records(number: i64) -> String {
    count_nouns(number, "record")
}

pub fn count_values(number: i64) -> String {
    count_nouns(number, "value")
}

pub fn count_nouns(number: i64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", group_thousands(number.unsigned_abs()))
}
