//! "Three ways" of a form: what is typed in it, and where that is missing or wrong what was kept, or made up.

use serde_json::{Map, Value as Json, json};

use crate::examples::page::{Guide, TITLE, quoted, remarked};
use crate::form::choices::Choices;
use crate::form::editable_record::Kept;
use crate::form::value_texts::spell;
use crate::view::Ways;
use trefoil_engine::Verb;
use trefoil_engine::graphql_document::{Wanted, is_writable};
use trefoil_http::form_pairs::Pairs;
use trefoil_model::error::Violation;
use trefoil_resources::control_tree::Node;
use trefoil_resources::form_input::{Filled, is_about};

use trefoil_model::values::{coerce, example_values};
use trefoil_model::{Field, FieldId, Kind, TypeId, Value};

/// A form that somebody looks at.
pub struct Draft<'d> {
    pub filled: &'d Filled,
    pub wrong: &'d [Violation],
    pub choices: &'d Choices,
}

/// What is written, and what a reader must know about it.
struct Body {
    values: Json,
    remarks: Vec<String>,
}

impl Guide<'_> {
    /// Without a draft nothing is known but the schema.
    pub fn create(&self, record: TypeId, draft: Option<&Draft<'_>>) -> Ways {
        let typed = draft.map(|draft| self.typed(record, draft)).unwrap_or_default();
        // What must differ between records does so between the ways, and from one look at the page to the next.
        let first = (uuid::Uuid::new_v4().as_u128() % 300_000) as i64 * 3;
        let bodies = [0, 1, 2].map(|way| self.new_body(record, draft, &typed, (first, way)));
        self.written(Verb::Create, record, 0, &bodies)
    }

    fn new_body(
        &self,
        record: TypeId,
        draft: Option<&Draft<'_>>,
        typed: &[(FieldId, Value)],
        numbers: (i64, i64),
    ) -> Body {
        let mut body = Body { values: json!({}), remarks: Vec::new() };
        for (id, field) in self.fields(record) {
            let said = typed.iter().find(|(of, value)| *of == id && !value.is_null());
            let value = match (said, &field.kind) {
                (Some((_, value)), _) => Some(self.shown(field, value)),
                (None, Kind::Reference { target, .. }) if field.required => {
                    let offered = draft.and_then(|draft| draft.choices.get(&id));
                    let known = offered.map_or(&[][..], |offered| &offered.options);
                    // No two may refer to the same where that must be unique.
                    let place = if field.unique { numbers.1 as usize } else { 0 };
                    if field.unique {
                        let (plural, name) = (&self.pages.subject(*target).nouns, &field.input_name);
                        body.remarks
                            .push(format!("{name} must be the id of one of the {plural} that none has yet."));
                    }
                    if known.is_empty() {
                        let is_sought = offered.is_none_or(|offered| !offered.sought.trim().is_empty());
                        body.remarks.push(self.nobody(*target, field, is_sought));
                    }
                    let found = known.get(place).or(known.first()).map(|(id, _)| json!(id.to_string()));
                    found.or_else(|| example_values::made_up(self.model(), field))
                }
                (None, _) => self.made_up(record, field, numbers),
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
    fn nobody(&self, target: TypeId, field: &Field, is_sought: bool) -> String {
        let (plural, name) = (&self.pages.subject(target).nouns, &field.input_name);
        if is_sought {
            format!("{name} must be the id of one of the {plural}, and none of them is known here.")
        } else {
            format!("There are no {plural} yet: create one first. Its id goes into {name}.")
        }
    }

    /// The examples are the same on every page; what must be unique may not be.
    fn made_up(&self, record: TypeId, field: &Field, (first, way): (i64, i64)) -> Option<Json> {
        if matches!(field.kind, Kind::Link { .. }) {
            return Some(json!([]));
        }
        let of = self.model().record(record);
        let fake = |number| Some(self.shown(field, &trefoil_fake::fitting(self.model(), of, field, number)?));
        if field.unique {
            // A small number fits where a large one is out of range.
            let found = fake(first + way).or_else(|| fake(way + 1));
            return found.or_else(|| example_values::made_up(self.model(), field));
        }
        example_values::made_up(self.model(), field).or_else(|| fake(1))
    }

    /// GraphQL keeps what it is not given, and the others overwrite everything.
    pub fn update(&self, record: TypeId, id: i64, kept: &Kept, draft: &Draft<'_>) -> Ways {
        let (model, typed) = (self.model(), self.typed(record, draft));
        let mut values = Map::new();
        for (of, field) in self.fields(record) {
            let found = |values: &[(FieldId, Value)]| {
                values.iter().find(|(known, _)| *known == of).map(|(_, value)| value.clone())
            };
            let is_link = matches!(field.kind, Kind::Link { .. });
            let passes = |value: &Value| is_link || coerce::field(model, field, value).is_ok();
            let value = found(&typed).or_else(|| found(&kept.values).filter(passes));
            let value = match value {
                Some(value) => Some(self.shown(field, &value)),
                // More of them than a form shows stay as they are.
                None if is_link => None,
                None => self.made_up(record, field, (id, 0)).or(Some(Json::Null)),
            };
            values.extend(value.map(|value| (field.input_name.clone(), value)));
        }
        let values = Json::Object(values);
        let bodies = [(); 3].map(|()| Body { values: values.clone(), remarks: Vec::new() });
        self.written(Verb::Update, record, id, &bodies)
    }

    fn fields(&self, record: TypeId) -> impl Iterator<Item = (FieldId, &Field)> {
        let fields = self.model().record(record).fields.iter().enumerate();
        fields.filter(|(_, field)| field.is_writable()).map(|(position, field)| (FieldId(position), field))
    }

    /// What was typed, as far as it passes and leads to what there is: a way that leads to a refusal is none.
    fn typed(&self, record: TypeId, draft: &Draft<'_>) -> Vec<(FieldId, Value)> {
        let (model, record) = (self.model(), self.model().record(record));
        let is_known = |field: FieldId, id: i64| {
            let offered = draft.choices.get(&field).map_or(&[][..], |offered| &offered.options);
            offered.iter().any(|(known, _)| *known == id)
        };
        let mut typed = draft.filled.read(model, record).fields;
        typed.retain(|(id, value)| {
            let field = record.field(*id);
            let passes = match &field.kind {
                Kind::Link { .. } => coerce::ids(field, value)
                    .is_ok_and(|linked| linked.into_iter().all(|linked| is_known(*id, linked))),
                Kind::Reference { .. } => {
                    let leads = value.as_i64().is_none_or(|target| is_known(*id, target));
                    leads && coerce::field(model, field, value).is_ok()
                }
                Kind::Id
                | Kind::Scalar(_)
                | Kind::Enum(_)
                | Kind::Embedded(_)
                | Kind::List(_)
                | Kind::Inverse { .. }
                | Kind::Unstored => coerce::field(model, field, value).is_ok(),
            };
            passes && !draft.wrong.iter().any(|violation| is_about(violation, &field.input_name))
        });
        typed
    }

    /// As an answer writes it.
    fn shown(&self, field: &Field, value: &Value) -> Json {
        let ids = |value: &Value| value.as_i64().map(|id| json!(id.to_string()));
        match value {
            Value::Null => Json::Null,
            Value::List(linked) if matches!(field.kind, Kind::Link { .. }) => {
                linked.iter().filter_map(ids).collect()
            }
            Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)
            | Value::Object(_) => example_values::written(self.model(), field, value.to_json())
                .unwrap_or_else(|| value.to_json()),
        }
    }

    fn written(&self, verb: Verb, record: TypeId, id: i64, bodies: &[Body; 3]) -> Ways {
        let [by_graphql, by_rest, by_form] = bodies;
        let (method, path) = match verb {
            Verb::Update => (" -X PUT", format!("{}/{id}", self.path(record))),
            Verb::Create | Verb::Delete | Verb::Get | Verb::List | Verb::Watch(_) => {
                ("", self.path(record).to_owned())
            }
        };
        let url = quoted(&format!("{}{path}", self.host));
        let mut controls = String::new();
        for (name, text) in self.controls(record, &by_form.values) {
            controls.push_str(&format!(" --data-urlencode {}", quoted(&format!("{name}={text}"))));
        }
        let controls = if controls.is_empty() { " -d ''".to_owned() } else { controls };
        let sent = quoted(&by_rest.values.to_string());
        let media = "-H 'Accept: application/json' -H 'Content-Type: application/json'";
        let graphql = self.operation(verb, record, id, &by_graphql.values);
        Ways {
            title: TITLE.to_owned(),
            graphql: self.way(by_graphql.above(&graphql)),
            rest: by_rest.above(&format!("curl{method} {media} -d {sent} {url}")),
            page: by_form.above(&format!("curl -i{controls} {url}")),
        }
    }

    fn operation(&self, verb: Verb, record: TypeId, id: i64, values: &Json) -> String {
        let (said, unsaid): (Map<String, Json>, Map<String, Json>) = values
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone()))
            .partition(|(_, value)| is_writable(value));
        let said = Json::Object(said);
        let wanted = Wanted { record, verb, id, values: &said, listing: None };
        let Some(text) = self.document(&wanted) else {
            return self.instead(record, (verb == Verb::Update).then_some(id));
        };
        let text = remarked(&wanted.unsaid(&self.site.engine), text);
        let unsaid: Vec<&str> = unsaid.keys().map(String::as_str).collect();
        if unsaid.is_empty() {
            return text;
        }
        format!("# GraphQL cannot write the names that are inside of: {}\n{text}", unsaid.join(", "))
    }

    /// The control that says of a field that nothing is in it, where one is needed: without any, links stay as they are,
    /// the default is meant, and a list is missing.
    fn empty(&self, field: &Field) -> Option<String> {
        let name = &field.input_name;
        match &field.kind {
            Kind::Embedded(of) if field.required => {
                let inner = self.model().embedded.get(of)?.fields.first()?;
                Some(format!("{name}.{}", inner.name))
            }
            Kind::Link { .. } | Kind::List(_) => Some(name.clone()),
            Kind::Id
            | Kind::Scalar(_)
            | Kind::Enum(_)
            | Kind::Embedded(_)
            | Kind::Reference { .. }
            | Kind::Inverse { .. }
            | Kind::Unstored => field.default.is_some().then(|| name.clone()),
        }
    }

    /// The controls of a form that says this.
    fn controls(&self, record: TypeId, values: &Json) -> Pairs {
        let mut pairs = Pairs::new();
        for field in &self.model().record(record).fields {
            let Some(value) = values.get(&field.input_name) else { continue };
            let node = spell(self.model(), &field.kind, &Value::from(value.clone()), 0);
            let before = pairs.len();
            flatten(&mut pairs, field.input_name.clone(), &node);
            if pairs.len() == before
                && let Some(name) = self.empty(field)
            {
                pairs.push((name, String::new()));
            }
        }
        pairs
    }
}

impl Body {
    /// With the remarks as comments, which GraphQL and shells write alike.
    fn above(&self, text: &str) -> String {
        let remarks: String = self.remarks.iter().map(|remark| format!("# {remark}\n")).collect();
        format!("{remarks}{text}")
    }
}

fn flatten(pairs: &mut Pairs, name: String, node: &Node) {
    pairs.extend(node.texts.iter().map(|text| (name.clone(), text.clone())));
    for (segment, below) in &node.below {
        flatten(pairs, format!("{name}.{segment}"), below);
    }
}
