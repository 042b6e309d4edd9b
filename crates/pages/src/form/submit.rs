//! Forms for new and changed records: how they are sent, and what becomes of them.

use axum::response::Response;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use trefoil_engine::{MissingFields, Operation};
use trefoil_http::client::ClientInfo;
use trefoil_http::errors::problem::{ErrorFormat, Problem};
use trefoil_http::form_pairs::{self, FormPairs};
use trefoil_model::RecordType;
use trefoil_model::error::{Error, Missing, Violation};
use trefoil_resources::field_values::FieldValues;
use trefoil_resources::form_input::{FormInput, FormValues, concerns_field};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::{IMPOSSIBLE_VERSION, see_other, write_problem};

use crate::Pages;
use crate::flash::{self, FlashKind};
use crate::form::editable_record::EditableRecord;
use crate::form::keys;
use crate::form::page::{FormError, FormPage};

impl Pages {
    /// What the query says is filled in already: `/orders/new?userId=1`.
    pub async fn new_form_page(&self, request: &ResourceRequest<'_>) -> Result<Response, Problem> {
        let mut given =
            form_pairs::parse_urlencoded(request.head.uri.query().unwrap_or_default(), "the query")?;
        given.retain(|(_, value)| !value.is_empty());
        let filled = FormInput::from_pairs(request.record(), &given);
        self.form_page(
            request,
            FormPage { edited: None, input: FormInput { version: None, ..filled }, error: FormError::None },
        )
        .await
    }

    pub async fn edit_form_page(&self, request: &ResourceRequest<'_>, id: i64) -> Result<Response, Problem> {
        let Some(kept) = self.editable_record(request, id).await? else {
            return Err(request.not_found(request.collection.record, id));
        };
        let mut filled = kept.to_form_input(request.resources.engine.model(), request.record());
        filled.version = Some(kept.version.to_string());
        self.form_page(request, FormPage { edited: Some((id, kept)), input: filled, error: FormError::None })
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
        let filled = FormInput::from_pairs(request.record(), pairs);
        if filled.button.is_some() {
            return self.apply_button(request, None, filled).await;
        }
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, filled.key.as_deref(), pairs);
        let meant = filled.read_values(request.resources.engine.model(), request.record());
        let done = match checked_fields(request, meant, MissingFields::Reset) {
            Ok(fields) => {
                keys::write_once(
                    request,
                    request.create_operation(fields, &request.collection.full_shape.selection),
                    key,
                )
                .await
            }
            Err(error) => Err(error),
        };
        match done {
            Ok(done) => {
                let mut response = done.mark_replayed(see_other(&request.collection.path));
                set_flash(request, &mut response, FlashKind::Created, done.written.id);
                Ok(response)
            }
            Err(error) => self.form_with_errors(request, None, filled, error).await,
        }
    }

    pub async fn submit_edit(
        &self,
        request: &ResourceRequest<'_>,
        id: i64,
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
        id: i64,
        pairs: &FormPairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let filled = FormInput::from_pairs(request.record(), pairs);
        if filled.button.is_some() {
            return self.apply_button(request, Some(id), filled).await;
        }
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, filled.key.as_deref(), pairs);
        let seen = OverwriteVersion::determine(request, id, &filled).await?;
        let meant = filled.read_values(request.resources.engine.model(), request.record());
        let (meant, absent) = self.changed_values(request, id, &seen, meant).await?;
        let expected = seen.version();
        let done = match checked_fields(request, meant, absent) {
            Ok(fields) => {
                keys::write_once(request, request.update_operation(id, fields, absent, expected), key).await
            }
            Err(error) => Err(error),
        };
        match (done, seen) {
            (Ok(done), _) => {
                let mut response =
                    done.mark_replayed(see_other(&format!("{}/{id}", request.collection.path)));
                set_flash(request, &mut response, FlashKind::Updated, id);
                Ok(response)
            }
            (Err(Error::Stale { .. }), OverwriteVersion::FromForm(_)) => {
                self.form_with_conflict(request, id, filled).await
            }
            (Err(Error::NotFound { what: Missing::Record { .. } }), OverwriteVersion::FromForm(_)) => {
                self.form_for_deleted(request, filled).await
            }
            (Err(error), OverwriteVersion::FromForm(_) | OverwriteVersion::FromHeaders(_)) => {
                self.form_with_errors(request, Some(id), filled, error).await
            }
        }
    }

    /// Where the form was made of the record as it still is, only what was changed in it is written.
    async fn changed_values(
        &self,
        request: &ResourceRequest<'_>,
        id: i64,
        seen: &OverwriteVersion,
        meant: FormValues,
    ) -> Result<(FormValues, MissingFields), Problem> {
        let OverwriteVersion::FromForm(version) = seen else { return Ok((meant, MissingFields::Reset)) };
        let kept = self.editable_record(request, id).await?.filter(|kept| kept.version == *version);
        let Some(kept) = kept else { return Ok((meant, MissingFields::Reset)) };
        let FormValues { fields, violations } = meant;
        let fields = kept.changed_fields(request.resources.engine.model(), request.record(), fields);
        Ok((FormValues { fields, violations }, MissingFields::Keep))
    }

    /// A button was pressed that only changes the form.
    async fn apply_button(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<i64>,
        mut filled: FormInput,
    ) -> Result<Response, Problem> {
        filled.apply_button(request.record());
        let of = self.edited_record(request, id).await?;
        self.form_page(request, FormPage { edited: of, input: filled, error: FormError::None }).await
    }

    /// The form with what is wrong with it; what is not the form's fault is an error page.
    async fn form_with_errors(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<i64>,
        filled: FormInput,
        error: Error,
    ) -> Result<Response, Problem> {
        let trouble = match error {
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
            | Error::Internal { .. }
            | Error::EventId { .. }
            | Error::Resolver { .. }) => return Err(write_problem(error)),
        };
        let of = self.edited_record(request, id).await?;
        self.form_page(request, FormPage { edited: of, input: filled.without_blank_groups(), error: trouble })
            .await
    }

    /// The record that a form is about.
    async fn edited_record(
        &self,
        request: &ResourceRequest<'_>,
        id: Option<i64>,
    ) -> Result<Option<(i64, EditableRecord)>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let kept = self.editable_record(request, id).await?;
        let kept = kept.ok_or_else(|| request.not_found(request.collection.record, id))?;
        Ok(Some((id, kept)))
    }

    async fn form_with_conflict(
        &self,
        request: &ResourceRequest<'_>,
        id: i64,
        mut filled: FormInput,
    ) -> Result<Response, Problem> {
        let Some(kept) = self.editable_record(request, id).await? else {
            return self.form_for_deleted(request, filled).await;
        };
        let theirs = kept.to_form_input(request.resources.engine.model(), request.record());
        filled.version = Some(kept.version.to_string());
        let trouble = FormError::Stale(Box::new(theirs));
        self.form_page(
            request,
            FormPage { edited: Some((id, kept)), input: filled.without_blank_groups(), error: trouble },
        )
        .await
    }

    /// Somebody has deleted what is being edited: what was typed can still become a new record.
    async fn form_for_deleted(
        &self,
        request: &ResourceRequest<'_>,
        mut filled: FormInput,
    ) -> Result<Response, Problem> {
        filled.version = None;
        self.form_page(
            request,
            FormPage { edited: None, input: filled.without_blank_groups(), error: FormError::Deleted },
        )
        .await
    }
}

/// The version that a form may overwrite, and who named it.
enum OverwriteVersion {
    /// `If-Match` and its kin, or nobody.
    FromHeaders(Option<i64>),
    FromForm(i64),
}

impl OverwriteVersion {
    async fn determine(
        request: &ResourceRequest<'_>,
        id: i64,
        filled: &FormInput,
    ) -> Result<OverwriteVersion, Problem> {
        let in_headers = [IF_MATCH, IF_NONE_MATCH].iter().any(|name| request.headers().contains_key(name));
        match &filled.version {
            // What is no version is none that the record is at.
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

/// The fields, if all that was typed stands for values; else everything that is wrong, in the order of the schema.
fn checked_fields(
    request: &ResourceRequest<'_>,
    meant: FormValues,
    absent: MissingFields,
) -> Result<FieldValues, Error> {
    let FormValues { fields, mut violations } = meant;
    if violations.is_empty() {
        return Ok(fields);
    }
    let (record, selection) = (request.collection.record, request.collection.full_shape.selection.clone());
    let operation = Operation::Update {
        record,
        id: 0,
        fields,
        missing_fields: absent,
        expected_version: None,
        selection,
    };
    let others = request.resources.engine.violations(operation).into_iter();
    let told = violations.clone();
    violations.extend(others.filter(|other| !told.iter().any(|known| same_field(known, other))));
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

fn set_flash(request: &ResourceRequest<'_>, response: &mut Response, deed: FlashKind, id: i64) {
    flash::set_cookie(
        response,
        request.head.extensions.get::<ClientInfo>(),
        deed,
        &request.collection.path,
        id,
    );
}
