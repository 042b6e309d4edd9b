//! A form laid out: its controls with what they hold, what is wrong with them, and what to press.

use axum::response::Response;
use http::StatusCode;

use trefoil_http::errors::problem::Problem;
use trefoil_model::error::Violation;
use trefoil_model::{Field, FieldId, FieldKind, Model, RecordType};
use trefoil_resources::control_tree::ControlNode;
use trefoil_resources::form_input::FormInput;
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::examples::form::DisplayedForm;
use crate::form::conflict::mark_differences;
use crate::form::controls::ControlBuilder;
use crate::form::editable_record::EditableRecord;
use crate::form::value_texts::{MAX_EMBEDDED_DEPTH, value_node};
use crate::form::{errors, keys};
use crate::view::{ConflictView, ControlView, FormView, PageHead, PageLink};

/// What a form page is made of.
pub struct FormPage {
    /// The record that is edited; none where a new one is to be made.
    pub edited: Option<(i64, EditableRecord)>,
    pub input: FormInput,
    pub error: FormError,
}

/// Why a form came back.
pub enum FormError {
    None,
    Invalid(Vec<Violation>),
    /// By another record.
    Taken(Vec<Violation>),
    /// Somebody else has saved this meanwhile.
    Stale(Box<FormInput>),
    /// Somebody else has deleted the record.
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
        sheet: FormPage,
    ) -> Result<Response, Problem> {
        let (model, record, of) =
            (request.resources.engine.model(), request.record(), request.collection.record);
        let FormPage { edited, input: mut filled, error: trouble } = sheet;
        fill_defaults(model, record, &mut filled, edited.is_none());
        let choices = self.reference_choices(request.resources, of, &filled).await?;
        let maker = ControlBuilder::new(model, record, &choices);
        let mut controls = maker.build_controls(record, &filled);
        if let FormError::Stale(theirs) = &trouble {
            let choices = self.reference_choices(request.resources, of, theirs).await?;
            mark_differences(
                &mut controls,
                &ControlBuilder::new(model, record, &choices).build_controls(record, theirs),
            );
        }
        let wrong = match &trouble {
            FormError::Invalid(violations) | FormError::Taken(violations) => violations.as_slice(),
            FormError::None | FormError::Stale(_) | FormError::Deleted => &[],
        };
        let complaints = errors::attach_errors(&mut controls, wrong);
        let (form, above) =
            self.form_view(request, edited.as_ref(), &filled, &trouble, (controls, complaints));
        let here = if edited.is_some() { "Edit".to_owned() } else { form.heading.clone() };
        let mut head = PageHead::new(here, &self.labels_of(of).resource.path, above);
        head.title = form.heading.clone();
        let draft = DisplayedForm { input: &filled, violations: wrong, choices: &choices };
        let guide = self.example_builder(request.resources, request.head);
        head.ways = Some(match &edited {
            Some((id, kept)) => guide.update_examples(of, *id, kept, &draft),
            None => guide.create_examples(of, Some(&draft)),
        });
        self.page_response(request.headers(), trouble.status(), head, "form", &form)
    }

    /// The form, and the pages above it.
    fn form_view(
        &self,
        request: &ResourceRequest<'_>,
        edited: Option<&(i64, EditableRecord)>,
        filled: &FormInput,
        trouble: &FormError,
        (controls, complaints): (Vec<ControlView>, Vec<PageLink>),
    ) -> (FormView, Vec<PageLink>) {
        let resource = &self.labels_of(request.collection.record).resource;
        let (noun, path) = (&resource.noun, &resource.path);
        let mut above = vec![PageLink { label: resource.plural.clone(), href: path.clone() }];
        let (heading, action, submit) = match edited {
            None => (format!("New {noun}"), path.clone(), format!("Create {noun}")),
            Some((id, EditableRecord { title, .. })) => {
                let own = format!("{path}/{id}");
                above.push(PageLink { label: title.clone(), href: own.clone() });
                (format!("Edit {title}"), own, format!("Save {noun}"))
            }
        };
        let cancel = above.last().map_or_else(|| path.clone(), |link| link.href.clone());
        let conflict = self::conflict_view(noun, trouble, &above);
        let submit =
            if matches!(trouble, FormError::Stale(_)) { "Save mine anyway".to_owned() } else { submit };
        let version = filled.version.as_ref().and_then(|version| version.trim().parse().ok());
        let key = keys::new_key();
        let form = FormView { heading, action, submit, cancel, key, version, controls, complaints, conflict };
        (form, above)
    }
}

fn conflict_view(noun: &str, trouble: &FormError, above: &[PageLink]) -> Option<ConflictView> {
    let href = above.last().map(|link| link.href.clone()).unwrap_or_default();
    match trouble {
        FormError::None | FormError::Invalid(_) | FormError::Taken(_) => None,
        FormError::Stale(_) => Some(ConflictView {
            text: format!(
                "Somebody else saved this {noun} while you were editing it, so nothing of yours is saved yet. \
                 Below is what you typed, and under it what they saved where that differs."
            ),
            theirs: PageLink { label: "Keep what was saved".to_owned(), href },
        }),
        FormError::Deleted => Some(ConflictView {
            text: format!(
                "This {noun} was deleted while you were editing it. What you typed is below: \
                 you can create a new {noun} with it."
            ),
            theirs: PageLink { label: "Leave it deleted".to_owned(), href },
        }),
    }
}

/// What was not filled in shows its default. A link of a record that is not shown stays as it is, so its control must
/// not appear: sent back blank it would unlink all.
fn fill_defaults(model: &Model, record: &RecordType, filled: &mut FormInput, is_new: bool) {
    for (position, field) in record.fields.iter().enumerate() {
        let id = FieldId(position);
        if !field.is_writable() || filled.nodes.contains_key(&id) {
            continue;
        }
        if matches!(field.kind, FieldKind::Link { .. }) {
            if !is_new {
                filled.hidden_fields.push(id);
            }
        } else if let Some(node) = default_node(model, field, 0) {
            filled.nodes.insert(id, node);
        }
    }
}

/// A value that must be there shows the defaults inside of it.
fn default_node(model: &Model, field: &Field, depth: usize) -> Option<ControlNode> {
    if let Some(default) = &field.default {
        return Some(value_node(model, &field.kind, default, depth));
    }
    let FieldKind::Embedded(name) = &field.kind else { return None };
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
