//! What a write takes from its actor: `@createdBy`, `@updatedBy` and `@default(from:)`.

use trefoil_model::access::{AccessAction, RuleValue};
use trefoil_model::error::Violation;
use trefoil_model::{Field, FieldId, StoredValue, Value, ValueSource};

use crate::operation::MissingFields;
use crate::plan::access_check::{filled_account, needs_credential, unsettable_field};
use crate::plan::plan_context::PlanContext;
use crate::plan::write_planner::{WritePlanner, is_under};

impl WritePlanner<'_> {
    /// True, with a violation, for an account that the server fills in: only the operator may give another.
    pub(super) fn refuses_account(&mut self, field: &Field) -> bool {
        let is_refused = field.value_source.is_account() && self.planning.authority.view().is_some();
        if is_refused {
            self.refusal.add(filled_account(field));
        }
        is_refused
    }

    /// Fields of a record that is overwritten, given a value although the actor may set them in no record.
    pub(super) fn unsettable_fields(
        &self,
        fields: &[(FieldId, Value)],
        missing_fields: MissingFields,
    ) -> Vec<FieldId> {
        let (Some(view), MissingFields::Reset) = (self.planning.authority.view(), missing_fields) else {
            return Vec::new();
        };
        let given = fields.iter().map(|(field, _)| *field);
        given.filter(|field| !view.may_set(AccessAction::Update, self.record_id, *field)).collect()
    }

    /// Refuses values that the actor cannot have been shown: of a field that they see in no record, or that does not fit
    /// the field. Whether another was shown is left to the store.
    pub(super) fn refuse_never_shown(&mut self, unsettable: &[FieldId]) {
        let PlanContext { model, authority, .. } = self.planning;
        let Some(view) = authority.view() else { return };
        for id in unsettable {
            let (place, field) = ((self.record_id, *id), self.record.field(*id));
            let is_wrong = self.violations.iter().any(|violation| is_under(violation, field));
            if !is_wrong && !view.hides_field(self.record_id, *id) {
                continue;
            }
            if needs_credential(model, view, AccessAction::Update, place) {
                self.refusal.need_credential();
            }
            let rule = view.field_refusal(AccessAction::Update, self.record_id, *id);
            self.refusal.add_refused(unsettable_field(field), rule);
        }
    }

    /// Gives a field what the actor has; null if they have nothing, which a required field refuses.
    pub(super) fn fill_from_actor(&mut self, id: FieldId, field: &Field, source: &RuleValue) {
        let PlanContext { model, limits, authority, time, .. } = self.planning;
        let stored = match (authority.view(), source) {
            (Some(view), _) => view.filled_value(model, field, source),
            (None, RuleValue::Now | RuleValue::LocalNow) => Some(StoredValue::Text(self.current_time(field))),
            (None, RuleValue::Today) => Some(StoredValue::Text(limits.time_zone.day(time.get()))),
            (None, _) => None,
        };
        match stored {
            Some(value) => self.planned.values.push((id, value)),
            None => self.refuse_absent(id, field),
        }
    }

    /// Sets accounts that the server fills, unless they are given.
    pub(super) fn fill_accounts(&mut self, kinds: &[ValueSource], is_given: &[bool]) {
        let view = self.planning.authority.view();
        let account =
            view.and_then(|view| view.identity.as_ref()?.account.as_ref()).map(|account| &account.id);
        let fields = self.record.fields.iter().enumerate();
        for (i, field) in fields.filter(|(i, field)| !is_given[*i] && kinds.contains(&field.value_source)) {
            let is_new = kinds.contains(&ValueSource::CreatingAccount);
            match account {
                Some(id) => self.planned.values.push((FieldId(i), id.clone().into_stored())),
                // What the operator changes stays with who changed it last, where it must be with someone.
                None if view.is_none() && !is_new && field.required => {}
                None => self.refuse_absent(FieldId(i), field),
            }
        }
    }

    /// Null for a field that the actor has nothing for; if it is required, they cannot write the record.
    fn refuse_absent(&mut self, id: FieldId, field: &Field) {
        match self.planning.authority.view() {
            Some(view) if field.required && view.identity.is_none() => self.refusal.need_credential(),
            Some(_) if field.required => {
                let label = field.label();
                let message =
                    format!("{label} is filled in from your account or token, which has nothing for it");
                self.refusal.add(Violation::new(&field.input_name, "REQUIRED", message));
            }
            Some(_) | None => self.accept_field(id, field, &Value::Null),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trefoil_model::error::{Error, Result};
    use trefoil_model::{Model, SourceFile, ZoneOffsets, parse_schema};

    use super::*;
    use crate::access::ActorPath;
    use crate::access::{AccessView, AccountFacts, Actor, ActorIdentity, ActorRules, Authority};
    use crate::operation::{FillValue, FilledField, NestedWrite, Operation, RecordInput, RelatedInput};
    use crate::plan::{Plan, PlanAction, PlanLimits};

    const SCHEMA: &str = r#"
scalar Date
scalar DateTime
scalar LocalDateTime
type Team { id: ID! users: [User!]! }
type User @account(login: "email") @allow(all: true) { id: ID! email: String! @unique team: Team notes: [Note!]! }
type Note @allow(all: true) {
  id: ID!
  text: String!
  author: User! @createdBy @reference(inverse: "notes")
  editor: User @updatedBy
  team: Team! @default(from: "me.team")
  owner: User @default(from: "me")
  org: Int @default(from: "claim('org.id')") @range(min: 1)
  day: Date! @default(from: "today")
  at: DateTime! @default(from: "now")
  clock: LocalDateTime! @default(from: "now")
  made: LocalDateTime! @createdAt
}
type Visit @allow(all: true) { id: ID! postedAt: LocalDateTime! postedOn: Date! sentAt: String! }
type Later @allow(read: "startsAt <= now || now in alarms || at < now", write: true) { id: ID! startsAt: LocalDateTime alarms: [LocalDateTime!] at: DateTime }
type Mark @allow(all: true) { id: ID! text: String! by: User @createdBy }
"#;

    fn model() -> Model {
        let file = SourceFile { name: "a.graphqls".into(), text: SCHEMA.into() };
        parse_schema(&[file], &[]).expect("a valid schema").0
    }

    /// Two hours after midnight in Berlin, when it is still the day before in UTC.
    fn now() -> jiff::Timestamp {
        "2026-05-31T23:30:00Z".parse().expect("a time")
    }

    fn actor(model: &Model, account: Option<i64>, org: Value) -> Actor {
        let user = model.find_record("User").expect("a type");
        let path = |name: &str| ActorPath {
            references: Vec::new(),
            field: model.record(user).find_field(name).expect("a field"),
        };
        let values = || vec![(path("team"), StoredValue::Int(3))];
        let account = account.map(|id: i64| AccountFacts {
            id: id.into(),
            label: String::new(),
            model_hash: model.hash,
            values: values(),
        });
        let claims = Value::Object(vec![("org".into(), Value::Object(vec![("id".into(), org)]))]);
        let identity = ActorIdentity { name: "a".into(), roles: Vec::new(), account, claims, expires: None };
        Actor::of_identity(identity)
    }

    struct Written<'a> {
        model: &'a Model,
        authority: Authority,
    }

    impl<'a> Written<'a> {
        fn by(model: &'a Model, actor: Option<Actor>) -> Written<'a> {
            let access = model.access.as_ref().expect("rules");
            let zone = ZoneOffsets::load("Europe/Berlin").expect("a zone");
            let view = actor.map(|actor| {
                let rules = Arc::new(ActorRules::new(model, access, actor.identity.as_deref()));
                Arc::new(AccessView::new(actor.identity, rules, now(), &zone))
            });
            Written { model, authority: view.map_or_else(Authority::operator, Authority::of_actor) }
        }

        fn run(&self, operation: Operation) -> Result<PlanAction> {
            let time_zone = ZoneOffsets::load("Europe/Berlin").expect("a zone");
            let limits = PlanLimits { time_zone, ..PlanLimits::default() };
            Plan::prove(self.model, &limits, &self.authority, operation, &now().into())
                .map(|plan| plan.action)
        }

        fn fields(&self, record: &str, fields: &[(&str, Value)]) -> Vec<(FieldId, Value)> {
            let record = self.model.record(self.model.find_record(record).expect("a type"));
            let field = |name: &str| record.find_field(name).expect("a field");
            fields.iter().map(|(name, value)| (field(name), value.clone())).collect()
        }

        fn create(&self, record: &str, fields: &[(&str, Value)]) -> Result<String> {
            let id = self.model.find_record(record).expect("a type");
            let operation = Operation::Create {
                record: id,
                id: None,
                fields: self.fields(record, fields),
                filled_fields: Vec::new(),
                selection: Arc::default(),
            };
            self.run(operation).map(|action| self.shown(record, action))
        }

        fn update(&self, record: &str, fields: &[(&str, Value)]) -> Result<String> {
            let operation = Operation::Update {
                record: self.model.find_record(record).expect("a type"),
                id: 1.into(),
                fields: self.fields(record, fields),
                filled_fields: Vec::new(),
                missing_fields: MissingFields::Keep,
                expected_version: None,
                selection: Arc::default(),
            };
            self.run(operation).map(|action| self.shown(record, action))
        }

        /// `text=a author=7`
        fn shown(&self, record: &str, action: PlanAction) -> String {
            let record = self.model.record(self.model.find_record(record).expect("a type"));
            let (PlanAction::Create { mut values, .. } | PlanAction::Update { mut values, .. }) = action
            else {
                panic!("another plan");
            };
            values.sort_by_key(|(field, _)| *field);
            let values = values.iter().map(|(field, value)| {
                let value = match value {
                    StoredValue::Null => "null".to_owned(),
                    StoredValue::Int(number) => number.to_string(),
                    StoredValue::Real(number) => number.to_string(),
                    StoredValue::Text(text) => text.clone(),
                };
                format!("{}={value}", record.field(*field).name)
            });
            values.collect::<Vec<_>>().join(" ")
        }
    }

    fn text(text: &str) -> Value {
        Value::String(text.to_owned())
    }

    fn refused(result: Result<String>) -> String {
        match result {
            Err(error @ (Error::Forbidden { .. } | Error::Unauthenticated { .. })) => {
                let paths = error.violations().iter().map(|violation| format!(" {:?}", violation.path));
                format!("{}{}", error.code(), paths.collect::<String>())
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn accounts_and_defaults_are_filled_from_the_actor() {
        let model = model();
        let ada = Written::by(&model, Some(actor(&model, Some(7), Value::Int(5))));
        // What has no zone has the time of the clocks in Berlin.
        let times = "day=2026-06-01 at=2026-05-31T23:30:00.000000Z clock=2026-06-01T01:30:00.000000Z \
                     made=2026-06-01T01:30:00.000000Z";
        assert_eq!(
            ada.create("Note", &[("text", text("a"))]).expect("planned"),
            format!("text=a author=7 editor=7 team=3 owner=7 org=5 {times}")
        );
        // What is given is not filled, and a claim that breaks a rule of the field is none.
        let other = Written::by(&model, Some(actor(&model, Some(7), Value::Int(0))));
        assert_eq!(
            other.create("Note", &[("text", text("a")), ("team", Value::Int(9))]).expect("planned"),
            format!("text=a author=7 editor=7 team=9 owner=7 org=null {times}")
        );
        assert_eq!(ada.update("Note", &[("text", text("b"))]).expect("planned"), "text=b editor=7");
        assert_eq!(ada.update("Note", &[]).expect("planned"), "");
    }

    #[test]
    fn actors_give_no_accounts_and_need_their_own_where_it_is_required() {
        let model = model();
        let ada = Written::by(&model, Some(actor(&model, Some(7), Value::Null)));
        let given = [("text", Value::Null), ("author", Value::Int(8)), ("editor", Value::Int(8))];
        let both = "FORBIDDEN [Field(\"authorId\")] [Field(\"editorId\")]";
        assert_eq!(refused(ada.create("Note", &given)), both);
        assert_eq!(refused(ada.update("Note", &given)), both);
        let key = Written::by(&model, Some(actor(&model, None, Value::Null)));
        let new = [("text", text("a"))];
        assert_eq!(refused(key.create("Note", &new)), "FORBIDDEN [Field(\"teamId\")] [Field(\"authorId\")]");
        assert_eq!(key.create("Mark", &new).expect("planned"), "text=a by=null");
        assert_eq!(key.update("Note", &new).expect("planned"), "text=a editor=null");
        let nobody = Written::by(&model, Some(Actor::default()));
        assert_eq!(refused(nobody.create("Note", &new)), "UNAUTHENTICATED");
        assert_eq!(nobody.create("Mark", &new).expect("planned"), "text=a by=null");
    }

    #[test]
    fn times_that_are_filled_by_their_name_are_those_of_the_clocks() {
        let model = model();
        let record = model.find_record("Visit").expect("a type");
        let filled = |name: &str, value| {
            let field = model.record(record).find_field(name).expect("a field");
            FilledField { field, value, on_update: false }
        };
        let filled_fields = vec![
            filled("postedAt", FillValue::CurrentTime),
            filled("postedOn", FillValue::CurrentDate),
            filled("sentAt", FillValue::CurrentTime),
        ];
        let operator = Written::by(&model, None);
        let (fields, selection) = (Vec::new(), Arc::default());
        let created = operator.run(Operation::Create { record, id: None, fields, filled_fields, selection });
        assert_eq!(
            operator.shown("Visit", created.expect("planned")),
            "postedAt=2026-06-01T01:30:00.000000Z postedOn=2026-06-01 sentAt=2026-05-31T23:30:00.000000Z"
        );
    }

    #[test]
    fn rules_compare_times_without_a_zone_with_the_clocks() {
        let model = model();
        let ada = Written::by(&model, Some(actor(&model, Some(7), Value::Null)));
        let view = ada.authority.view().expect("a view");
        assert_eq!(view.local_now, StoredValue::Text("2026-06-01T01:30:00.000000Z".to_owned()));
        assert_eq!(view.now, StoredValue::Text("2026-05-31T23:30:00.000000Z".to_owned()));
        let later = model.find_record("Later").expect("a type");
        let rule = &model.access.as_ref().expect("rules").types[later.0].read.test;
        let mut values = Vec::new();
        rule.visit_values(&mut |value| values.push(value.clone()));
        let times = values.iter().filter(|value| value.is_time());
        assert_eq!(times.collect::<Vec<_>>(), [&RuleValue::LocalNow, &RuleValue::LocalNow, &RuleValue::Now]);
    }

    #[test]
    fn related_records_do_not_supply_accounts_either() {
        let model = model();
        let user = model.find_record("User").expect("a type");
        let notes = model.record(user).find_field("notes").expect("a field");
        let ada = Written::by(&model, Some(actor(&model, Some(7), Value::Null)));
        let write = |related: RelatedInput| {
            let input = RecordInput { related: vec![related], ..RecordInput::default() };
            let write = NestedWrite::Update {
                id: 7.into(),
                input,
                missing_fields: MissingFields::Keep,
                expected_version: None,
            };
            ada.run(Operation::Nested { record: user, write, selection: Arc::default() })
                .map(|_| String::new())
        };
        let fields = ada.fields("Note", &[("text", text("a"))]);
        let note = RecordInput { fields, ..RecordInput::default() };
        let created = RelatedInput { create: vec![note], ..RelatedInput::new(notes) };
        let at = "[Field(\"notes\"), Index(0), Field(\"authorId\")]";
        assert_eq!(refused(write(created)), format!("FORBIDDEN {at}"));
        let connected = RelatedInput { connect: vec![1.into()], ..RelatedInput::new(notes) };
        assert!(refused(write(connected)).starts_with("FORBIDDEN"));
    }

    #[test]
    fn the_operator_gives_accounts() {
        let model = model();
        let operator = Written::by(&model, None);
        let given = [("text", text("a")), ("author", Value::Int(8)), ("team", Value::Int(1))];
        let created = operator.create("Note", &given).expect("planned");
        assert!(
            created.starts_with("text=a author=8 editor=null team=1 owner=null org=null day="),
            "{created}"
        );
        match operator.create("Note", &[("text", text("a"))]) {
            Err(Error::Invalid(violations)) => {
                let named: Vec<&str> = violations.iter().map(|violation| violation.code).collect();
                assert_eq!(named, ["REQUIRED", "REQUIRED"]);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_of_the_actor_are_listed_once() {
        let model = model();
        let access = model.access.as_ref().expect("rules");
        let user = model.record(model.find_record("User").expect("a type"));
        let names = access.actor_paths().into_iter().map(|path| {
            assert!(path.references.is_empty());
            user.field(path.field).name.clone()
        });
        assert_eq!(names.collect::<Vec<_>>(), ["id", "team"]);
    }
}
