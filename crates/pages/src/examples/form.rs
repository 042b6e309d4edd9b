//! API examples on forms: the typed values, completed by stored or generated ones where they are missing or invalid.

use serde_json::{Map, Value as Json, json};

use trefoil_engine::OperationVerb;
use trefoil_engine::graphql_document::{DocumentTemplate, is_expressible};
use trefoil_fake::fake_value;
use trefoil_http::form_pairs::FormPairs;
use trefoil_model::access::AccessAction;
use trefoil_model::error::Violation;
use trefoil_model::values::{coerce, example_values};
use trefoil_model::{Field, FieldId, RecordId, RecordTypeId, Reference, Relation, Value, ValueType};
use trefoil_resources::collection::record_path;
use trefoil_resources::forms::form_input::{FormInput, concerns_field};
use trefoil_resources::forms::form_tree::ControlNode;

use crate::examples::page::{EXAMPLES_TITLE, ExampleBuilder, shell_quote, with_missing_arguments};
use crate::form::choices::ReferenceChoices;
use crate::form::editable_record::EditableRecord;
use crate::form::value_texts::value_node;
use crate::template_data::ApiExamples;

/// A form as it is displayed.
pub struct DisplayedForm<'d> {
    pub input: &'d FormInput,
    pub violations: &'d [Violation],
    pub choices: &'d ReferenceChoices,
}

/// The values of an example, and remarks for the reader.
struct ExampleBody {
    values: Json,
    remarks: Vec<String>,
}

impl ExampleBuilder<'_> {
    /// Examples that create a record. Without a form they are made of the schema alone.
    pub fn create_examples(&self, record: RecordTypeId, form: Option<&DisplayedForm<'_>>) -> ApiExamples {
        let typed = form.map(|form| self.typed_values(record, form)).unwrap_or_default();
        // Unique values differ between the three examples, and each time the page is shown.
        let first = (uuid::Uuid::new_v4().as_u128() % 300_000) as i64 * 3;
        let bodies = [0, 1, 2].map(|number| self.create_body(record, form, &typed, (first, number)));
        self.write_examples(OperationVerb::Create, record, None, &bodies)
    }

    fn create_body(
        &self,
        record: RecordTypeId,
        form: Option<&DisplayedForm<'_>>,
        typed: &[(FieldId, Value)],
        seed: (i64, i64),
    ) -> ExampleBody {
        let mut body = ExampleBody { values: json!({}), remarks: Vec::new() };
        for (id, field) in self.writable_fields(AccessAction::Create, record) {
            let typed_value = typed.iter().find(|(known, value)| *known == id && !value.is_null());
            let value = match (typed_value, field.kind.reference()) {
                (Some((_, value)), _) => Some(self.response_value(field, value)),
                (None, Some(Reference { target, .. })) if field.required => {
                    let offered = form.and_then(|form| form.choices.get(&id));
                    let known = offered.map_or(&[][..], |offered| &offered.options);
                    // A unique reference needs another record in each example.
                    let position = if field.unique { seed.1 as usize } else { 0 };
                    if field.unique {
                        let (plural, name) = (&self.pages.labels_of(*target).plural_noun, &field.input_name);
                        body.remarks.push(format!(
                            "{name} must be the id of one of the {plural} that is not in use yet."
                        ));
                    }
                    if known.is_empty() {
                        let is_search = offered.is_none_or(|offered| !offered.search.trim().is_empty());
                        body.remarks.push(self.missing_reference_remark(*target, field, is_search));
                    }
                    let found = known.get(position).or(known.first()).map(|(id, _)| json!(id.to_string()));
                    found.or_else(|| example_values::example_value(self.model(), field))
                }
                (None, _) => self.example_value(record, field, seed),
            };
            match value {
                Some(value) => body.values[&field.input_name] = value,
                None if field.required && !field.has_default() => {
                    body.remarks
                        .push(format!("No valid example value could be generated for {}.", field.input_name));
                }
                None => {}
            }
        }
        body
    }

    /// Explains why no record is known for a reference.
    fn missing_reference_remark(&self, target: RecordTypeId, field: &Field, is_search: bool) -> String {
        let (plural, name) = (&self.pages.labels_of(target).plural_noun, &field.input_name);
        if is_search {
            format!("{name} must be the id of one of the {plural}: replace the example value.")
        } else {
            format!("There are no {plural} yet: create one first and use its id as {name}.")
        }
    }

    /// An example value: always the same, except for unique fields.
    fn example_value(
        &self,
        record: RecordTypeId,
        field: &Field,
        (first, number): (i64, i64),
    ) -> Option<Json> {
        if field.kind.is_link() {
            return Some(json!([]));
        }
        let record_type = self.model().record(record);
        let fake = |number| {
            let value = fake_value(self.model(), record_type, field, number)?;
            Some(self.response_value(field, &value))
        };
        if field.unique {
            // A small number if the large one is out of range.
            let found = fake(first + number).or_else(|| fake(number + 1));
            return found.or_else(|| example_values::example_value(self.model(), field));
        }
        example_values::example_value(self.model(), field).or_else(|| fake(1))
    }

    /// Examples that update a record. They have all fields, because REST and forms replace the whole record.
    pub fn update_examples(
        &self,
        record: RecordTypeId,
        id: &RecordId,
        stored: &EditableRecord,
        form: &DisplayedForm<'_>,
    ) -> ApiExamples {
        let (model, typed) = (self.model(), self.typed_values(record, form));
        let mut values = Map::new();
        for (field_id, field) in self.writable_fields(AccessAction::Update, record) {
            let found = |values: &[(FieldId, Value)]| {
                values.iter().find(|(known, _)| *known == field_id).map(|(_, value)| value.clone())
            };
            let is_link = field.kind.is_link();
            let passes = |value: &Value| is_link || coerce::coerce_field(model, field, value).is_ok();
            let value = found(&typed).or_else(|| found(&stored.values).filter(passes));
            let value = match value {
                Some(value) => Some(self.response_value(field, &value)),
                // Too many links for the form: they stay as they are.
                None if is_link => None,
                None => self.example_value(record, field, (1, 0)).or(Some(Json::Null)),
            };
            values.extend(value.map(|value| (field.input_name.clone(), value)));
        }
        let values = Json::Object(values);
        let bodies = [(); 3].map(|()| ExampleBody { values: values.clone(), remarks: Vec::new() });
        self.write_examples(OperationVerb::Update, record, Some(id), &bodies)
    }

    /// What the actor may set.
    fn writable_fields(
        &self,
        action: AccessAction,
        record: RecordTypeId,
    ) -> impl Iterator<Item = (FieldId, &Field)> {
        let fields = self.model().record(record).fields.iter().enumerate();
        let fields = fields.map(|(position, field)| (FieldId(position), field));
        let may_set = move |id| self.resources.engine.may_set(action, record, id);
        fields.filter(move |(id, field)| field.is_writable() && may_set(*id))
    }

    /// The typed values that are valid and refer to existing records, so that the examples succeed.
    fn typed_values(&self, record: RecordTypeId, form: &DisplayedForm<'_>) -> Vec<(FieldId, Value)> {
        let (model, record) = (self.model(), self.model().record(record));
        let is_known = |field: FieldId, id: &RecordId| {
            let offered = form.choices.get(&field).map_or(&[][..], |offered| &offered.options);
            offered.iter().any(|(known, _)| known == id)
        };
        let mut typed = form.input.read_values(model, record).fields;
        typed.retain(|(id, value)| {
            let field = record.field(*id);
            let passes = match field.kind.relation() {
                Some(Relation::Link(link)) => coerce::link_ids(link, field, value)
                    .is_ok_and(|linked| linked.iter().all(|linked| is_known(*id, linked))),
                Some(Relation::Reference(reference)) => {
                    let target = RecordId::from_value(reference.key_form, value);
                    let target_exists = target.is_ok_and(|target| is_known(*id, &target)) || value.is_null();
                    target_exists && coerce::coerce_field(model, field, value).is_ok()
                }
                Some(Relation::Inverse(_)) | None => coerce::coerce_field(model, field, value).is_ok(),
            };
            passes && !form.violations.iter().any(|violation| concerns_field(violation, &field.input_name))
        });
        typed
    }

    /// The value as in a response.
    fn response_value(&self, field: &Field, value: &Value) -> Json {
        match value {
            Value::Null => Json::Null,
            Value::List(linked) if field.kind.is_link() => linked.iter().filter_map(id_text).collect(),
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
        id: Option<&RecordId>,
        bodies: &[ExampleBody; 3],
    ) -> ApiExamples {
        let [graphql_body, rest_body, form_body] = bodies;
        let (method, path) = match id {
            Some(id) => (" -X PUT", record_path(self.collection_path(record), id)),
            None => ("", self.collection_path(record).to_owned()),
        };
        let url = shell_quote(&format!("{}{path}", self.origin));
        let mut controls = String::new();
        for (name, text) in self.form_pairs(record, &form_body.values) {
            controls.push_str(&format!(" --data-urlencode {}", shell_quote(&format!("{name}={text}"))));
        }
        let controls = if controls.is_empty() { " -d ''".to_owned() } else { controls };
        let payload = shell_quote(&rest_body.values.to_string());
        let media = "-H 'Accept: application/json' -H 'Content-Type: application/json'";
        let graphql = self.write_operation(verb, record, id, &graphql_body.values);
        ApiExamples {
            title: EXAMPLES_TITLE.to_owned(),
            graphql: self.graphql_example(graphql_body.with_remarks(&graphql)),
            rest: rest_body.with_remarks(&format!("curl{method} {media} -d {payload} {url}")),
            page: form_body.with_remarks(&format!("curl -i{controls} {url}")),
        }
    }

    fn write_operation(
        &self,
        verb: OperationVerb,
        record: RecordTypeId,
        id: Option<&RecordId>,
        values: &Json,
    ) -> String {
        let (expressible, inexpressible): (Map<String, Json>, Map<String, Json>) = values
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .partition(|(_, value)| is_expressible(value));
        let expressible = Json::Object(expressible);
        let document = DocumentTemplate { record, verb, id, values: &expressible, listing: None };
        let Some(text) = self.operation_text(&document) else {
            return self.fallback_operation(record, id);
        };
        let text = with_missing_arguments(&document.unexpressed_parts(&self.resources.engine), text);
        let inexpressible: Vec<&str> = inexpressible.keys().map(String::as_str).collect();
        if inexpressible.is_empty() {
            return text;
        }
        format!(
            "# Omitted, because they contain names that are not valid in GraphQL: {}\n{text}",
            inexpressible.join(", ")
        )
    }

    /// The control that makes a field empty, if one is needed: without any control, links stay as they are, a default
    /// applies, and a list is missing.
    fn empty_control(&self, field: &Field) -> Option<String> {
        let name = &field.input_name;
        if let Some(ValueType::Embedded(type_name)) = field.kind.value_type()
            && field.required
        {
            let inner = self.model().embedded.get(type_name)?.fields.first()?;
            return Some(format!("{name}.{}", inner.name));
        }
        let is_list = field.kind.is_link() || field.kind.list_item().is_some();
        (is_list || field.default.is_some()).then(|| name.clone())
    }

    /// The form pairs for these values.
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
    /// The text after the remarks as comments, which have the same syntax in GraphQL and shells.
    fn with_remarks(&self, text: &str) -> String {
        let remarks: String = self.remarks.iter().map(|remark| format!("# {remark}\n")).collect();
        format!("{remarks}{text}")
    }
}

fn flatten_node(pairs: &mut FormPairs, name: String, node: &ControlNode) {
    pairs.extend(node.texts.iter().map(|text| (name.clone(), text.clone())));
    for (segment, child) in &node.children {
        flatten_node(pairs, format!("{name}.{segment}"), child);
    }
}

/// The id of a link as a response shows it.
fn id_text(value: &Value) -> Option<Json> {
    match value {
        Value::String(text) => Some(json!(text)),
        Value::Int(number) => Some(json!(number.to_string())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
    }
}
