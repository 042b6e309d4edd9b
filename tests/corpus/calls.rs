//! That the operations of real schemas do what they mean when they are called, and that REST and forms write the same
//! records.
//!
//! Every bound query and mutation is called with all arguments that have a role, and what it did is looked up through
//! REST. Then a record of each type is created, read, listed, changed and deleted through REST, and by its forms. On
//! PostgreSQL every eighth schema is called, in the long form all. Those that fail are listed in `accepted_failures.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use trefoil::{App, Config, Trefoil};
use trefoil_config::{DatabaseLocation, PostgresUrl};
use trefoil_engine::graphql_document::selection_text;
use trefoil_engine::{
    ArgumentRole, BuiltinOperation, OperationVerb, ResolverBinding, ResolverRegistry, ResultShape, binding,
};
use trefoil_model::values::example_values::{example_input, example_value};
use trefoil_model::{Model, RecordTypeId, RootField, RootType, SourceFile, parse_schema};

use super::argument_values::{ArgumentValues, CHANGED_TEXT};
use super::{DRAWN, FACTS, FactSchema, JudgedField, read_schemas};
use crate::support::{Client, Reply, Server, is_long, postgres};

/// What fails, one per line with its schema. May only get shorter.
const ACCEPTED_FAILURES: &str = include_str!("accepted_failures.txt");

/// The share of the operations on records that must work, in percent. May only grow.
const MIN_WORKING: usize = 85;
const MIN_DRAWN_WORKING: usize = 85;

const JSON: (&str, &str) = ("Accept", "application/json");
const JSON_BODY: (&str, &str) = ("Content-Type", "application/json");
const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

#[test]
fn bound_operations_work_when_called() {
    for (corpus, facts, min_share) in
        [("the first", FACTS, MIN_WORKING), ("the second", DRAWN, MIN_DRAWN_WORKING)]
    {
        let calls = call_all(read_schemas(facts), || DatabaseLocation::Memory);
        let share = calls.working * 100 / calls.judged;
        let shown = format!("{} of {} operations of {corpus} corpus work", calls.working, calls.judged);
        eprintln!("{shown}");
        assert!(share >= min_share, "{shown}, {share} % instead of {min_share} %");
    }
}

#[test]
fn bound_operations_work_when_called_on_postgres() {
    let is_chosen = |position: usize| is_long() || position.is_multiple_of(8);
    let schemas = read_schemas(FACTS).into_iter().chain(read_schemas(DRAWN)).enumerate();
    let chosen = schemas.filter(|(position, _)| is_chosen(*position)).map(|(_, schema)| schema);
    call_all(chosen.collect(), || {
        DatabaseLocation::Postgres(PostgresUrl::parse(&postgres::database()).expect("a URL"))
    });
}

/// Calls the operations of the applications in a folder, to see how a sample of real schemas does:
/// `CORPUS_FOLDER=/tmp/sample cargo test --workspace --test tests corpus::calls::folder -- --nocapture`.
#[test]
fn operations_of_a_folder_work_when_called() {
    let Some(folder) = std::env::var_os("CORPUS_FOLDER") else { return };
    let (mut called, mut failed) = (0, Vec::new());
    for schema in folder_schemas(Path::new(&folder)) {
        let mut caller = OperationCaller::start(&schema, DatabaseLocation::Memory);
        called += caller.call_operations();
        failed.extend(
            caller.failures.iter().map(|(name, reason)| format!("{} {name}: {reason}", schema.number)),
        );
    }
    assert!(failed.is_empty(), "{} of {called} fail:\n{}", failed.len(), failed.join("\n"));
}

/// Each sub-folder that loads, with its schema files as one.
fn folder_schemas(folder: &Path) -> Vec<FactSchema> {
    let apps = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let apps = apps.map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), path));
    let apps = apps.map(|(number, path)| (number, App::load_with_diagnostics(&path).0.schema));
    let schemas = apps.filter(|(number, files)| {
        let loads = parse_schema(files, &[]).is_ok();
        if !loads {
            eprintln!("{number} does not load");
        }
        loads
    });
    let sdl =
        |files: Vec<SourceFile>| files.iter().map(|file| file.text.as_str()).collect::<Vec<_>>().join("\n");
    schemas.map(|(number, files)| FactSchema { number, sdl: sdl(files), fields: Vec::new() }).collect()
}

/// How many operations a careful reader expects to work, and how many do.
struct CallCount {
    judged: usize,
    working: usize,
}

/// Calls the operations of the schemas, and compares what fails with the list.
fn call_all(schemas: Vec<FactSchema>, database: impl Fn() -> DatabaseLocation) -> CallCount {
    let (mut called, mut types, mut failures) = (0, 0, BTreeMap::new());
    let mut count = CallCount { judged: 0, working: 0 };
    let mut chosen = BTreeSet::new();
    for schema in schemas {
        let mut caller = OperationCaller::start(&schema, database());
        called += caller.call_operations();
        let judged = schema.fields.iter().filter(|field| field.is_operation());
        count.judged += judged.clone().count();
        count.working += judged.filter(|field| caller.works(field)).count();
        types += caller.write_otherwise();
        let named = caller.failures.into_iter();
        failures.extend(named.map(|(name, reason)| (format!("{} {name}", schema.number), reason)));
        chosen.insert(schema.number);
    }
    eprintln!("{called} operations were called; records of {types} types went through REST and forms");
    let is_called = |line: &&str| line.split(' ').next().is_some_and(|number| chosen.contains(number));
    let accepted: BTreeSet<&str> = ACCEPTED_FAILURES.lines().filter(is_called).collect();
    let new = failures.iter().filter(|(name, _)| !accepted.contains(name.as_str()));
    let new: Vec<String> = new.map(|(name, reason)| format!("{name}: {reason}")).collect();
    assert!(new.is_empty(), "{} of {called} fail:\n{}", new.len(), new.join("\n"));
    let working: Vec<&&str> = accepted.iter().filter(|name| !failures.contains_key(**name)).collect();
    assert!(working.is_empty(), "these work now, so remove them from the list: {working:?}");
    count
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

    /// True if the field is bound to what it means, and did it when it was called.
    fn works(&self, field: &JudgedField) -> bool {
        let is_failure = |name: &str| {
            let begin = format!("{:?} {} as ", field.root, field.name);
            name.starts_with(&begin)
        };
        let has_failed = self.failures.iter().any(|(name, _)| is_failure(name));
        field.is_bound(&self.model, &self.bindings) && !has_failed
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
            if self.model.root_fields[position].root_kind == RootType::Subscription {
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
        self.link_record(builtin, &path)?;
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
            OperationVerb::List => holds_records(builtin, data) || self.asks_for_owned(builtin),
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

    /// Links the record to the first ones of the other types by which the operation asks.
    fn link_record(&mut self, builtin: &BuiltinOperation, path: &str) -> Result<(), String> {
        let record = self.model.record(builtin.record);
        let mut patch = json!({});
        for (_, role) in &builtin.argument_roles {
            let ArgumentRole::RelatedField(relation, _) = role else { continue };
            let field = record.field(*relation);
            let Some(link) = field.kind.link() else { continue };
            let first = self.paths[link.target.0].as_deref().ok_or("no record to link to")?;
            patch[&field.input_name] = json!([last_segment(first)]);
        }
        if patch == json!({}) {
            return Ok(());
        }
        let headers = [JSON, ("Content-Type", "application/merge-patch+json")];
        expect_status(&self.client.send("PATCH", path, &headers, patch.to_string().as_bytes()), 200)
    }

    /// True if the operation asks for what a record owns, which a new one has not.
    fn asks_for_owned(&self, builtin: &BuiltinOperation) -> bool {
        let record = self.model.record(builtin.record);
        builtin.argument_roles.iter().any(|(_, role)| {
            matches!(role, ArgumentRole::RelatedField(relation, _) if record.field(*relation).kind.inverse().is_some())
        })
    }

    fn count_records(&mut self, record: RecordTypeId) -> usize {
        let path = format!("/{}?size=1000", self.model.record(record).path);
        self.client.send("GET", &path, &[JSON], b"").json().as_array().map_or(0, Vec::len)
    }

    /// The keys of the records, as they stand in paths.
    fn record_keys(&mut self, record: RecordTypeId) -> BTreeSet<String> {
        let record = self.model.record(record);
        let key = &record.field(record.id_field()).name;
        let list = self.client.send("GET", &format!("/{}?size=1000", record.path), &[JSON], b"").json();
        let keys = list.as_array().into_iter().flatten().filter_map(|item| item.get(key));
        keys.map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned)).collect()
    }

    /// A round trip through REST, and one through the forms, for each type; gives the number of types.
    fn write_otherwise(&mut self) -> usize {
        let mut types = 0;
        for position in 0..self.model.records.len() {
            let record = RecordTypeId(position);
            if self.paths[position].is_none() {
                continue;
            }
            types += 1;
            if let Err(reason) =
                self.write_through_rest(record).and_then(|()| self.write_through_form(record))
            {
                self.failures.push((self.model.record(record).name.clone(), reason));
            }
        }
        types
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
        if self.count_records(record) == 0 {
            return Err("the list is empty".to_owned());
        }
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
        let html = ("Accept", "text/html");
        let path = format!("/{}", self.model.record(record).path);
        expect_status(&self.client.send("GET", &format!("{path}/new"), &[html], b""), 200)?;
        let before = self.record_keys(record);
        expect_status(&self.client.send("POST", &path, &[FORM, html], form.as_bytes()), 303)?;
        let created = self.record_keys(record).into_iter().find(|key| !before.contains(key));
        let own_path = format!("{path}/{}", created.ok_or("the form created no record")?);
        expect_status(&self.client.send("GET", &format!("{own_path}/edit"), &[html], b""), 200)?;
        expect_status(&self.client.send("POST", &own_path, &[FORM, html], form.as_bytes()), 303)?;
        expect_status(&self.client.send("POST", &format!("{own_path}/delete"), &[FORM, html], b""), 303)?;
        match self.record_keys(record) == before {
            true => Ok(()),
            false => Err("the form deleted no record".to_owned()),
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
        ResultShape::Id | ResultShape::Boolean | ResultShape::Nothing | ResultShape::Count => String::new(),
    };
    let keyword = if root.root_kind == RootType::Mutation { "mutation" } else { "query" };
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
        | ResultShape::Nothing
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
