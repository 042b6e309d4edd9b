//! "Three ways" of a form: what is typed in it, and where that is missing or wrong what was kept, or made up.

use serde_json::{Map, Value as Json, json};

use trefoil_engine::OperationVerb;
use trefoil_engine::graphql_document::{DocumentRequest, is_expressible};
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::error::Violation;
use trefoil_model::values::{coerce, example_values};
use trefoil_model::{Field, FieldId, FieldKind, RecordTypeId, Value};
use trefoil_resources::control_tree::ControlNode;
use trefoil_resources::form_input::{FormInput, concerns_field};

use crate::examples::page::{EXAMPLES_TITLE, ExampleBuilder, shell_quote, with_missing_arguments};
use crate::form::choices::ReferenceChoices;
use crate::form::editable_record::EditableRecord;
use crate::form::value_texts::value_node;
use crate::view::ApiExamples;

/// A form that somebody looks at.
pub struct DisplayedForm<'d> {
    pub input: &'d FormInput,
    pub violations: &'d [Violation],
    pub choices: &'d ReferenceChoices,
}

/// What is written, and what a reader must know about it.
struct ExampleBody {
    values: Json,
    remarks: Vec<String>,
}

impl ExampleBuilder<'_> {
    /// Without a draft nothing is known but the schema.
    pub fn create_examples(&self, record: RecordTypeId, draft: Option<&DisplayedForm<'_>>) -> ApiExamples {
        let typed = draft.map(|draft| self.typed_values(record, draft)).unwrap_or_default();
        // What must differ between records does so between the ways, and from one look at the page to the next.
        let first = (uuid::Uuid::new_v4().as_u128() % 300_000) as i64 * 3;
        let bodies = [0, 1, 2].map(|way| self.create_body(record, draft, &typed, (first, way)));
        self.write_examples(OperationVerb::Create, record, 0, &bodies)
    }

    fn create_body(
        &self,
        record: RecordTypeId,
        draft: Option<&DisplayedForm<'_>>,
        typed: &[(FieldId, Value)],
        numbers: (i64, i64),
    ) -> ExampleBody {
        let mut body = ExampleBody { values: json!({}), remarks: Vec::new() };
        for (id, field) in self.writable_fields(record) {
            let said = typed.iter().find(|(of, value)| *of == id && !value.is_null());
            let value = match (said, &field.kind) {
                (Some((_, value)), _) => Some(self.response_value(field, value)),
                (None, FieldKind::Reference { target, .. }) if field.required => {
                    let offered = draft.and_then(|draft| draft.choices.get(&id));
                    let known = offered.map_or(&[][..], |offered| &offered.options);
                    // No two may refer to the same where that must be unique.
                    let place = if field.unique { numbers.1 as usize } else { 0 };
                    if field.unique {
                        let (plural, name) = (&self.pages.labels_of(*target).plural_noun, &field.input_name);
                        body.remarks
                            .push(format!("{name} must be the id of one of the {plural} that none has yet."));
                    }
                    if known.is_empty() {
                        let is_sought = offered.is_none_or(|offered| !offered.search.trim().is_empty());
                        body.remarks.push(self.missing_reference_remark(*target, field, is_sought));
                    }
                    let found = known.get(place).or(known.first()).map(|(id, _)| json!(id.to_string()));
                    found.or_else(|| example_values::example_value(self.model(), field))
                }
                (None, _) => self.example_value(record, field, numbers),
            };
            match value {
                Some(value) => body.values[&field.input_name] = value,
                None if field.required && field.default.is_none() => {
                    body.remarks
                        .push(format!("Nothing fits that could be made up for {}.", field.input_name));
                }
                None => {}
            }
        }
        body
    }

    /// Why a reference leads nowhere.
    fn missing_reference_remark(&self, target: RecordTypeId, field: &Field, is_sought: bool) -> String {
        let (plural, name) = (&self.pages.labels_of(target).plural_noun, &field.input_name);
        if is_sought {
            format!("{name} must be the id of one of the {plural}, and none of them is known here.")
        } else {
            format!("There are no {plural} yet: create one first. Its id goes into {name}.")
        }
    }

    /// The examples are the same on every page; what must be unique may not be.
    fn example_value(&self, record: RecordTypeId, field: &Field, (first, way): (i64, i64)) -> Option<Json> {
        if matches!(field.kind, FieldKind::Link { .. }) {
            return Some(json!([]));
        }
        let of = self.model().record(record);
        let fake = |number| {
            Some(self.response_value(field, &trefoil_fake::fake_value(self.model(), of, field, number)?))
        };
        if field.unique {
            // A small number fits where a large one is out of range.
            let found = fake(first + way).or_else(|| fake(way + 1));
            return found.or_else(|| example_values::example_value(self.model(), field));
        }
        example_values::example_value(self.model(), field).or_else(|| fake(1))
    }

    /// GraphQL keeps what it is not given, and the others overwrite everything.
    pub fn update_examples(
        &self,
        record: RecordTypeId,
        id: i64,
        kept: &EditableRecord,
        draft: &DisplayedForm<'_>,
    ) -> ApiExamples {
        let (model, typed) = (self.model(), self.typed_values(record, draft));
        let mut values = Map::new();
        for (of, field) in self.writable_fields(record) {
            let found = |values: &[(FieldId, Value)]| {
                values.iter().find(|(known, _)| *known == of).map(|(_, value)| value.clone())
            };
            let is_link = matches!(field.kind, FieldKind::Link { .. });
            let passes = |value: &Value| is_link || coerce::field(model, field, value).is_ok();
            let value = found(&typed).or_else(|| found(&kept.values).filter(passes));
            let value = match value {
                Some(value) => Some(self.response_value(field, &value)),
                // More of them than a form shows stay as they are.
                None if is_link => None,
                None => self.example_value(record, field, (id, 0)).or(Some(Json::Null)),
            };
            values.extend(value.map(|value| (field.input_name.clone(), value)));
        }
        let values = Json::Object(values);
        let bodies = [(); 3].map(|()| ExampleBody { values: values.clone(), remarks: Vec::new() });
        self.write_examples(OperationVerb::Update, record, id, &bodies)
    }

    fn writable_fields(&self, record: RecordTypeId) -> impl Iterator<Item = (FieldId, &Field)> {
        let fields = self.model().record(record).fields.iter().enumerate();
        fields.filter(|(_, field)| field.is_writable()).map(|(position, field)| (FieldId(position), field))
    }

    /// What was typed, as far as it passes and leads to what there is: a way that leads to a refusal is none.
    fn typed_values(&self, record: RecordTypeId, draft: &DisplayedForm<'_>) -> Vec<(FieldId, Value)> {
        let (model, record) = (self.model(), self.model().record(record));
        let is_known = |field: FieldId, id: i64| {
            let offered = draft.choices.get(&field).map_or(&[][..], |offered| &offered.options);
            offered.iter().any(|(known, _)| *known == id)
        };
        let mut typed = draft.input.read_values(model, record).fields;
        typed.retain(|(id, value)| {
            let field = record.field(*id);
            let passes = match &field.kind {
                FieldKind::Link { .. } => coerce::link_ids(field, value)
                    .is_ok_and(|linked| linked.into_iter().all(|linked| is_known(*id, linked))),
                FieldKind::Reference { .. } => {
                    let leads = value.as_i64().is_none_or(|target| is_known(*id, target));
                    leads && coerce::field(model, field, value).is_ok()
                }
                FieldKind::Id
                | FieldKind::Scalar(_)
                | FieldKind::Enum(_)
                | FieldKind::Embedded(_)
                | FieldKind::List(_)
                | FieldKind::Inverse { .. }
                | FieldKind::Unstored => coerce::field(model, field, value).is_ok(),
            };
            passes && !draft.violations.iter().any(|violation| concerns_field(violation, &field.input_name))
        });
        typed
    }

    /// As an answer writes it.
    fn response_value(&self, field: &Field, value: &Value) -> Json {
        let ids = |value: &Value| value.as_i64().map(|id| json!(id.to_string()));
        match value {
            Value::Null => Json::Null,
            Value::List(linked) if matches!(field.kind, FieldKind::Link { .. }) => {
                linked.iter().filter_map(ids).collect()
            }
            Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Object(_) => example_values::as_response_json(self.model(), field, value.to_json())
                .unwrap_or_else(|| value.to_json()),
        }
    }

    fn write_examples(
        &self,
        verb: OperationVerb,
        record: RecordTypeId,
        id: i64,
        bodies: &[ExampleBody; 3],
    ) -> ApiExamples {
        let [by_graphql, by_rest, by_form] = bodies;
        let (method, path) = match verb {
            OperationVerb::Update => (" -X PUT", format!("{}/{id}", self.collection_path(record))),
            OperationVerb::Create
            | OperationVerb::Delete
            | OperationVerb::Get
            | OperationVerb::List
            | OperationVerb::Subscribe(_) => ("", self.collection_path(record).to_owned()),
        };
        let url = shell_quote(&format!("{}{path}", self.origin));
        let mut controls = String::new();
        for (name, text) in self.form_pairs(record, &by_form.values) {
            controls.push_str(&format!(" --data-urlencode {}", shell_quote(&format!("{name}={text}"))));
        }
        let controls = if controls.is_empty() { " -d ''".to_owned() } else { controls };
        let sent = shell_quote(&by_rest.values.to_string());
        let media = "-H 'Accept: application/json' -H 'Content-Type: application/json'";
        let graphql = self.write_operation(verb, record, id, &by_graphql.values);
        ApiExamples {
            title: EXAMPLES_TITLE.to_owned(),
            graphql: self.graphql_example(by_graphql.with_remarks(&graphql)),
            rest: by_rest.with_remarks(&format!("curl{method} {media} -d {sent} {url}")),
            page: by_form.with_remarks(&format!("curl -i{controls} {url}")),
        }
    }

    fn write_operation(&self, verb: OperationVerb, record: RecordTypeId, id: i64, values: &Json) -> String {
        let (said, unsaid): (Map<String, Json>, Map<String, Json>) = values
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .partition(|(_, value)| is_expressible(value));
        let said = Json::Object(said);
        let wanted = DocumentRequest { record, verb, id, values: &said, listing: None };
        let Some(text) = self.operation_text(&wanted) else {
            return self.fallback_operation(record, (verb == OperationVerb::Update).then_some(id));
        };
        let text = with_missing_arguments(&wanted.unexpressed_parts(&self.resources.engine), text);
        let unsaid: Vec<&str> = unsaid.keys().map(String::as_str).collect();
        if unsaid.is_empty() {
            return text;
        }
        format!("# GraphQL cannot write the names that are inside of: {}\n{text}", unsaid.join(", "))
    }

    /// The control that says of a field that nothing is in it, where one is needed: without any, links stay as they are,
    /// the default is meant, and a list is missing.
    fn empty_control(&self, field: &Field) -> Option<String> {
        let name = &field.input_name;
        match &field.kind {
            FieldKind::Embedded(of) if field.required => {
                let inner = self.model().embedded.get(of)?.fields.first()?;
                Some(format!("{name}.{}", inner.name))
            }
            FieldKind::Link { .. } | FieldKind::List(_) => Some(name.clone()),
            FieldKind::Id
            | FieldKind::Scalar(_)
            | FieldKind::Enum(_)
            | FieldKind::Embedded(_)
            | FieldKind::Reference { .. }
            | FieldKind::Inverse { .. }
            | FieldKind::Unstored => field.default.is_some().then(|| name.clone()),
        }
    }

    /// The controls of a form that says this.
    fn form_pairs(&self, record: RecordTypeId, values: &Json) -> FormPairs {
        let mut pairs = FormPairs::new();
        for field in &self.model().record(record).fields {
            let Some(value) = values.get(&field.input_name) else { continue };
            let node = value_node(self.model(), &field.kind, &Value::from(value.clone()), 0);
            let before = pairs.len();
            flatten_node(&mut pairs, field.input_name.clone(), &node);
            if pairs.len() == before
                && let Some(name) = self.empty_control(field)
            {
                pairs.push((name, String::new()));
            }
        }
        pairs
    }
}

impl ExampleBody {
    /// With the remarks as comments, which GraphQL and shells write alike.
    fn with_remarks(&self, text: &str) -> String {
        let remarks: String = self.remarks.iter().map(|remark| format!("# {remark}\n")).collect();
        format!("{remarks}{text}")
    }
}

fn flatten_node(pairs: &mut FormPairs, name: String, node: &ControlNode) {
    pairs.extend(node.texts.iter().map(|text| (name.clone(), text.clone())));
    for (segment, below) in &node.children {
        flatten_node(pairs, format!("{name}.{segment}"), below);
    }
}
