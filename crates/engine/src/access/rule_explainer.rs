//! [`RuleExplainer`]: what an actor may do, and what each part of the rules comes to.

use std::sync::Arc;

use jiff::Timestamp;

use trefoil_model::access::{
    AccessAction, AccessModel, AccessRule, AccessVerdict, ActorFacts, FieldAccess, RulePart, RuleTest,
    RuleValue,
};
use trefoil_model::error::{Error, PathSegment, Result};
use trefoil_model::{
    Field, FieldId, Model, RecordId, RecordTypeId, Relation, SourceLocation, ValueSource, ZoneOffsets,
};

use crate::access::access_view::{AccessView, ActorRules, FoldedRule};
use crate::access::actor::{ActorFactsView, ActorIdentity, KnownActor};
use crate::access::authority::Authority;
use crate::engine::Engine;
use crate::operation::{Operation, Selection};
use crate::plan::{Plan, PlanLimits, PreparedSelection, RequestTime};

/// Explains the rules of a schema for one actor, with the folding and the statements that decide about requests.
pub struct RuleExplainer<'e> {
    model: &'e Model,
    access: &'e AccessModel,
    view: Arc<AccessView>,
    /// The operator's, asked where a rule is about a record; only needed if one is named.
    engine: Option<&'e Engine>,
}

/// What somebody wants to do.
#[derive(Debug, Clone)]
pub struct AccessQuestion {
    pub action: AccessAction,
    pub record: RecordTypeId,
    pub id: Option<RecordId>,
    pub field: Option<FieldId>,
}

/// Whether the actor may do it, and why.
#[derive(Debug, Clone)]
pub struct AccessExplanation {
    pub verdict: AccessVerdict,
    /// All of them must hold.
    pub rules: Vec<RuleExplanation>,
    /// What is refused whatever the rules say.
    pub refusals: Vec<String>,
}

/// One rule that an action needs.
#[derive(Debug, Clone)]
pub struct RuleExplanation {
    /// `None` for the rule of an operation with a registered resolver, and of a path.
    pub asked: Option<AccessQuestion>,
    pub verdict: AccessVerdict,
    /// What the rule says of the actor alone.
    pub of_actor: AccessVerdict,
    /// Where it is written; the type if no rule names the action.
    pub location: SourceLocation,
    /// The rules as they are written, of which one must hold.
    pub parts: Vec<PartExplanation>,
}

/// What a part of a rule comes to.
#[derive(Debug, Clone)]
pub struct PartExplanation {
    pub part: RulePart,
    pub verdict: AccessVerdict,
    pub parts: Vec<PartExplanation>,
}

impl<'e> RuleExplainer<'e> {
    /// `None` for an open application.
    pub fn new(
        model: &'e Model,
        identity: Option<Arc<ActorIdentity>>,
        zone: &ZoneOffsets,
        engine: Option<&'e Engine>,
    ) -> Option<RuleExplainer<'e>> {
        let access = model.access.as_ref()?;
        let rules = Arc::new(ActorRules::new(model, access, identity.as_deref()));
        let view = Arc::new(AccessView::new(identity, rules, Timestamp::now(), zone));
        Some(RuleExplainer { model, access, view, engine })
    }

    pub async fn explain(&self, question: &AccessQuestion) -> Result<AccessExplanation> {
        let AccessQuestion { action, record, id, field } = question;
        let mut rules = Vec::new();
        if matches!(action, AccessAction::Update | AccessAction::Delete) {
            rules.push(self.type_rule(AccessAction::Read, *record, id.clone()).await?);
        }
        rules.push(self.type_rule(*action, *record, id.clone()).await?);
        if *action == AccessAction::Update && self.access.types[record.0].update_to.is_some() {
            // About the record as it would be, which nobody knows yet.
            rules.push(self.type_rule(AccessAction::UpdateTo, *record, None).await?);
        }
        if let Some(field) = field {
            rules.extend(self.field_rule(question, *field).await?);
            rules.extend(self.target_rule(question, *field).await?);
        }
        let refusals = self.refusals(question);
        let verdicts = rules.iter().map(|rule| rule.verdict);
        let refused = (!refusals.is_empty()).then_some(AccessVerdict::No);
        let verdict = verdicts.chain(refused).fold(AccessVerdict::Yes, both);
        Ok(AccessExplanation { verdict, rules, refusals })
    }

    /// The rule of the operation at this position of [`Model::root_fields`]; without one everybody may call it.
    pub fn explain_call(&self, position: usize) -> AccessExplanation {
        self.explain_actor_rule(self.access.calls.get(&position), true)
    }

    /// A rule about the actor alone; `is_open` if everybody is allowed where there is none.
    pub fn explain_actor_rule(&self, rule: Option<&AccessRule>, is_open: bool) -> AccessExplanation {
        let Some(rule) = rule else {
            let refusals = if is_open { Vec::new() } else { vec!["no rule allows it".to_owned()] };
            let verdict = if is_open { AccessVerdict::Yes } else { AccessVerdict::No };
            return AccessExplanation { verdict, rules: Vec::new(), refusals };
        };
        let AccessView { identity, now, local_now, today, .. } = &*self.view;
        let facts = ActorFactsView { identity: identity.as_deref(), model: self.model };
        let actor = KnownActor { facts, now, local_now, today };
        let verdict = rule.test.verdict(&actor);
        let parts = rule.parts.iter().map(|part| explain_part(part, &actor)).collect();
        let location = rule.location.clone();
        let explained = RuleExplanation { asked: None, verdict, of_actor: verdict, location, parts };
        AccessExplanation { verdict, rules: vec![explained], refusals: Vec::new() }
    }

    async fn type_rule(
        &self,
        action: AccessAction,
        record: RecordTypeId,
        id: Option<RecordId>,
    ) -> Result<RuleExplanation> {
        let rule = self.access.types[record.0].rule(action);
        let folded = self.view.of_type(record).rule(action);
        self.explain_rule(AccessQuestion { action, record, id, field: None }, rule, folded).await
    }

    async fn field_rule(&self, question: &AccessQuestion, field: FieldId) -> Result<Option<RuleExplanation>> {
        let FieldAccess { read, create, update } = &self.access.types[question.record.0].fields[field.0];
        let view = &self.view.of_type(question.record).fields[field.0];
        let (rule, folded) = match question.action {
            AccessAction::Read => (read, &view.read),
            AccessAction::Create => (create, &view.create),
            AccessAction::Update | AccessAction::UpdateTo => (update, &view.update),
            AccessAction::Delete => return Ok(None),
        };
        match rule {
            Some(rule) => self.explain_rule(question.clone(), rule, folded).await.map(Some),
            None => Ok(None),
        }
    }

    /// A reference is seen by who may read the record that it leads to.
    async fn target_rule(
        &self,
        question: &AccessQuestion,
        field: FieldId,
    ) -> Result<Option<RuleExplanation>> {
        let kind = &self.model.record(question.record).field(field).kind;
        let (AccessAction::Read, Some(relation)) = (question.action, kind.relation()) else {
            return Ok(None);
        };
        let target = relation.target();
        let id = match (relation, &question.id, self.engine) {
            (Relation::Reference(_), Some(id), Some(engine)) => {
                let selection = PreparedSelection::new(Selection::new(vec![field], Vec::new()));
                let operation =
                    Operation::Get { record: question.record, id: id.clone(), selection: selection.clone() };
                let rows = engine.collect(operation, selection).await?.rows;
                let cell = rows.first().and_then(|row| row.cells.first());
                match cell.and_then(|cell| RecordId::from_cell(cell.as_cell())) {
                    Some(id) => Some(id),
                    None => return Ok(None),
                }
            }
            (Relation::Reference(_) | Relation::Inverse(_) | Relation::Link(_), _, _) => None,
        };
        self.type_rule(AccessAction::Read, target, id).await.map(Some)
    }

    async fn explain_rule(
        &self,
        asked: AccessQuestion,
        rule: &AccessRule,
        folded: &FoldedRule,
    ) -> Result<RuleExplanation> {
        let verdict = self.ask(&asked, &folded.test).await?;
        let mut parts = Vec::with_capacity(rule.parts.len());
        for part in &rule.parts {
            parts.push(self.explain_record_part(&asked, part).await?);
        }
        let (of_actor, location) = (folded.verdict(), rule.location.clone());
        Ok(RuleExplanation { asked: Some(asked), verdict, of_actor, location, parts })
    }

    async fn explain_record_part(&self, asked: &AccessQuestion, part: &RulePart) -> Result<PartExplanation> {
        let identity = self.view.identity.as_deref();
        let folded = part.test.folded(&ActorFactsView { identity, model: self.model });
        let verdict = self.ask(asked, &folded).await?;
        let mut parts = Vec::with_capacity(part.parts.len());
        for inner in &part.parts {
            parts.push(Box::pin(self.explain_record_part(asked, inner)).await?);
        }
        Ok(PartExplanation { part: without_parts(part), verdict, parts })
    }

    /// What is left of a test for this actor, asked of the store if a record is named.
    async fn ask(&self, asked: &AccessQuestion, folded: &RuleTest) -> Result<AccessVerdict> {
        let meets = match (folded.as_constant(), &asked.id, self.engine) {
            (Some(constant), _, _) => constant,
            (None, Some(id), Some(engine)) => engine.record_meets(asked.record, id, folded).await?,
            (None, _, _) => return Ok(AccessVerdict::Some),
        };
        Ok(if meets { AccessVerdict::Yes } else { AccessVerdict::No })
    }

    /// What the server fills in from an actor who does not have it, and what nobody can set.
    fn refusals(&self, question: &AccessQuestion) -> Vec<String> {
        let record = self.model.record(question.record);
        let has_account = self.view.identity.as_ref().is_some_and(|identity| identity.account.is_some());
        let (is_create, is_update) =
            (question.action == AccessAction::Create, question.action == AccessAction::Update);
        if !is_create && !is_update {
            return Vec::new();
        }
        let absent = if is_create { self.absent_defaults(question.record) } else { Vec::new() };
        let mut refusals = Vec::new();
        for (position, field) in record.fields.iter().enumerate() {
            let is_filled = match field.value_source {
                ValueSource::CreatingAccount => is_create,
                ValueSource::UpdatingAccount => true,
                ValueSource::Client
                | ValueSource::CreationTime
                | ValueSource::UpdateTime
                | ValueSource::RecordVersion => false,
            };
            let is_absent = is_filled && field.required && !has_account
                || absent.contains(&field.input_name)
                    && !self.view.may_set(AccessAction::Create, question.record, FieldId(position));
            if question.field == Some(FieldId(position)) && field.value_source != ValueSource::Client {
                refusals.push(format!("`{}` is set by the server and cannot be written", field.name));
            } else if is_absent {
                let message = "is filled in from the account or token of the actor, which has nothing for it";
                refusals.push(format!("`{}` {message}", field.name));
            }
        }
        refusals
    }

    /// The required fields that a new record takes from the actor, who has nothing for them, by the names of inputs.
    fn absent_defaults(&self, record: RecordTypeId) -> Vec<String> {
        let is_from_actor = |field: &&Field| {
            let source = field.default_from.as_ref();
            field.required
                && source.is_some_and(|value| matches!(value, RuleValue::Actor { .. } | RuleValue::Claim(_)))
        };
        let fields = self.model.record(record).fields.iter().filter(is_from_actor);
        let fields: Vec<String> = fields.map(|field| field.input_name.clone()).collect();
        if fields.is_empty() || self.view.identity.is_none() {
            return fields;
        }
        let operation = Operation::Create {
            record,
            id: None,
            fields: Vec::new(),
            filled_fields: Vec::new(),
            selection: Arc::default(),
        };
        let authority = Authority::of_actor(self.view.clone());
        let limits = PlanLimits::default();
        let proved = Plan::prove(self.model, &limits, &authority, operation, &RequestTime::default());
        let Err(Error::Forbidden { violations, .. }) = proved else { return Vec::new() };
        let is_refused = |name: &String| {
            violations.iter().any(|violation| {
                matches!(violation.path.first(), Some(PathSegment::Field(field)) if field == name)
            })
        };
        fields.into_iter().filter(is_refused).collect()
    }
}

fn explain_part(part: &RulePart, actor: &impl ActorFacts) -> PartExplanation {
    let parts = part.parts.iter().map(|inner| explain_part(inner, actor)).collect();
    PartExplanation { part: without_parts(part), verdict: part.test.verdict(actor), parts }
}

fn without_parts(part: &RulePart) -> RulePart {
    RulePart {
        location: part.location.clone(),
        bytes: part.bytes.clone(),
        join: part.join,
        test: part.test.clone(),
        parts: Vec::new(),
    }
}

/// Where both must hold.
fn both(one: AccessVerdict, other: AccessVerdict) -> AccessVerdict {
    match (one, other) {
        (AccessVerdict::No, _) | (_, AccessVerdict::No) => AccessVerdict::No,
        (AccessVerdict::Yes, AccessVerdict::Yes) => AccessVerdict::Yes,
        (AccessVerdict::Some, _) | (_, AccessVerdict::Some) => AccessVerdict::Some,
    }
}
