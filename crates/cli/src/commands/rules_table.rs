//! The table of `trefoil check --rules`: who may do what.

use std::fmt::Write as _;

use serde_json::{Value, json};

use trefoil_model::access::{
    AccessAction, AccessModel, AccessVerdict, ActorFact, ActorFacts, RuleValue, TextComparison,
};
use trefoil_model::{Model, RecordTypeId};

/// A kind of actor: a column of the table.
struct ActorKind {
    title: String,
    is_signed_in: bool,
    role: Option<String>,
}

impl ActorFacts for ActorKind {
    fn is_signed_in(&self) -> bool {
        self.is_signed_in
    }

    fn has_role(&self, role: &str) -> bool {
        self.role.as_deref() == Some(role)
    }

    fn value(&self, value: &RuleValue) -> ActorFact {
        let is_about_actor = matches!(value, RuleValue::Actor { .. } | RuleValue::Claim(_));
        if is_about_actor && !self.is_signed_in { ActorFact::Absent } else { ActorFact::Unknown }
    }

    fn text_comparison(&self, _: &RuleValue) -> TextComparison {
        TextComparison::Exact
    }
}

/// One action on one type, with the verdict for each kind of actor.
struct RulesRow {
    type_name: String,
    action: &'static str,
    verdicts: Vec<&'static str>,
}

pub struct RulesTable {
    columns: Vec<ActorKind>,
    rows: Vec<RulesRow>,
}

impl RulesTable {
    pub fn new(model: &Model, access: &AccessModel) -> RulesTable {
        let without_role = ["anonymous", "no role"].map(|title| ActorKind {
            title: title.to_owned(),
            is_signed_in: title != "anonymous",
            role: None,
        });
        let roles = access.roles.iter().map(|role| ActorKind {
            title: role.clone(),
            is_signed_in: true,
            role: Some(role.clone()),
        });
        let columns: Vec<ActorKind> = without_role.into_iter().chain(roles).collect();
        let mut rows = Vec::new();
        for (position, rules) in access.types.iter().enumerate() {
            let type_name = &model.record(RecordTypeId(position)).name;
            for action in AccessAction::ALL {
                if action == AccessAction::UpdateTo && rules.update_to.is_none() {
                    continue;
                }
                let test = &rules.rule(action).test;
                let verdicts = columns.iter().map(|column| verdict_word(test.verdict(column))).collect();
                rows.push(RulesRow { type_name: type_name.clone(), action: action.name(), verdicts });
            }
        }
        RulesTable { columns, rows }
    }

    pub fn to_text(&self) -> String {
        let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::len).max().unwrap_or(0);
        let type_width = longest(&mut self.rows.iter().map(|row| row.type_name.as_str())).max("type".len());
        let action_width = longest(&mut self.rows.iter().map(|row| row.action)).max("action".len());
        let mut text = format!("  {:<type_width$}  {:<action_width$}", "type", "action");
        for column in &self.columns {
            let _ = write!(text, "  {:<4}", column.title);
        }
        for row in &self.rows {
            let _ = write!(text, "\n  {:<type_width$}  {:<action_width$}", row.type_name, row.action);
            for (column, verdict) in self.columns.iter().zip(&row.verdicts) {
                let _ = write!(text, "  {verdict:<width$}", width = column.title.len().max(4));
            }
        }
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    pub fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let verdicts = self.columns.iter().zip(&row.verdicts);
            let verdicts: serde_json::Map<String, Value> =
                verdicts.map(|(column, verdict)| (column.title.clone(), json!(verdict))).collect();
            json!({ "type": row.type_name, "action": row.action, "allowed": verdicts })
        });
        rows.collect()
    }
}

pub fn verdict_word(verdict: AccessVerdict) -> &'static str {
    match verdict {
        AccessVerdict::No => "no",
        AccessVerdict::Some => "some",
        AccessVerdict::Yes => "yes",
    }
}
