//! What `trefoil can` found out, and its form as JSON.

use std::sync::Arc;

use serde_json::{Value, json};

use trefoil_engine::{
    AccessExplanation, AccessQuestion, Engine, Operation, PartExplanation, PreparedSelection, RuleExplainer,
    RuleExplanation, Selection,
};
use trefoil_model::access::{AccessAction, AccessVerdict, ListAccess, PartJoin};
use trefoil_model::{Model, SourceFile, ZoneOffsets};

use crate::command_error::CommandError;
use crate::commands::can::asked_access::{AskedAccess, PathRule, question_words};
use crate::commands::can::named_actor::NamedActor;
use crate::commands::rules_table::verdict_word;

pub struct ExplainedAccess {
    pub model: Arc<Model>,
    pub actor: NamedActor,
    pub asked: AskedAccess,
    /// Of an actor whose credential is good.
    pub found: Option<AccessExplanation>,
}

impl ExplainedAccess {
    pub async fn find<'m>(
        model: &'m Arc<Model>,
        engine: Option<&Engine>,
        zone: &ZoneOffsets,
        actor: NamedActor,
        asked: AskedAccess,
    ) -> Result<ExplainedAccess, CommandError> {
        if let (AskedAccess::Record(question), Some(engine)) = (&asked, engine) {
            check_record(question, engine).await?;
        }
        let explainer = match &actor.identity {
            Ok(identity) => RuleExplainer::new(model, identity.clone(), zone, engine),
            Err(_) => None,
        };
        let found = match (explainer, &asked) {
            (None, _) => None,
            (Some(explainer), AskedAccess::Call(position)) => Some(explainer.explain_call(*position)),
            (Some(explainer), AskedAccess::Path { rule, .. }) => {
                let (rule, is_open) = match (&model.access, rule) {
                    (None, _) => (None, true),
                    (Some(access), PathRule::Text(position)) => (access.texts.get(position), true),
                    (Some(access), PathRule::List { name, is_write }) => {
                        let rules = access.lists.get(name);
                        let rule = |rules: &'m ListAccess| match is_write {
                            true => rules.write.as_ref(),
                            false => rules.read.as_ref(),
                        };
                        (rules.and_then(rule), false)
                    }
                };
                Some(explainer.explain_actor_rule(rule, is_open))
            }
            (Some(explainer), AskedAccess::Record(question)) => {
                let found = explainer.explain(question).await;
                Some(found.map_err(|error| CommandError::failed(error.full_text()))?)
            }
        };
        Ok(ExplainedAccess { model: model.clone(), actor, asked, found })
    }

    pub fn verdict(&self) -> AccessVerdict {
        self.found.as_ref().map_or(AccessVerdict::No, |found| found.verdict)
    }

    pub fn is_refused(&self) -> bool {
        self.verdict() == AccessVerdict::No
    }

    /// The code that a request gets; `None` for a field that is shown as null.
    pub fn refusal_code(&self) -> Option<&'static str> {
        let Some(found) = &self.found else { return Some("UNAUTHENTICATED") };
        let refused = match &self.actor.identity {
            Ok(Some(_)) => "FORBIDDEN",
            Ok(None) | Err(_) => "UNAUTHENTICATED",
        };
        let AskedAccess::Record(question) = &self.asked else { return Some(refused) };
        let is_no = |rule: &&RuleExplanation| rule.verdict == AccessVerdict::No;
        let of_type = |rule: &&RuleExplanation| rule.asked.as_ref().is_none_or(|asked| asked.field.is_none());
        let mut type_rules = found.rules.iter().filter(of_type).filter(is_no);
        // What is decided before a record is looked at goes first; reading is asked of the record alone in a write.
        let is_before = |rule: &RuleExplanation| {
            rule.of_actor == AccessVerdict::No
                && (question.action == AccessAction::Read || action_of(rule) != Some(AccessAction::Read))
        };
        let is_about =
            |rule: &RuleExplanation| rule.asked.as_ref().is_some_and(|asked| asked.record == question.record);
        if type_rules.clone().any(|rule| is_about(rule) && is_before(rule)) || !found.refusals.is_empty() {
            return Some(refused);
        }
        match type_rules.find(|rule| is_about(rule)) {
            Some(rule) if action_of(rule) == Some(AccessAction::Read) => Some("NOT_FOUND"),
            Some(_) => Some(refused),
            None if question.action == AccessAction::Read => None,
            None => Some(refused),
        }
    }
}

fn action_of(rule: &RuleExplanation) -> Option<AccessAction> {
    rule.asked.as_ref().map(|asked| asked.action)
}

/// Refuses the id of a record that does not exist.
async fn check_record(question: &AccessQuestion, engine: &Engine) -> Result<(), CommandError> {
    let Some(id) = &question.id else { return Ok(()) };
    let selection = PreparedSelection::new(Selection::default());
    let operation = Operation::Get { record: question.record, id: id.clone(), selection: selection.clone() };
    let found = engine.collect(operation, selection).await;
    let found = found.map_err(|error| CommandError::failed(error.full_text()))?;
    if found.rows.is_empty() {
        let name = &engine.model().record(question.record).name;
        return Err(CommandError::usage(format!("there is no {name} {id}")));
    }
    Ok(())
}

pub fn explained_json(explained: &ExplainedAccess, sources: &[SourceFile]) -> Value {
    let ExplainedAccess { model, actor, asked, found } = explained;
    let mut report = json!({
        "verdict": verdict_word(explained.verdict()),
        "asked": asked.words(model),
        "actor": actor.title,
        "code": if explained.is_refused() { explained.refusal_code() } else { None },
        "roles": match &actor.identity {
            Ok(Some(identity)) => identity.roles.clone(),
            Ok(None) | Err(_) => Vec::new(),
        },
        "account": match &actor.identity {
            Ok(Some(identity)) => identity.account.as_ref().map(|account| account.id.to_string()),
            Ok(None) | Err(_) => None,
        },
    });
    if let Err(reason) = &actor.identity {
        report["refusals"] = json!([reason]);
    }
    if let Some(found) = found {
        let rules = found.rules.iter().map(|rule| {
            json!({
                "asked": rule.asked.as_ref().map_or_else(|| asked.words(model), |asked| question_words(asked, model)),
                "verdict": verdict_word(rule.verdict),
                "file": rule.location.file,
                "line": rule.location.line,
                "rest": rest_of_rule(rule, sources),
                "rules": rule.parts.iter().map(|part| part_json(part, sources)).collect::<Vec<_>>(),
            })
        });
        report["rules"] = rules.collect();
        report["refusals"] = json!(found.refusals);
    }
    report
}

fn part_json(explained: &PartExplanation, sources: &[SourceFile]) -> Value {
    let PartExplanation { part, verdict, parts } = explained;
    json!({
        "text": part_text(explained, sources),
        "verdict": verdict_word(*verdict),
        "file": part.location.file,
        "line": part.location.line,
        "column": part.location.column,
        "parts": parts.iter().map(|part| part_json(part, sources)).collect::<Vec<_>>(),
    })
}

/// The text of a part on one line.
pub fn part_text(explained: &PartExplanation, sources: &[SourceFile]) -> String {
    let part = &explained.part;
    let source = sources.iter().find(|source| source.name == part.location.file);
    let text = source.and_then(|source| source.text.get(part.bytes.clone())).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is left of a rule that depends on the record.
pub fn rest_of_rule(rule: &RuleExplanation, sources: &[SourceFile]) -> Option<String> {
    (rule.verdict == AccessVerdict::Some).then(|| joined_rest(&rule.parts, " || ", sources))
}

fn joined_rest(parts: &[PartExplanation], join: &str, sources: &[SourceFile]) -> String {
    let left: Vec<&PartExplanation> =
        parts.iter().filter(|part| part.verdict == AccessVerdict::Some).collect();
    let texts = left.iter().map(|part| rest_of_part(part, left.len() > 1 && join == " && ", sources));
    texts.collect::<Vec<_>>().join(join)
}

/// `is_factor` if it stands beside `&&`.
fn rest_of_part(explained: &PartExplanation, is_factor: bool, sources: &[SourceFile]) -> String {
    let left = explained.parts.iter().filter(|part| part.verdict == AccessVerdict::Some).count();
    match explained.part.join {
        PartJoin::Any if is_factor && left > 1 => {
            format!("({})", joined_rest(&explained.parts, " || ", sources))
        }
        PartJoin::Any => joined_rest(&explained.parts, " || ", sources),
        PartJoin::All => joined_rest(&explained.parts, " && ", sources),
        PartJoin::Not | PartJoin::Whole => part_text(explained, sources),
    }
}
