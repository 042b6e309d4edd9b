//! That the operations of real schemas do what they mean when they are called, and that REST and forms write the same
//! records.
//!
//! Every bound query and mutation is called with all arguments that have a role, and what it did is looked up through
//! REST. The long form does the same on PostgreSQL. Those that fail are listed in `accepted_failures.txt`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use trefoil::{App, Config, Trefoil};
use trefoil_config::{DatabaseLocation, PostgresUrl};
use trefoil_engine::graphql_document::selection_text;
use trefoil_engine::{
    BuiltinOperation, OperationVerb, ResolverBinding, ResolverRegistry, ResultShape, binding,
};
use trefoil_model::values::example_values::{example_input, example_value};
use trefoil_model::{Model, RecordTypeId, RootField, RootKind, SourceFile, parse_schema};

use super::argument_values::{ArgumentValues, CHANGED_TEXT};
use super::{FactSchema, fact_schemas};
use crate::support::{Client, Reply, Server, is_long, postgres};

/// What fails, one per line with its schema. May only get shorter.
const ACCEPTED_FAILURES: &str = include_str!("accepted_failures.txt");

const JSON: (&str, &str) = ("Accept", "application/json");
const JSON_BODY: (&str, &str) = ("Content-Type", "application/json");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn bound_operations_work_when_called() {
    call_all(|| DatabaseLocation::Memory);
}

#[test]
fn bound_operations_work_when_called_on_postgres() {
    if is_long() {
        call_all(|| DatabaseLocation::Postgres(PostgresUrl::parse(&postgres::database()).expect("a URL")));
    }
}

fn call_all(database: impl Fn() -> DatabaseLocation) {
    let (mut called, mut failures) = (0, BTreeMap::new());
    for schema in fact_schemas() {
        let mut caller = OperationCaller::start(&schema, database());
        called += caller.call_operations();
        caller.write_otherwise();
        let named = caller.failures.into_iter();
        failures.extend(named.map(|(name, reason)| (format!("{} {name}", schema.number), reason)));
    }
    let accepted: BTreeSet<&str> = ACCEPTED_FAILURES.lines().filter(|line| !line.starts_with('#')).collect();
    let new = failures.iter().filter(|(name, _)| !accepted.contains(name.as_str()));
    let new: Vec<String> = new.map(|(name, reason)| format!("{name}: {reason}")).collect();
    assert!(new.is_empty(), "{} of {called} fail:\n{}", new.len(), new.join("\n"));
    let working: Vec<&&str> = accepted.iter().filter(|name| !failures.contains_key(**name)).collect();
    assert!(working.is_empty(), "these work now, so remove them from the list: {working:?}");
}

struct OperationCaller {
    _server: Server,
    client: Client,
    model: Model,
    bindings: Vec<ResolverBinding>,
    /// The path of a record of each type, that nothing deletes.
    paths: Vec<Option<String>>,
    /// The number of keys that were given to records.
    key_count: usize,
    /// Name and reason.
    failures: Vec<(String, String)>,
}

impl OperationCaller {
    fn start(schema: &FactSchema, database: DatabaseLocation) -> OperationCaller {
        let file = SourceFile { name: "schema.graphqls".into(), text: schema.sdl.clone() };
        let (model, _) = parse_schema(&[file], &[]).expect("a valid schema");
        let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
        let config = Config { database, ..Config::default() };
        let server = Server::start(Trefoil::app(App::from_schema("corpus", &schema.sdl)), config);
        let client = Client::of(&server);
        let paths = vec![None; model.records.len()];
        let mut caller = OperationCaller {
            _server: server,
            client,
            model,
            bindings,
            paths,
            key_count: 0,
            failures: Vec::new(),
        };
        caller.create_first_records();
        caller
    }

    /// Each type after those that its records require; types that require each other stay without.
    fn create_first_records(&mut self) {
        for _ in 0..self.model.records.len() {
            for position in 0..self.model.records.len() {
                if self.paths[position].is_none() {
                    self.paths[position] = self.create_record(RecordTypeId(position));
                }
            }
        }
    }

    /// Creates a record through REST and gives its path.
    fn create_record(&mut self, record: RecordTypeId) -> Option<String> {
        let body = self.example_body(record)?;
        let path = format!("/{}", self.model.record(record).path);
        let reply = self.client.send("POST", &path, &[JSON, JSON_BODY], body.to_string().as_bytes());
        if reply.status != 201 {
            eprintln!("REST {path} {body} -> {}", reply.text());
        }
        let location = reply.header("location").map(str::to_owned);
        location.filter(|_| reply.status == 201)
    }

    /// A body with example values, and references to the first records.
    fn example_body(&mut self, record: RecordTypeId) -> Option<Json> {
        let record = self.model.record(record);
        let mut body = example_input(&self.model, record)?;
        // A key that clients give is another one for each record.
        let key = &record.field(record.id_field()).input_name;
        if body.get(key).is_some_and(Json::is_string) {
            self.key_count += 1;
            body[key] = json!(format!("key-{}", self.key_count));
        }
        for field in record.fields.iter().filter(|field| field.kind.is_reference()) {
            let target = field.kind.relation()?.target();
            match self.paths[target.0].as_deref().map(last_segment) {
                Some(id) => body[&field.input_name] = json!(id),
                None if field.required => return None,
                None => {}
            }
        }
        Some(body)
    }

    /// Calls every bound query and mutation and gives their number; deletions come last.
    fn call_operations(&mut self) -> usize {
        let mut positions: Vec<usize> = (0..self.bindings.len()).collect();
        let is_deletion = |position: &usize| match &self.bindings[*position] {
            ResolverBinding::Builtin(builtin) => builtin.verb == OperationVerb::Delete,
            ResolverBinding::Abstract(_) | ResolverBinding::Registered(_) | ResolverBinding::Missing(_) => {
                false
            }
        };
        positions.sort_by_key(is_deletion);
        let mut called = 0;
        for position in positions {
            let ResolverBinding::Builtin(builtin) = self.bindings[position].clone() else { continue };
            if self.model.root_fields[position].root_kind == RootKind::Subscription {
                continue;
            }
            called += 1;
            if let Err(reason) = self.call_operation(position, &builtin) {
                let root = &self.model.root_fields[position];
                let kind = root.root_kind;
                self.failures.push((format!("{kind:?} {} as {:?}", root.name, builtin.verb), reason));
            }
        }
        called
    }

    fn call_operation(&mut self, position: usize, builtin: &BuiltinOperation) -> Result<(), String> {
        let path = self.create_record(builtin.record).ok_or("no record can be created through REST")?;
        let stored = self.client.send("GET", &path, &[JSON], b"").json();
        let count = self.count_records(builtin.record);
        let ids = self.paths.iter().map(|path| path.as_deref().map(last_segment)).collect();
        let values = ArgumentValues { model: &self.model, builtin, id: last_segment(&path), stored, ids };
        let root = &self.model.root_fields[position];
        let (document, variables) = operation_document(&self.model, root, builtin, &values);
        let reply = self.client.graphql_with(&document, variables.clone());
        let data = &reply["data"]["result"];
        if reply.get("errors").is_some() {
            return Err(format!("{} for {variables}", reply["errors"]));
        }
        let after = self.client.send("GET", &path, &[JSON], b"");
        let done = match builtin.verb {
            OperationVerb::List => holds_records(builtin, data),
            OperationVerb::Get => !data.is_null(),
            OperationVerb::Count => *data != json!(0) && *data != json!("0"),
            OperationVerb::Exists => *data == json!(true),
            OperationVerb::Aggregate => holds_records(builtin, data),
            OperationVerb::Create | OperationVerb::CreateMany => {
                self.count_records(builtin.record) == count + 1
            }
            OperationVerb::Upsert => {
                self.count_records(builtin.record) == count + 1 || has_changed(&variables, &after)
            }
            OperationVerb::Update | OperationVerb::UpdateMany | OperationVerb::Save => {
                has_changed(&variables, &after)
            }
            OperationVerb::Delete | OperationVerb::DeleteMany => after.status == 404,
            OperationVerb::Subscribe(_) | OperationVerb::SubscribeAll => true,
        };
        if done { Ok(()) } else { Err(format!("{reply} for {variables}, then {}", after.text())) }
    }

    fn count_records(&mut self, record: RecordTypeId) -> usize {
        let path = format!("/{}?size=1000", self.model.record(record).path);
        self.client.send("GET", &path, &[JSON], b"").json().as_array().map_or(0, Vec::len)
    }

    /// A round trip through REST, and one through the form, for each type.
    fn write_otherwise(&mut self) {
        for position in 0..self.model.records.len() {
            let record = RecordTypeId(position);
            if self.paths[position].is_none() {
                continue;
            }
            if let Err(reason) =
                self.write_through_rest(record).and_then(|()| self.write_through_form(record))
            {
                self.failures.push((self.model.record(record).name.clone(), reason));
            }
        }
    }

    fn write_through_rest(&mut self, record: RecordTypeId) -> Result<(), String> {
        let path = self.create_record(record).ok_or("REST creates no record")?;
        let fields = &self.model.record(record).fields;
        let field =
            fields.iter().find(|field| field.is_writable() && example_value(&self.model, field).is_some());
        if let Some(field) = field.filter(|field| !field.kind.is_reference()) {
            let patch = json!({ &field.input_name: example_value(&self.model, field) }).to_string();
            let headers = [JSON, ("Content-Type", "application/merge-patch+json")];
            expect_status(&self.client.send("PATCH", &path, &headers, patch.as_bytes()), 200)?;
        }
        expect_status(&self.client.send("GET", &path, &[JSON], b""), 200)?;
        expect_status(&self.client.send("DELETE", &path, &[JSON], b""), 204)?;
        expect_status(&self.client.send("GET", &path, &[JSON], b""), 404)
    }

    /// Embedded values and lists have controls of their own, which other tests fill.
    fn write_through_form(&mut self, record: RecordTypeId) -> Result<(), String> {
        let body = self.example_body(record).ok_or("no example")?;
        let members = body.as_object().ok_or("no object")?;
        if members.values().any(|value| value.is_array() || value.is_object()) {
            return Ok(());
        }
        let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pairs = members.iter().map(|(name, value)| (name.clone(), text(value)));
        let form: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let path = format!("/{}", self.model.record(record).path);
        expect_status(
            &self.client.send("GET", &format!("{path}/new"), &[("Accept", "text/html")], b""),
            200,
        )?;
        let count = self.count_records(record);
        expect_status(
            &self.client.send("POST", &path, &[FORM, ("Accept", "text/html")], form.as_bytes()),
            303,
        )?;
        match self.count_records(record) == count + 1 {
            true => Ok(()),
            false => Err("the form created no record".to_owned()),
        }
    }
}

/// The operation with a variable for each argument.
fn operation_document(
    model: &Model,
    root: &RootField,
    builtin: &BuiltinOperation,
    values: &ArgumentValues<'_>,
) -> (String, Json) {
    let (mut declared, mut passed, mut variables) = (Vec::new(), Vec::new(), json!({}));
    for (argument, (name, role)) in root.arguments.iter().zip(&builtin.argument_roles) {
        if let Some(value) = values.value_of(argument, role) {
            declared.push(format!("${name}: {}", argument.ty));
            passed.push(format!("{name}: ${name}"));
            variables[name] = value;
        }
    }
    let in_parentheses = |list: Vec<String>| match list.is_empty() {
        true => String::new(),
        false => format!("({})", list.join(", ")),
    };
    let fields = selection_text(model, None, builtin.record, &|_| None);
    let fields = format!("__typename {fields}");
    let selection = match builtin.result_shape {
        ResultShape::Record | ResultShape::List => format!("{{ {fields} }}"),
        ResultShape::Connection => model.wrapped_selection(root.ty.inner_name(), &fields),
        ResultShape::Payload => model.payload_selection(root.ty.inner_name(), &fields),
        ResultShape::Groups => "{ __typename }".to_owned(),
        ResultShape::Id | ResultShape::Boolean | ResultShape::Count => String::new(),
    };
    let keyword = if root.root_kind == RootKind::Mutation { "mutation" } else { "query" };
    let (declared, passed) = (in_parentheses(declared), in_parentheses(passed));
    (format!("{keyword} {declared} {{ result: {}{passed} {selection} }}", root.name), variables)
}

/// A list has records, and so has a connection or a page.
fn holds_records(builtin: &BuiltinOperation, data: &Json) -> bool {
    match builtin.result_shape {
        ResultShape::Connection => data.as_object().is_some_and(|page| {
            page.values().any(|list| list.as_array().is_some_and(|list| !list.is_empty()))
        }),
        ResultShape::Record
        | ResultShape::List
        | ResultShape::Payload
        | ResultShape::Id
        | ResultShape::Boolean
        | ResultShape::Groups
        | ResultShape::Count => data.as_array().is_some_and(|list| !list.is_empty()),
    }
}

/// True if the record has the text that was sent or, if none was, the other values.
fn has_changed(variables: &Json, after: &Reply) -> bool {
    if variables.to_string().contains(CHANGED_TEXT) {
        return after.text().contains(CHANGED_TEXT);
    }
    let record = after.json();
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let objects = variables.as_object().into_iter().flat_map(|members| members.values());
    let objects = objects.filter_map(Json::as_object).chain(variables.as_object());
    let sent = objects.flatten().filter_map(|(name, value)| Some((record.get(name)?, value)));
    after.status == 200 && sent.into_iter().all(|(now, value)| text(now) == text(value))
}

fn expect_status(reply: &Reply, status: u16) -> Result<(), String> {
    match reply.status == status {
        true => Ok(()),
        false => Err(format!(
            "{} instead of {status}: {}",
            reply.status,
            reply.text().chars().take(400).collect::<String>()
        )),
    }
}

fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
