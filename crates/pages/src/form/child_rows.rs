//! The controls of the records that belong to the record of a form: a row for each.

use trefoil_engine::Engine;
use trefoil_model::access::AccessAction;
use trefoil_model::error::Result;
use trefoil_model::{Model, RecordId, RecordType};
use trefoil_resources::collection::{NestedCollection, record_path};
use trefoil_resources::forms::edited_lists::{MAX_ROWS, edited_lists};
use trefoil_resources::forms::form_input::{
    ADD_CONTROL, ChildRow, FormInput, REMOVE_CONTROL, ROW_DELETE_CONTROL, ROW_ID_CONTROL, VERSION_CONTROL,
};
use trefoil_resources::request::ResourceRequest;

use crate::Pages;
use crate::form::choices::ReferenceChoices;
use crate::form::closed_fields::{closed_fields, is_list_open};
use crate::form::controls::{ControlBuilder, control_id, with_hint};
use crate::form::defaults::fill_defaults;
use crate::form::editable_record::EditableRecord;
use crate::labels::ResourceLabels;
use crate::template_data::{ControlKind, ControlView, NameValue, PageLink};

impl Pages {
    /// A control for each list of records that belong to the record, with a row for each of them.
    pub async fn list_controls(
        &self,
        request: &ResourceRequest<'_>,
        edited: Option<&(RecordId, EditableRecord)>,
        input: &mut FormInput,
    ) -> Result<Vec<ControlView>> {
        let (model, record) = (request.resources.engine.model(), request.record());
        let mut controls = Vec::new();
        let engine = &request.resources.engine;
        for list in edited_lists(model, record) {
            if !is_list_open(engine, request.collection.record, &list) {
                continue;
            }
            let (child, labels) = (model.record(list.record), self.labels_of(list.record));
            let list_name = &record.field(list.field).input_name;
            let rows = input.child_rows.entry(list.field).or_default();
            rows.iter_mut().for_each(|row| prepare_row(engine, child, &list, row));
            let inputs: Vec<&FormInput> = rows.iter().map(|row| &row.input).collect();
            let choices = self.choices_of_rows(request.resources, list.record, &inputs).await?;
            let children: Vec<ControlView> = { rows.iter().zip(&choices).enumerate() }
                .map(|(number, (row, choices))| {
                    row_control(model, child, labels, row, choices, (list_name, number))
                })
                .collect();
            let control = ControlView {
                kind: ControlKind::Groups,
                id: control_id(list_name),
                name: list_name.clone(),
                label: record.field(list.field).label(),
                hint: record
                    .field(list.field)
                    .display
                    .hint
                    .clone()
                    .or_else(|| record.field(list.field).description.clone()),
                add_label: Some(format!("Add {}", labels.resource.noun)),
                children,
                ..ControlView::default()
            };
            let control = match long_list_link(self, request, edited, &list) {
                Some(link) if rows.is_empty() => {
                    let note = format!("There are too many {} for this form.", labels.plural_noun);
                    with_hint(ControlView { link: Some(link), ..control }, &note)
                }
                Some(_) | None if rows.len() >= MAX_ROWS => {
                    let note = format!("A form has at most {MAX_ROWS} {}.", labels.plural_noun);
                    with_hint(control, &note)
                }
                Some(_) | None if !engine.may(AccessAction::Create, list.record) => control,
                Some(_) | None => {
                    let more = NameValue { name: ADD_CONTROL.to_owned(), value: list_name.clone() };
                    ControlView { more: Some(more), ..control }
                }
            };
            controls.push(with_focus(control, input.changed_part.as_deref()));
        }
        Ok(controls)
    }
}

/// The link to the records of a list that is too long for a form.
fn long_list_link(
    pages: &Pages,
    request: &ResourceRequest<'_>,
    edited: Option<&(RecordId, EditableRecord)>,
    list: &NestedCollection,
) -> Option<PageLink> {
    let (id, stored) = edited?;
    stored.lists.iter().find(|stored| stored.list.field == list.field && stored.is_too_long)?;
    let own = record_path(&request.collection.path, id);
    let label = format!("All {}", pages.labels_of(list.record).plural_noun);
    Some(PageLink { label, href: format!("{own}/{}", list.segment) })
}

/// Hides what a row cannot change, and fills in defaults.
fn prepare_row(engine: &Engine, child: &RecordType, list: &NestedCollection, row: &mut ChildRow) {
    let id = row.id.is_some().then(|| child.id_field());
    let action = if row.id.is_some() { AccessAction::Update } else { AccessAction::Create };
    row.input.hidden_fields = list.reference().into_iter().chain(id).collect();
    fill_defaults(engine.model(), child, &mut row.input, row.id.is_none());
    row.input.close_fields(closed_fields(engine, action, list.record));
}

fn row_control(
    model: &Model,
    child: &RecordType,
    labels: &ResourceLabels,
    row: &ChildRow,
    choices: &ReferenceChoices,
    (list_name, number): (&str, usize),
) -> ControlView {
    let (name, noun) = (format!("{list_name}.{number}"), &labels.resource.noun);
    let builder = ControlBuilder::new(model, child, choices).in_row(&name);
    let mut children = builder.build_controls(child, &row.input);
    let own = |control: &str| format!("{name}.{control}");
    if let Some(id) = &row.id {
        let hidden = |control: &str, value: &str| ControlView {
            kind: ControlKind::Hidden,
            name: own(control),
            value: value.to_owned(),
            ..ControlView::default()
        };
        children.insert(0, hidden(ROW_ID_CONTROL, id));
        children.extend(row.input.version.as_deref().map(|version| hidden(VERSION_CONTROL, version)));
        children.push(ControlView {
            kind: ControlKind::Checkbox,
            id: control_id(&own(ROW_DELETE_CONTROL)),
            name: own(ROW_DELETE_CONTROL),
            label: format!("Delete this {noun}"),
            value: row.is_deleted.to_string(),
            ..ControlView::default()
        });
    }
    let lost = format!(
        "This {noun} was deleted or moved while you were editing it. If you save it, it becomes a new {noun}"
    );
    let less = NameValue { name: REMOVE_CONTROL.to_owned(), value: name.clone() };
    ControlView {
        kind: ControlKind::Group,
        id: control_id(&name),
        label: format!("{} {}", labels.resource.label, number + 1),
        children,
        errors: row.is_lost.then_some(lost).into_iter().collect(),
        less: row.id.is_none().then_some(less),
        name,
        ..ControlView::default()
    }
}

/// Puts the focus where a button has changed the list: into the new row, or on the button that adds one.
fn with_focus(mut list: ControlView, changed: Option<&str>) -> ControlView {
    list.focus = changed == Some(&list.name);
    let row = list.children.iter_mut().find(|row| changed == Some(&row.name));
    let is_input = |control: &&mut ControlView| control.children.is_empty();
    if let Some(first) = row.and_then(|row| row.children.iter_mut().find(is_input)) {
        first.focus = true;
    }
    list
}
