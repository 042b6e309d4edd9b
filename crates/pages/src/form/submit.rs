//! Shows and submits forms for new and edited records.

use axum::response::Response;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use trefoil_engine::MissingFields;
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::{ErrorFormat, Problem, error_status};
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_http::monitoring::refusals::RequestRefusals;
use trefoil_model::access::AccessAction;
use trefoil_model::error::{Error, MissingItem, PathSegment, Violation};
use trefoil_model::{RecordId, Value};
use trefoil_resources::collection::record_path;
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::forms::form_input::{ChildRow, FormInput, FormValues};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::{CompletedWrite, IMPOSSIBLE_VERSION, see_other, write_problem};

use crate::Pages;
use crate::flash::{self, FlashKind};
use crate::form::child_writes::{ChildWrites, is_row_conflict};
use crate::form::editable_record::{EditableRecord, ReadRows, StoredList};
use crate::form::field_hashes::merge_saved;
use crate::form::keys;
use crate::form::page::{FormError, FormPage, SavedValues};

impl Pages {
    /// The form for a new record, filled from the query: `/orders/new?userId=1`.
    pub async fn new_form_page(&self, request: &ResourceRequest<'_>) -> Result<Response, Problem> {
        let mut pairs =
            form_pairs::parse_urlencoded(request.head.uri.query().unwrap_or_default(), "the query")?;
        pairs.retain(|(_, value)| !value.is_empty());
        let input = FormInput::with_rows(request.resources.engine.model(), request.record(), &pairs)?;
        self.form_page(
            request,
            FormPage { edited: None, input: FormInput { version: None, ..input }, error: FormError::None },
        )
        .await
    }

    pub async fn edit_form_page(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
    ) -> Result<Response, Problem> {
        let (record, engine) = (request.collection.record, &request.resources.engine);
        let Some(stored) = self.editable_record(request, id, ReadRows::All).await? else {
            return Err(request.not_found(record, id));
        };
        engine.require_allowed(AccessAction::Update, record, id).await?;
        let input = stored.to_form_input(engine.model(), request.record());
        self.form_page(
            request,
            FormPage { edited: Some((id.clone(), stored)), input, error: FormError::None },
        )
        .await
    }

    pub async fn submit_new(
        &self,
        request: &ResourceRequest<'_>,
        pairs: &FormPairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        self.try_create(request, pairs, bytes).await.map_err(|problem| problem.with_format(ErrorFormat::Html))
    }

    async fn try_create(
        &self,
        request: &ResourceRequest<'_>,
        pairs: &FormPairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let (model, record) = (request.resources.engine.model(), request.record());
        let input = FormInput::with_rows(model, record, pairs)?;
        if input.button.is_some() {
            return self.apply_button(request, None, input).await;
        }
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, input.key.as_deref(), pairs);
        let children = ChildWrites::read(model, record, &input, None);
        let values = input.read_values(model, record);
        let result = match checked_fields(request, None, values, MissingFields::Reset, &children) {
            Ok(fields) => {
                let selection = &request.collection.stored_shape.selection;
                let operation = request.create_operation(fields, selection).with_related(children.related());
                let written = keys::write_once(request, operation, key).await;
                written.map_err(|error| children.place_error(error))
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(write) => {
                let mut response = write.mark_replayed(see_other(&request.collection.path));
                set_flash(request, &mut response, FlashKind::Created, shown_id(&write));
                Ok(response)
            }
            Err(error) => self.form_with_errors(request, None, input, error).await,
        }
    }

    pub async fn submit_edit(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        pairs: &FormPairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        self.try_replace(request, id, pairs, bytes)
            .await
            .map_err(|problem| problem.with_format(ErrorFormat::Html))
    }

    async fn try_replace(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        pairs: &FormPairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let (model, record) = (request.resources.engine.model(), request.record());
        let input = FormInput::with_rows(model, record, pairs)?;
        if input.button.is_some() {
            return self.apply_button(request, Some(id), input).await;
        }
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, input.key.as_deref(), pairs);
        let overwrite = OverwriteVersion::determine(request, id, &input).await?;
        let mut values = input.read_values(model, record);
        values.fields.retain(|(field, _)| *field != record.id_field());
        let is_read = matches!(overwrite, OverwriteVersion::FromForm(_)) || !input.child_rows.is_empty();
        let stored = match is_read {
            true => self.editable_record(request, id, ReadRows::Named(&input)).await?,
            false => None,
        };
        let (values, missing_fields) = changed_values(request, stored.as_ref(), &overwrite, values);
        let children = match &stored {
            Some(stored) => ChildWrites::read(model, record, &input, Some(stored)),
            None => ChildWrites::none(model, record),
        };
        // Not an error yet: the store must first look for the result of an earlier request with the same key.
        let expected = if children.has_conflict { Some(IMPOSSIBLE_VERSION) } else { overwrite.version() };
        let result = match checked_fields(request, Some(id), values, missing_fields, &children) {
            Ok(fields) => {
                let operation = request.update_operation(id, fields, missing_fields, expected);
                let operation = operation.with_related(children.related());
                let written = keys::write_once(request, operation, key).await;
                written.map_err(|error| children.place_error(error))
            }
            Err(error) => Err(error),
        };
        match (result, overwrite) {
            (Ok(write), _) => {
                let shown = shown_id(&write);
                let list = &request.collection.path;
                let path = shown.map_or_else(|| list.clone(), |id| record_path(list, id));
                let mut response = write.mark_replayed(see_other(&path));
                set_flash(request, &mut response, FlashKind::Updated, shown);
                Ok(response)
            }
            (Err(Error::Stale { .. }), OverwriteVersion::FromForm(_)) => {
                self.form_with_conflict(request, id, input).await
            }
            (Err(Error::Stale { .. }), OverwriteVersion::FromHeaders(_)) if children.has_conflict => {
                self.form_with_conflict(request, id, input).await
            }
            (Err(error), _) if is_row_conflict(&error) => self.form_with_conflict(request, id, input).await,
            (
                Err(Error::NotFound { what: MissingItem::Record { .. }, .. }),
                OverwriteVersion::FromForm(_),
            ) => self.form_for_deleted(request, input).await,
            (Err(error), OverwriteVersion::FromForm(_) | OverwriteVersion::FromHeaders(_)) => {
                self.form_with_errors(request, Some(id), input, error).await
            }
        }
    }

    /// Handles a button that only changes the form.
    async fn apply_button(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<&RecordId>,
        mut input: FormInput,
    ) -> Result<Response, Problem> {
        input.apply_button(request.resources.engine.model(), request.record());
        self.form_again(request, id, input, FormError::None).await
    }

    /// The form with its errors; an error that the form did not cause becomes an error page.
    async fn form_with_errors(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<&RecordId>,
        input: FormInput,
        error: Error,
    ) -> Result<Response, Problem> {
        let error = match error {
            Error::Invalid(violations) => FormError::Invalid(violations),
            Error::Conflict(violations) => FormError::Taken(violations),
            error @ (Error::Unauthenticated { .. } | Error::Forbidden { .. }) => refused_form(&error),
            error @ (Error::NotFound { .. }
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::OutcomeUnknown
            | Error::Cancelled
            | Error::RolledBack
            | Error::Internal { .. }
            | Error::EventId { .. }
            | Error::Resolver { .. }) => return Err(write_problem(error)),
        };
        self.form_again(request, id, input.without_blank_groups(), error).await
    }

    /// The form with what was typed. If someone deleted the record that it edits, it becomes a form for a new one.
    async fn form_again(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<&RecordId>,
        input: FormInput,
        error: FormError,
    ) -> Result<Response, Problem> {
        let Some(id) = id else {
            return self.form_page(request, FormPage { edited: None, input, error }).await;
        };
        match self.editable_record(request, id, ReadRows::All).await? {
            Some(stored) => {
                self.form_page(request, FormPage { edited: Some((id.clone(), stored)), input, error }).await
            }
            None if input.version.is_some() => self.form_for_deleted(request, input).await,
            None => Err(request.not_found(request.collection.record, id)),
        }
    }

    async fn form_with_conflict(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        mut input: FormInput,
    ) -> Result<Response, Problem> {
        let read = self.editable_record(request, id, ReadRows::Named(&input)).await?;
        let Some(stored) = read else { return self.form_for_deleted(request, input).await };
        let saved = stored.to_form_input(request.resources.engine.model(), request.record());
        let is_changed = input.version.is_some() && input.version != saved.version;
        let changed_lists = self.refresh_rows(&mut input, &stored);
        let lists = if is_changed { Vec::new() } else { changed_lists };
        input.version = saved.version.clone();
        let (model, record) = (request.resources.engine.model(), request.record());
        let disputed = merge_saved(model, record, &mut input, &stored);
        input.base = None;
        let error = FormError::Stale(Box::new(SavedValues { input: saved, lists, disputed }));
        self.form_page(
            request,
            FormPage { edited: Some((id.clone(), stored)), input: input.without_blank_groups(), error },
        )
        .await
    }

    /// Brings the rows to the saved versions and returns the lists, in words, with records that someone else changed or
    /// deleted. The latter become new records if they are saved.
    fn refresh_rows(&self, input: &mut FormInput, stored: &EditableRecord) -> Vec<String> {
        let mut changed_lists = Vec::new();
        for StoredList { list, rows: saved, .. } in &stored.lists {
            let Some(rows) = input.child_rows.get_mut(&list.field) else { continue };
            let mut is_changed = false;
            for row in rows.iter_mut().filter(|row| row.id.is_some()) {
                let found = saved.iter().find(|(id, _)| Some(id.to_string()) == row.id);
                let version = found.map(|(_, saved)| saved.version.to_string());
                is_changed |= row.input.version != version;
                row.is_lost = version.is_none();
                row.input.version = version;
            }
            rows.retain(|row| !(row.is_lost && row.is_deleted));
            rows.iter_mut().filter(|row| row.is_lost).for_each(ChildRow::forget_record);
            if is_changed {
                changed_lists.push(self.labels_of(list.record).plural_noun.clone());
            }
        }
        changed_lists
    }

    /// The form after someone else deleted the record: the input can be submitted as a new record.
    async fn form_for_deleted(
        &self,
        request: &ResourceRequest<'_>,
        mut input: FormInput,
    ) -> Result<Response, Problem> {
        input.version = None;
        self.form_page(
            request,
            FormPage { edited: None, input: input.without_blank_groups(), error: FormError::Deleted },
        )
        .await
    }
}

/// The version that a form may overwrite.
enum OverwriteVersion {
    /// From `If-Match` or `If-None-Match`, if present.
    FromHeaders(Option<i64>),
    /// From the hidden control of the form.
    FromForm(i64),
}

impl OverwriteVersion {
    async fn determine(
        request: &ResourceRequest<'_>,
        id: &RecordId,
        input: &FormInput,
    ) -> Result<OverwriteVersion, Problem> {
        let in_headers = [IF_MATCH, IF_NONE_MATCH].iter().any(|name| request.headers().contains_key(name));
        match &input.version {
            // A malformed version matches no record.
            Some(version) if !in_headers => {
                Ok(OverwriteVersion::FromForm(version.trim().parse().unwrap_or(IMPOSSIBLE_VERSION)))
            }
            Some(_) | None => Ok(OverwriteVersion::FromHeaders(request.expected_version(id).await?)),
        }
    }

    fn version(&self) -> Option<i64> {
        match self {
            OverwriteVersion::FromHeaders(version) => *version,
            OverwriteVersion::FromForm(version) => Some(*version),
        }
    }
}

/// If the record is still the one that the form was made of, only the changed fields are written.
fn changed_values(
    request: &ResourceRequest<'_>,
    stored: Option<&EditableRecord>,
    overwrite: &OverwriteVersion,
    values: FormValues,
) -> (FormValues, MissingFields) {
    let OverwriteVersion::FromForm(version) = overwrite else { return (values, MissingFields::Reset) };
    let stored = stored.filter(|stored| stored.version == *version);
    let Some(stored) = stored else { return (values, MissingFields::Reset) };
    let FormValues { fields, violations } = values;
    let fields = stored.changed_fields(request.resources.engine.model(), request.record(), fields);
    (FormValues { fields, violations }, MissingFields::Keep)
}

/// The fields, or all violations in the order of the page if some text does not parse. What the actor may never do goes
/// before them.
fn checked_fields(
    request: &ResourceRequest<'_>,
    id: Option<&RecordId>,
    values: FormValues,
    missing_fields: MissingFields,
    children: &ChildWrites<'_>,
) -> Result<FieldValues, Error> {
    let FormValues { fields, mut violations } = values;
    violations.extend(children.violations.iter().cloned());
    if violations.is_empty() {
        return Ok(fields);
    }
    // What does not parse is given, too.
    let record = request.record();
    let unread = violations.iter().filter_map(|violation| match violation.path.first() {
        Some(PathSegment::Field(name)) => Some((record.find_input_field(name)?, Value::Null)),
        Some(PathSegment::Index(_)) | None => None,
    });
    let engine = &request.resources.engine;
    match id {
        Some(id) => {
            let unread = request.update_operation(id, unread.collect(), MissingFields::Keep, None);
            engine.check_access(&unread)?;
            let planned = request.update_operation(id, fields.clone(), missing_fields, None);
            engine.check_access(&planned.with_related(children.related()))?;
        }
        None => {
            let given = fields.iter().cloned().chain(unread).collect();
            let planned = request.create_operation(given, &request.collection.stored_shape.selection);
            engine.check_access(&planned.with_related(children.related()))?;
        }
    }
    let operation = request.update_operation(&RecordId::Number(0), fields, missing_fields, None);
    let others = request.resources.engine.violations(operation.with_related(children.related()));
    let others = children.place(others).into_iter();
    let reported = violations.clone();
    let is_reported = |other: &Violation| reported.iter().any(|known| children.is_same_field(known, other));
    violations.extend(others.filter(|other| !is_reported(other)));
    children.sort(&mut violations);
    Err(Error::Invalid(violations))
}

/// What was typed is kept: it can be sent again by someone who may.
fn refused_form(error: &Error) -> FormError {
    let mut violations = error.violations().to_vec();
    if violations.is_empty() {
        violations.push(Violation { path: Vec::new(), code: "FORBIDDEN", message: error.to_string() });
    }
    let mut refusals = RequestRefusals::default();
    refusals.add(error.code(), error.refused_by());
    FormError::Refused(error_status(error), violations, refusals)
}

/// The record of a page to lead to: who wrote it may not see it any more.
fn shown_id(write: &CompletedWrite) -> Option<&RecordId> {
    (!write.record.is_unreadable).then_some(&write.record.id)
}

fn set_flash(request: &ResourceRequest<'_>, response: &mut Response, kind: FlashKind, id: Option<&RecordId>) {
    flash::set_cookie(
        response,
        request.head.extensions.get::<ClientInfo>(),
        kind,
        &request.collection.path,
        id,
    );
}
