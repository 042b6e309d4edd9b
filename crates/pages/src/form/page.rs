//! The page with a form: controls, errors, conflict, and API examples of its input.

use axum::response::Response;
use http::StatusCode;

use trefoil_http::errors::problem::Problem;
use trefoil_model::error::Violation;
use trefoil_model::{Field, FieldId, Model, RecordId, RecordType, ValueType};
use trefoil_resources::collection::record_path;
use trefoil_resources::forms::form_input::FormInput;
use trefoil_resources::forms::form_tree::ControlNode;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::examples::form::DisplayedForm;
use crate::form::conflict::mark_differences;
use crate::form::controls::ControlBuilder;
use crate::form::editable_record::EditableRecord;
use crate::form::value_texts::{MAX_EMBEDDED_DEPTH, value_node};
use crate::form::{errors, keys};
use crate::template_data::{ConflictView, ControlView, FormView, PageHead, PageLink};

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
    /// Someone else saved the record meanwhile, with these values.
    Stale(Box<FormInput>),
    /// Someone else deleted the record.
    Deleted,
}

impl FormError {
    fn status(&self) -> StatusCode {
        match self {
            FormError::None => StatusCode::OK,
            FormError::Invalid(_) => StatusCode::BAD_REQUEST,
            FormError::Taken(_) | FormError::Stale(_) => StatusCode::CONFLICT,
            FormError::Deleted => StatusCode::NOT_FOUND,
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
        if edited.is_some() {
            // An id never changes.
            input.hidden_fields.push(record.id_field());
        }
        fill_defaults(model, record, &mut input, edited.is_none());
        let choices = self.reference_choices(request.resources, record_type, &input).await?;
        let builder = ControlBuilder::new(model, record, &choices);
        let mut controls = builder.build_controls(record, &input);
        if let FormError::Stale(saved) = &error {
            let choices = self.reference_choices(request.resources, record_type, saved).await?;
            mark_differences(
                &mut controls,
                &ControlBuilder::new(model, record, &choices).build_controls(record, saved),
            );
        }
        let violations = match &error {
            FormError::Invalid(violations) | FormError::Taken(violations) => violations.as_slice(),
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
        self.page_response(request.headers(), error.status(), head, "form", &form)
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
        let submit =
            if matches!(error, FormError::Stale(_)) { "Save my changes anyway".to_owned() } else { submit };
        let version = input.version.as_ref().and_then(|version| version.trim().parse().ok());
        let key = keys::new_key();
        let form = FormView { heading, action, submit, cancel, key, version, controls, complaints, conflict };
        (form, parents)
    }
}

fn conflict_view(noun: &str, error: &FormError, parents: &[PageLink]) -> Option<ConflictView> {
    let href = parents.last().map(|link| link.href.clone()).unwrap_or_default();
    match error {
        FormError::None | FormError::Invalid(_) | FormError::Taken(_) => None,
        FormError::Stale(_) => Some(ConflictView {
            text: format!(
                "Somebody else saved this {noun} while you were editing it, so your changes are not saved yet. The form contains your values; where they differ, the saved value is shown below."
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

/// Fills empty controls with defaults. A link field of an edited record that is not in the input has too many records to
/// show: its control is hidden, because a blank one would remove all links.
fn fill_defaults(model: &Model, record: &RecordType, input: &mut FormInput, is_new: bool) {
    for (position, field) in record.fields.iter().enumerate() {
        let id = FieldId(position);
        if !field.is_writable() || input.nodes.contains_key(&id) {
            continue;
        }
        if field.kind.is_link() {
            if !is_new {
                input.hidden_fields.push(id);
            }
        } else if let Some(node) = default_node(model, field, 0) {
            input.nodes.insert(id, node);
        }
    }
}

/// The default of a field; for a required embedded value, the defaults of its fields.
fn default_node(model: &Model, field: &Field, depth: usize) -> Option<ControlNode> {
    if let Some(default) = &field.default {
        return Some(value_node(model, &field.kind, default, depth));
    }
    let Some(ValueType::Embedded(name)) = field.kind.value_type() else { return None };
    if !field.required || depth >= MAX_EMBEDDED_DEPTH {
        return None;
    }
    let mut node = ControlNode::default();
    for inner in &model.embedded.get(name)?.fields {
        if let Some(child) = default_node(model, inner, depth + 1) {
            node.children.insert(inner.name.clone(), child);
        }
    }
    Some(node)
}
