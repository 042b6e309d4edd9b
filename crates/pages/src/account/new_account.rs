//! Forms for a new account: its fields, and a password.

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use trefoil_engine::Engine;
use trefoil_http::errors::problem::Problem;
use trefoil_model::access::{AccessAction, AccessVerdict};
use trefoil_model::error::Violation;
use trefoil_model::{FieldId, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::forms::form_input::FormInput;

use crate::Pages;
use crate::account::account_views::SignView;
use crate::account::sign_pages::{form_view, hidden_control, new_passwords};
use crate::form::closed_fields::closed_fields;
use crate::form::controls::ControlBuilder;
use crate::form::defaults::fill_defaults;
use crate::form::errors;
use crate::template_data::ControlView;

/// The form for a new account.
pub struct NewAccountForm<'f> {
    pub heading: &'f str,
    pub texts: Vec<String>,
    pub action: &'f str,
    /// The one-time link that it uses up.
    pub token: Option<&'f str>,
    pub record: RecordTypeId,
    /// The field that people sign in with.
    pub login: FieldId,
    pub input: FormInput,
    pub violations: Vec<Violation>,
    /// What is wrong with the password.
    pub mistake: Option<String>,
    pub refusal: Option<String>,
    pub least_length: usize,
}

/// The fields that whoever makes an account certainly cannot give.
pub fn closed_to_sign_up(engine: &Engine, record: RecordTypeId) -> Vec<FieldId> {
    let mut closed = closed_fields(engine, AccessAction::Create, record);
    let Some(view) = engine.access_view() else { return closed };
    let is_certain = |position: usize| {
        let rules = view.of_type(record).fields.get(position);
        rules.is_none_or(|rules| rules.create.verdict() == AccessVerdict::Yes)
    };
    let fields = 0..engine.model().record(record).fields.len();
    closed.extend(fields.filter(|position| !is_certain(*position)).map(FieldId));
    closed.sort_unstable();
    closed.dedup();
    closed
}

impl Pages {
    /// The page with the form. What is offered to choose from is what `resources` let their actor see.
    pub async fn new_account_page(
        &self,
        headers: &HeaderMap,
        resources: &ServedResources,
        status: StatusCode,
        mut form: NewAccountForm<'_>,
    ) -> Result<Response, Problem> {
        let model = resources.engine.model();
        let record = model.record(form.record);
        fill_defaults(model, record, &mut form.input, true);
        let choices = self.reference_choices(resources, form.record, &form.input).await?;
        let mut controls = ControlBuilder::new(model, record, &choices).build_controls(record, &form.input);
        let login = &record.field(form.login).input_name;
        for control in controls.iter_mut().filter(|control| control.name == *login) {
            control.autocomplete = Some("username");
        }
        let mut complaints = errors::attach_errors(&mut controls, &form.violations);
        let token: Vec<ControlView> =
            form.token.map(|token| hidden_control("token", token)).into_iter().collect();
        let (passwords, more) = new_passwords(form.least_length, form.mistake, form.refusal);
        complaints.extend(more);
        let controls = token.into_iter().chain(controls).chain(passwords).collect();
        let view = SignView {
            heading: form.heading.to_owned(),
            texts: form.texts,
            form: Some(form_view("Make account", form.action, controls, complaints)),
            ..SignView::default()
        };
        self.sign_page(headers, status, view)
    }
}
