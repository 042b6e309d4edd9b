//! Shows and submits forms for new and edited records.

use axum::response::Response;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use trefoil_engine::{MissingFields, Operation};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_model::error::{Error, MissingItem, Violation};
use trefoil_model::{RecordId, RecordType};
use trefoil_resources::collection::record_path;
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::forms::form_input::{FormInput, FormValues, concerns_field};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::{IMPOSSIBLE_VERSION, see_other, write_problem};

use crate::Pages;
use crate::flash::{self, FlashKind};
use crate::form::editable_record::EditableRecord;
use crate::form::keys;
use crate::form::page::{FormError, FormPage};

impl Pages {
    /// The form for a new record, filled from the query: `/orders/new?userId=1`.
    pub async fn new_form_page(&self, request: &ResourceRequest<'_>) -> Result<Response, Problem> {
        let mut pairs =
            form_pairs::parse_urlencoded(request.head.uri.query().unwrap_or_default(), "the query")?;
        pairs.retain(|(_, value)| !value.is_empty());
        let input = FormInput::from_pairs(request.record(), &pairs);
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
        let Some(stored) = self.editable_record(request, id).await? else {
            return Err(request.not_found(request.collection.record, id));
        };
        let mut input = stored.to_form_input(request.resources.engine.model(), request.record());
        input.version = Some(stored.version.to_string());
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
        let input = FormInput::from_pairs(request.record(), pairs);
        if input.button.is_some() {
            return self.apply_button(request, None, input).await;
        }
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, input.key.as_deref(), pairs);
        let values = input.read_values(request.resources.engine.model(), request.record());
        let result = match checked_fields(request, values, MissingFields::Reset) {
            Ok(fields) => {
                keys::write_once(
                    request,
                    request.create_operation(fields, &request.collection.stored_shape.selection),
                    key,
                )
                .await
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(write) => {
                let mut response = write.mark_replayed(see_other(&request.collection.path));
                set_flash(request, &mut response, FlashKind::Created, &write.record.id);
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
        let input = FormInput::from_pairs(request.record(), pairs);
        if input.button.is_some() {
            return self.apply_button(request, Some(id), input).await;
        }
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, input.key.as_deref(), pairs);
        let overwrite = OverwriteVersion::determine(request, id, &input).await?;
        let mut values = input.read_values(request.resources.engine.model(), request.record());
        values.fields.retain(|(field, _)| *field != request.record().id_field());
        let (values, missing_fields) = self.changed_values(request, id, &overwrite, values).await?;
        let expected = overwrite.version();
        let result = match checked_fields(request, values, missing_fields) {
            Ok(fields) => {
                keys::write_once(request, request.update_operation(id, fields, missing_fields, expected), key)
                    .await
            }
            Err(error) => Err(error),
        };
        match (result, overwrite) {
            (Ok(write), _) => {
                let mut response = write.mark_replayed(see_other(&record_path(&request.collection.path, id)));
                set_flash(request, &mut response, FlashKind::Updated, id);
                Ok(response)
            }
            (Err(Error::Stale { .. }), OverwriteVersion::FromForm(_)) => {
                self.form_with_conflict(request, id, input).await
            }
            (Err(Error::NotFound { what: MissingItem::Record { .. } }), OverwriteVersion::FromForm(_)) => {
                self.form_for_deleted(request, input).await
            }
            (Err(error), OverwriteVersion::FromForm(_) | OverwriteVersion::FromHeaders(_)) => {
                self.form_with_errors(request, Some(id), input, error).await
            }
        }
    }

    /// If the record is still the one that the form was made of, only the changed fields are written.
    async fn changed_values(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        overwrite: &OverwriteVersion,
        values: FormValues,
    ) -> Result<(FormValues, MissingFields), Problem> {
        let OverwriteVersion::FromForm(version) = overwrite else {
            return Ok((values, MissingFields::Reset));
        };
        let stored = self.editable_record(request, id).await?.filter(|stored| stored.version == *version);
        let Some(stored) = stored else { return Ok((values, MissingFields::Reset)) };
        let FormValues { fields, violations } = values;
        let fields = stored.changed_fields(request.resources.engine.model(), request.record(), fields);
        Ok((FormValues { fields, violations }, MissingFields::Keep))
    }

    /// Handles a button that only changes the form.
    async fn apply_button(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<&RecordId>,
        mut input: FormInput,
    ) -> Result<Response, Problem> {
        input.apply_button(request.record());
        let edited = self.edited_record(request, id).await?;
        self.form_page(request, FormPage { edited, input, error: FormError::None }).await
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
        let edited = self.edited_record(request, id).await?;
        self.form_page(request, FormPage { edited, input: input.without_blank_groups(), error }).await
    }

    /// The record that a form edits.
    async fn edited_record(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<&RecordId>,
    ) -> Result<Option<(RecordId, EditableRecord)>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let stored = self.editable_record(request, id).await?;
        let stored = stored.ok_or_else(|| request.not_found(request.collection.record, id))?;
        Ok(Some((id.clone(), stored)))
    }

    async fn form_with_conflict(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        mut input: FormInput,
    ) -> Result<Response, Problem> {
        let Some(stored) = self.editable_record(request, id).await? else {
            return self.form_for_deleted(request, input).await;
        };
        let saved = stored.to_form_input(request.resources.engine.model(), request.record());
        input.version = Some(stored.version.to_string());
        let error = FormError::Stale(Box::new(saved));
        self.form_page(
            request,
            FormPage { edited: Some((id.clone(), stored)), input: input.without_blank_groups(), error },
        )
        .await
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

/// The fields, or all violations in schema order if some text does not parse.
fn checked_fields(
    request: &ResourceRequest<'_>,
    values: FormValues,
    missing_fields: MissingFields,
) -> Result<FieldValues, Error> {
    let FormValues { fields, mut violations } = values;
    if violations.is_empty() {
        return Ok(fields);
    }
    let (record, selection) = (request.collection.record, request.collection.stored_shape.selection.clone());
    let id = RecordId::Number(0);
    let (filled_fields, expected_version) = (Vec::new(), None);
    let operation =
        Operation::Update { record, id, fields, filled_fields, missing_fields, expected_version, selection };
    let others = request.resources.engine.violations(operation).into_iter();
    let reported = violations.clone();
    violations.extend(others.filter(|other| !reported.iter().any(|known| same_field(known, other))));
    violations.sort_by_key(|violation| field_position(request.record(), violation));
    Err(Error::Invalid(violations))
}

fn same_field(one: &Violation, other: &Violation) -> bool {
    one.path.first() == other.path.first()
}

fn field_position(record: &RecordType, violation: &Violation) -> usize {
    let found = record.fields.iter().position(|field| concerns_field(violation, &field.input_name));
    found.unwrap_or(record.fields.len())
}

fn set_flash(request: &ResourceRequest<'_>, response: &mut Response, kind: FlashKind, id: &RecordId) {
    flash::set_cookie(
        response,
        request.head.extensions.get::<ClientInfo>(),
        kind,
        &request.collection.path,
        id,
    );
}
