//! The page with a form: controls, errors, conflict, and API examples of its input.

use axum::response::Response;
use http::{Method, StatusCode};

use trefoil_http::errors::problem::Problem;
use trefoil_http::monitoring::refusals::RequestRefusals;
use trefoil_model::RecordId;
use trefoil_model::access::AccessAction;
use trefoil_model::error::Violation;
use trefoil_resources::collection::record_path;
use trefoil_resources::forms::form_input::FormInput;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::examples::form::DisplayedForm;
use crate::form::closed_fields::closed_fields;
use crate::form::conflict::{mark_differences, mark_row_differences};
use crate::form::controls::ControlBuilder;
use crate::form::defaults::fill_defaults;
use crate::form::editable_record::EditableRecord;
use crate::form::field_hashes::{DisputedFields, field_hashes};
use crate::form::{errors, keys};
use crate::template_data::{ConflictView, ControlKind, ControlView, FormView, PageHead, PageLink};

/// The content of a form page.
pub struct FormPage {
    /// Id and stored record that is edited; `None` for a new record.
    pub edited: Option<(RecordId, EditableRecord)>,
    pub input: FormInput,
    pub error: FormError,
}

/// The reason why a form is shown again.
pub enum FormError {
    None,
    Invalid(Vec<Violation>),
    /// A unique value is taken by another record.
    Taken(Vec<Violation>),
    /// Someone else saved the record meanwhile, or some of those that belong to it.
    Stale(Box<SavedValues>),
    /// Someone else deleted the record.
    Deleted,
    /// The actor may not do this, because of these fields.
    Refused(StatusCode, Vec<Violation>, RequestRefusals),
}

/// What someone else saved while a form was edited.
pub struct SavedValues {
    pub input: FormInput,
    /// The lists with changed or deleted records, in words; empty if the record itself was changed.
    pub lists: Vec<String>,
    /// The fields that both changed; `None` if that is not known.
    pub disputed: Option<DisputedFields>,
}

impl FormError {
    fn status(&self) -> StatusCode {
        match self {
            FormError::None => StatusCode::OK,
            FormError::Invalid(_) => StatusCode::BAD_REQUEST,
            FormError::Taken(_) | FormError::Stale(_) => StatusCode::CONFLICT,
            FormError::Deleted => StatusCode::NOT_FOUND,
            FormError::Refused(status, ..) => *status,
        }
    }
}

impl Pages {
    pub async fn form_page(
        &self,
        request: &ResourceRequest<'_>,
        page: FormPage,
    ) -> Result<Response, Problem> {
        let (model, record, record_type) =
            (request.resources.engine.model(), request.record(), request.collection.record);
        let FormPage { edited, mut input, error } = page;
        let action = if edited.is_some() { AccessAction::Update } else { AccessAction::Create };
        let closed = closed_fields(&request.resources.engine, action, record_type);
        if edited.is_some() {
            // An id never changes.
            input.hidden_fields.push(record.id_field());
        } else {
            input.forget_stored_rows();
        }
        fill_defaults(model, record, &mut input, edited.is_none());
        input.close_fields(closed.clone());
        let choices = self.reference_choices(request.resources, record_type, &input).await?;
        let builder = ControlBuilder::new(model, record, &choices);
        let mut controls = builder.build_controls(record, &input);
        let mut lists = self.list_controls(request, edited.as_ref(), &mut input).await?;
        let error = match error {
            FormError::Stale(mut saved) => {
                saved.input.close_fields(closed);
                let choices = self.reference_choices(request.resources, record_type, &saved.input).await?;
                let builder = ControlBuilder::new(model, record, &choices);
                let is_disputed =
                    |name: &str| saved.disputed.as_ref().is_none_or(|disputed| disputed.has(name));
                mark_differences(&mut controls, &builder.build_controls(record, &saved.input), &is_disputed);
                let saved_lists = self.list_controls(request, edited.as_ref(), &mut saved.input).await?;
                mark_row_differences(&mut lists, &saved_lists);
                FormError::Stale(saved)
            }
            other @ (FormError::None
            | FormError::Invalid(_)
            | FormError::Taken(_)
            | FormError::Deleted
            | FormError::Refused(..)) => other,
        };
        controls.append(&mut lists);
        if matches!(error, FormError::None) && edited.is_none() && request.head.method == Method::GET {
            focus_first(&mut controls);
        }
        let violations = match &error {
            FormError::Invalid(violations)
            | FormError::Taken(violations)
            | FormError::Refused(_, violations, _) => violations.as_slice(),
            FormError::None | FormError::Stale(_) | FormError::Deleted => &[],
        };
        let complaints = errors::attach_errors(&mut controls, violations);
        let (form, parents) =
            self.form_view(request, edited.as_ref(), &input, &error, (controls, complaints));
        let here = if edited.is_some() { "Edit".to_owned() } else { form.heading.clone() };
        let mut head = PageHead::new(here, &self.labels_of(record_type).resource.path, parents);
        head.title = form.heading.clone();
        let displayed = DisplayedForm { input: &input, violations, choices: &choices };
        let examples = self.example_builder(request.resources, request.head);
        head.ways = Some(match &edited {
            Some((id, stored)) => examples.update_examples(record_type, id, stored, &displayed),
            None => examples.create_examples(record_type, Some(&displayed)),
        });
        let mut response = self.page_response(request.headers(), error.status(), head, "form", &form)?;
        if let FormError::Refused(_, _, refusals) = error {
            refusals.attach(&mut response);
        }
        Ok(response)
    }

    /// The form, and links to its parent pages.
    fn form_view(
        &self,
        request: &ResourceRequest<'_>,
        edited: Option<&(RecordId, EditableRecord)>,
        input: &FormInput,
        error: &FormError,
        (controls, complaints): (Vec<ControlView>, Vec<PageLink>),
    ) -> (FormView, Vec<PageLink>) {
        let resource = &self.labels_of(request.collection.record).resource;
        let (noun, path) = (&resource.noun, &resource.path);
        let mut parents = vec![PageLink { label: resource.plural.clone(), href: path.clone() }];
        let (heading, action, submit) = match edited {
            None => (format!("New {noun}"), path.clone(), format!("Create {noun}")),
            Some((id, EditableRecord { title, .. })) => {
                let own = record_path(path, id);
                parents.push(PageLink { label: title.clone(), href: own.clone() });
                (format!("Edit {title}"), own, format!("Save {noun}"))
            }
        };
        let cancel = parents.last().map_or_else(|| path.clone(), |link| link.href.clone());
        let conflict = conflict_view(noun, error, &parents);
        let submit = if is_disputed(error) { "Save my changes anyway".to_owned() } else { submit };
        let version = input.version.as_ref().and_then(|version| version.trim().parse().ok());
        let (key, model) = (keys::new_key(), request.resources.engine.model());
        let base = edited.filter(|_| version.is_some()).map(|(_, stored)| {
            input.base.clone().unwrap_or_else(|| field_hashes(model, request.record(), stored))
        });
        let form =
            FormView { heading, action, submit, cancel, key, version, base, controls, complaints, conflict };
        (form, parents)
    }
}

/// Puts the focus of a new form where typing begins.
fn focus_first(controls: &mut [ControlView]) {
    let Some(first) = controls.iter_mut().find(|control| control.kind != ControlKind::Hidden) else { return };
    match first.children.is_empty() {
        true => first.focus = true,
        false => focus_first(&mut first.children),
    }
}

/// True if what the form has is not what somebody else saved in the same field.
fn is_disputed(error: &FormError) -> bool {
    match error {
        FormError::Stale(saved) => {
            saved.disputed.as_ref().is_none_or(|disputed| !disputed.is_empty()) || !saved.lists.is_empty()
        }
        FormError::None
        | FormError::Invalid(_)
        | FormError::Taken(_)
        | FormError::Deleted
        | FormError::Refused(..) => false,
    }
}

fn conflict_view(noun: &str, error: &FormError, parents: &[PageLink]) -> Option<ConflictView> {
    let href = parents.last().map(|link| link.href.clone()).unwrap_or_default();
    match error {
        FormError::None | FormError::Invalid(_) | FormError::Taken(_) | FormError::Refused(..) => None,
        FormError::Stale(_) if !is_disputed(error) => Some(ConflictView {
            text: format!(
                "Somebody else saved this {noun} while you were editing it, so your changes are not saved yet. You changed different fields: the form contains their changes and yours."
            ),
            theirs: PageLink { label: "Keep the saved version".to_owned(), href },
        }),
        FormError::Stale(saved) => Some(ConflictView {
            text: format!(
                "Somebody else {} while you were editing it, so your changes are not saved yet. The form contains your values; where they differ, the saved value is shown below.",
                match saved.lists.join(" and ").as_str() {
                    "" => format!("saved this {noun}"),
                    lists => format!("changed {lists} of this {noun}"),
                }
            ),
            theirs: PageLink { label: "Keep the saved version".to_owned(), href },
        }),
        FormError::Deleted => Some(ConflictView {
            text: format!(
                "This {noun} was deleted while you were editing it. The form contains your values: you can create a new {noun} with them."
            ),
            theirs: PageLink { label: "Leave it deleted".to_owned(), href },
        }),
    }
}
