//! Runs a write with the checks of its rules before and after it; the first ones lock the records.

use std::time::Duration;

use futures_util::future::BoxFuture;

use tokio_postgres::error::SqlState;
use trefoil_engine::plan::{NestedStep, PlanAction};
use trefoil_engine::{AccessView, Outcome, Plan};
use trefoil_model::error::Error;
use trefoil_model::{CellValue, FieldId, Model, RecordId, RecordTypeId, StoredValue};

use crate::postgres::constraint_errors::execute_explained;
use crate::postgres::error::PostgresError;
use crate::postgres::session::{PostgresSession, RowVisitor};
use crate::statements::access::check_statement::{CheckResult, CheckedRecord};
use crate::statements::access::unchecked_writes::needs_no_check;
use crate::statements::access::write_rules::{
    ChangeAction, CheckedRecords, FieldLinks, FieldValues, WriteCheck, WriteRules,
};
use crate::statements::compile::{Program, compile_plan};
use crate::statements::dialect::Dialect;
use crate::statements::nested_write::NestedRun;
use crate::statements::select::{count_parameters, match_parameters};
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write_many::check_match_count;
use crate::statements::write_parts::write_parts;

/// Runs a plan without its rules; those of its parts are checked.
pub type PostgresRun = for<'f> fn(
    PostgresSession<'f>,
    &'f Model,
    &'f Plan,
    &'f Program,
    RowVisitor<'f>,
) -> BoxFuture<'f, Result<Outcome, PostgresError>>;

/// Runs a plan under the rules of its actor.
pub async fn execute_guarded(
    session: PostgresSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    view: &AccessView,
    visit: RowVisitor<'_>,
    execute_unchecked: PostgresRun,
) -> Result<Outcome, PostgresError> {
    let guarded = PostgresGuard { session, model, rules: session.write_rules(model, view) };
    if needs_no_check(model, view, &plan.action) {
        return execute_unchecked(session, model, plan, program, visit).await;
    }
    match (&plan.action, program) {
        (PlanAction::Create { record, values, links, .. }, _) => {
            guarded.check_targets(*record, values, links).await?;
            let outcome = execute_unchecked(session, model, plan, program, visit).await?;
            if let Outcome::Created { id, .. } = &outcome {
                guarded.check_created(*record, &[id.as_cell()], values, links).await?;
            }
            Ok(outcome)
        }
        (PlanAction::Update { record, id, values, links, expected_version, .. }, _) => {
            let ids = vec![id.as_cell()];
            let changed = (values.as_slice(), links.as_slice());
            let old = match guarded.check_updated(*record, &ids, changed, *expected_version).await? {
                CheckResult::Passed(old) => old,
                CheckResult::Missing => return Ok(Outcome::NotFound),
                CheckResult::Hidden(rule) => return Ok(Outcome::OutOfSight(rule)),
            };
            let outcome = execute_unchecked(session, model, plan, program, visit).await?;
            guarded.run_all(&guarded.rules.after_updates(*record, &old)).await?;
            Ok(outcome)
        }
        (PlanAction::Delete { record, id, expected_version, .. }, _) => {
            let records = CheckedRecords::Ids(vec![id.as_cell()]);
            let rules = guarded.rules;
            let check = rules.before(*record, ChangeAction::Delete, records, (&[], &[]), *expected_version);
            match guarded.run(&check).await? {
                CheckResult::Missing => Ok(Outcome::NotFound),
                CheckResult::Hidden(rule) => Ok(Outcome::OutOfSight(rule)),
                CheckResult::Passed(_) => execute_unchecked(session, model, plan, program, visit).await,
            }
        }
        (PlanAction::UpdateMany { record, listing, values, links }, Program::UpdateManyLinks { find, .. }) => {
            let ids = session.read_values(find, &count_parameters(listing)).await?;
            check_match_count(listing, ids.len() as i64)?;
            let cells: Vec<CellValue<'_>> = ids.iter().map(StoredValue::as_cell).collect();
            let changed = (values.as_slice(), links.as_slice());
            let checked = guarded.check_updated(*record, &cells, changed, None).await?.passed().ok_or_else(changed_meanwhile)?;
            let (plan, program) = narrowed(model, plan, &ids)?;
            session.execute_control("SAVEPOINT many").await?;
            let outcome = match execute_unchecked(session, model, &plan, &program, visit).await {
                Err(PostgresError::Refused(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                    session.execute_control("ROLLBACK TO many").await?;
                    guarded.run_all(&guarded.rules.of_drafts(&cells, write_parts(&plan.action))).await?;
                    return Err(PostgresError::Refused(error));
                }
                run => run?,
            };
            session.execute_control("RELEASE many").await?;
            guarded.run_all(&guarded.rules.after_updates(*record, &checked)).await?;
            Ok(outcome)
        }
        (PlanAction::DeleteMany { record, listing }, Program::DeleteFound { find, .. }) => {
            let ids = session.read_values(find, &count_parameters(listing)).await?;
            check_match_count(listing, ids.len() as i64)?;
            let records = CheckedRecords::Ids(ids.iter().map(StoredValue::as_cell).collect());
            let check = guarded.rules.before(*record, ChangeAction::Delete, records, (&[], &[]), None);
            match guarded.run(&check).await? {
                CheckResult::Missing | CheckResult::Hidden(_) => Err(changed_meanwhile().into()),
                CheckResult::Passed(_) => {
                    let (plan, program) = narrowed(model, plan, &ids)?;
                    execute_unchecked(session, model, &plan, &program, visit).await
                }
            }
        }
        (
            PlanAction::Upsert { record, listing, create, values, links, .. },
            Program::Upsert { find, create: create_program, .. },
        ) => {
            let found = session.read_values(find, &match_parameters(listing)).await?;
            let Some(id) = found.first() else {
                let created = execute_guarded(session, model, create, create_program, view, visit, execute_unchecked);
                return execute_explained(session, model, write_parts(&create.action), Box::pin(created)).await;
            };
            let ids = vec![id.as_cell()];
            let changed = (values.as_slice(), links.as_slice());
            let checked = guarded.check_updated(*record, &ids, changed, None).await?.passed().ok_or_else(changed_meanwhile)?;
            let (plan, program) = narrowed(model, plan, std::slice::from_ref(id))?;
            let outcome = execute_unchecked(session, model, &plan, &program, visit).await?;
            if matches!(outcome, Outcome::Created { .. }) {
                return Err(changed_meanwhile().into());
            }
            guarded.run_all(&guarded.rules.after_updates(*record, &checked)).await?;
            Ok(outcome)
        }
        // Their parts are checked one by one, or they write no records.
        (
            PlanAction::CreateMany(_)
            | PlanAction::Nested(_)
            | PlanAction::Get { .. }
            | PlanAction::List { .. }
            | PlanAction::ReadImage { .. }
            | PlanAction::SeeImages { .. }
            | PlanAction::Aggregate(_)
            | PlanAction::PlainList(_),
            _,
        )
        // Nothing is changed.
        | (PlanAction::UpdateMany { .. }, Program::UpdateMany { update: None, .. }) => {
            execute_unchecked(session, model, plan, program, visit).await
        }
        (PlanAction::UpdateMany { .. } | PlanAction::DeleteMany { .. } | PlanAction::Upsert { .. }, _) => {
            Err(Error::internal("a guarded write has the program of an open one").into())
        }
    }
}

/// Refuses what an earlier request was allowed, and its actor would not be now.
pub async fn check_repeated(
    session: PostgresSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
) -> Result<(), PostgresError> {
    let Some(view) = plan.access_view().filter(|_| plan.is_write()) else { return Ok(()) };
    let session = session.for_plan(plan);
    let rules = session.write_rules(model, view);
    let found = match (&plan.action, program) {
        (PlanAction::UpdateMany { listing, .. }, Program::UpdateManyLinks { find, .. })
        | (PlanAction::DeleteMany { listing, .. }, Program::DeleteFound { find, .. }) => {
            session.read_values(find, &count_parameters(listing)).await?
        }
        (PlanAction::Upsert { listing, .. }, Program::Upsert { find, .. }) => {
            session.read_values(find, &match_parameters(listing)).await?
        }
        _ => Vec::new(),
    };
    PostgresGuard { session, model, rules }.run_all(&rules.of_repeated(&plan.action, &found)).await
}

/// Whether the actor sees a record; all do where no rules apply.
pub async fn is_visible(
    session: PostgresSession<'_>,
    model: &Model,
    record: RecordTypeId,
    id: &RecordId,
) -> Result<bool, PostgresError> {
    let Some(view) = session.view else { return Ok(true) };
    let statement = session.write_rules(model, view).visible_ids(record);
    let ids = [SqlParameter::Keys(vec![id.as_cell()])];
    Ok(!session.read_values(&statement, &ids).await?.is_empty())
}

/// The rules of a step of a nested write, before it; what the changed records were.
pub async fn check_step_before(
    session: PostgresSession<'_>,
    run: &NestedRun<'_>,
    step: &NestedStep,
    view: &AccessView,
) -> Result<Vec<CheckedRecord>, PostgresError> {
    let rules = session.write_rules(run.model, view);
    let guarded = PostgresGuard { session, model: run.model, rules };
    let mut checked = Vec::new();
    for check in run.checks_before(step, rules)? {
        match guarded.run(&check).await? {
            CheckResult::Missing | CheckResult::Hidden(_) => {
                return Err(run.missing_error(step, &step.items, &[]).into());
            }
            CheckResult::Passed(found) => checked = found,
        }
    }
    if let Some((statement, parameters)) = run.members_in_sight(step, rules)? {
        let seen = session.read_values(&statement, &parameters).await?;
        let is_unseen = |id: &CellValue<'_>| !seen.iter().any(|seen| seen.as_cell() == *id);
        if let [SqlParameter::Keys(ids), ..] = parameters.as_slice()
            && ids.iter().any(is_unseen)
        {
            return Err(run.missing_error(step, &step.items, &seen).into());
        }
    }
    for (field, target, ids) in run.named_records(step, rules) {
        let seen = guarded.seen(target, &ids).await?;
        if ids.iter().any(|id| !seen.iter().any(|seen| seen.as_cell() == *id)) {
            let unseen = rules.unseen_targets(step.record, field, &ids, &seen);
            return Err(match unseen.is_empty() {
                true => run.missing_error(step, &step.items, &seen).into(),
                false => Error::Invalid(unseen).into(),
            });
        }
    }
    Ok(checked)
}

/// The rules of a step of a nested write, after it.
pub async fn check_step_after(
    session: PostgresSession<'_>,
    run: &NestedRun<'_>,
    step: &NestedStep,
    view: &AccessView,
    checked: &[CheckedRecord],
    links: &[FieldId],
) -> Result<(), PostgresError> {
    let rules = session.write_rules(run.model, view);
    let guarded = PostgresGuard { session, model: run.model, rules };
    guarded.run_all(&run.checks_after(step, rules, checked, links)?).await
}

#[derive(Clone, Copy)]
struct PostgresGuard<'a> {
    session: PostgresSession<'a>,
    model: &'a Model,
    rules: WriteRules<'a>,
}

impl PostgresGuard<'_> {
    async fn run(&self, check: &WriteCheck<'_>) -> Result<CheckResult, PostgresError> {
        Ok(check.judge(&self.session.check_rows(check).await?)?)
    }

    async fn run_all(&self, checks: &[WriteCheck<'_>]) -> Result<(), PostgresError> {
        for check in checks {
            self.run(check).await?;
        }
        Ok(())
    }

    async fn seen(
        &self,
        target: RecordTypeId,
        ids: &[CellValue<'_>],
    ) -> Result<Vec<StoredValue>, PostgresError> {
        let statement = self.rules.visible_ids(target);
        self.session.read_values(&statement, &[SqlParameter::Keys(ids.to_vec())]).await
    }

    /// The records that are referred to must be visible.
    async fn check_targets(
        &self,
        record: RecordTypeId,
        values: &FieldValues,
        links: &FieldLinks,
    ) -> Result<(), PostgresError> {
        let rules = WriteRules { model: self.model, ..self.rules };
        let mut violations = Vec::new();
        for (field, target, ids) in rules.guarded_targets(record, values, links) {
            violations.extend(rules.unseen_targets(record, field, &ids, &self.seen(target, &ids).await?));
        }
        if violations.is_empty() { Ok(()) } else { Err(Error::Invalid(violations).into()) }
    }

    async fn check_created(
        &self,
        record: RecordTypeId,
        ids: &[CellValue<'_>],
        values: &FieldValues,
        links: &FieldLinks,
    ) -> Result<(), PostgresError> {
        let links: Vec<FieldId> = links.iter().map(|(field, _)| *field).collect();
        let fields = values.iter().map(|(field, _)| *field);
        self.run(&self.rules.after_create(record, ids.to_vec(), fields, &links)).await.map(drop)
    }

    /// What the records were.
    async fn check_updated(
        &self,
        record: RecordTypeId,
        ids: &[CellValue<'_>],
        (values, links): (&FieldValues, &FieldLinks),
        expected_version: Option<i64>,
    ) -> Result<CheckResult, PostgresError> {
        let fields: Vec<FieldId> = links.iter().map(|(field, _)| *field).collect();
        let records = CheckedRecords::Ids(ids.to_vec());
        let changed = (values, fields.as_slice());
        let check = self.rules.before(record, ChangeAction::Update, records, changed, expected_version);
        match self.run(&check).await? {
            missing @ (CheckResult::Missing | CheckResult::Hidden(_)) => Ok(missing),
            CheckResult::Passed(old) => {
                self.check_targets(record, values, links).await.map(|()| CheckResult::Passed(old))
            }
        }
    }
}

/// The same plan for the records that were checked, and its program.
fn narrowed(model: &Model, plan: &Plan, ids: &[StoredValue]) -> Result<(Plan, Program), Error> {
    let plan = plan.narrowed_to(model, ids.to_vec());
    let program = compile_plan(Dialect::Postgres, model, &plan)?;
    Ok((plan, program))
}

/// Another write came between finding records and checking them.
fn changed_meanwhile() -> Error {
    let reason = "another request changed these records at the same time; try again".to_owned();
    Error::Unavailable { reason, retry_after: Duration::from_secs(1) }
}
