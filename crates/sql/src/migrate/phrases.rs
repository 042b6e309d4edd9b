//! The phrases a plan is made of.

use crate::migrate::model_pairs;
use crate::migrate::stored_model::{Action, Fill, Form, Index, Logged};
use trefoil_model::values::thousands::grouped;

pub fn fill(fill: &Fill) -> Option<String> {
    match fill {
        Fill::Nothing => None,
        Fill::Int(number) => Some(number.to_string()),
        Fill::Real(number) => Some(number.to_string()),
        Fill::Text(text) => Some(format!("{text:?}")),
        Fill::Created | Fill::Updated => Some("the time of this change".to_owned()),
    }
}

pub fn on_delete(form: &Form) -> &'static str {
    match model_pairs::on_delete(form) {
        Some(Action::Cascade) => "is now deleted together with what it refers to",
        Some(Action::SetNull) => "becomes null when what it refers to is deleted",
        Some(Action::Refuse) | None => "now keeps what it refers to from being deleted",
    }
}

pub fn index(index: &Index) -> String {
    let kind = if index.unique { "unique index" } else { "index" };
    format!("{kind} on {}", index.columns.join(", "))
}

pub fn logging(logged: Logged) -> String {
    let deeds = [(logged.created, "created"), (logged.updated, "updated"), (logged.deleted, "deleted")];
    let names: Vec<_> = deeds.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
    match names.is_empty() {
        true => "its changes are no longer logged".to_owned(),
        false => format!("these changes are logged: {}", names.join(", ")),
    }
}

pub fn records(number: i64) -> String {
    counted(number, "record")
}

pub fn values(number: i64) -> String {
    counted(number, "value")
}

pub fn counted(number: i64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number.unsigned_abs()))
}
