//! The initial tabs of GraphiQL: example operations for each record type.

use apollo_compiler::ast;
use serde_json::{Value as Json, json};

use trefoil_engine::abstract_query_text::abstract_query_text;
use trefoil_engine::graphql_document::{DocumentTemplate, selection_text};
use trefoil_engine::{ChangeKind, Condition, Engine, Listing, OperationVerb, ResolverBinding, SortKey};
use trefoil_model::access::AccessAction;
use trefoil_model::values::example_values;
use trefoil_model::{Field, FilterOperator, RecordTypeId, Scalar, Value, ValueType};

/// The operations of a tab after its lists, in order.
const TAB_VERBS: [OperationVerb; 5] = [
    OperationVerb::Get,
    OperationVerb::Create,
    OperationVerb::Subscribe(ChangeKind::Created),
    OperationVerb::Subscribe(ChangeKind::Updated),
    OperationVerb::Subscribe(ChangeKind::Deleted),
];

/// One tab per record type, interface and union that has operations.
pub fn example_tabs(engine: &Engine) -> Json {
    let model = engine.model();
    let records = (0..model.records.len()).map(RecordTypeId);
    let tabs = records.filter_map(|record| record_tab(engine, record));
    let abstract_tabs = model.abstract_types().filter_map(|name| abstract_tab(engine, name));
    tabs.chain(abstract_tabs).map(|query| json!({ "query": query })).collect()
}

/// The operations over an interface or union.
fn abstract_tab(engine: &Engine, type_name: &str) -> Option<String> {
    let model = engine.model();
    let roots = model.root_fields.iter().zip(engine.bindings());
    let operations = roots.filter_map(|(root, binding)| match binding {
        ResolverBinding::Abstract(operation) if operation.type_name == type_name => {
            abstract_query_text(engine, root, operation)
        }
        ResolverBinding::Abstract(_)
        | ResolverBinding::Builtin(_)
        | ResolverBinding::Registered(_)
        | ResolverBinding::Missing(_) => None,
    });
    let operations: Vec<String> = operations.collect();
    (!operations.is_empty()).then(|| pretty_document(operations.join("\n")))
}

fn record_tab(engine: &Engine, record: RecordTypeId) -> Option<String> {
    let model = engine.model();
    let record_type = model.record(record);
    let id = example_values::example_id(record_type.key_form());
    let selection =
        selection_text(engine.model(), engine.access_view().map(AsRef::as_ref), record, &|_| None);
    let values = example_values::example_input(model, record_type);
    let mut values = values.unwrap_or_default();
    if let Some(members) = values.as_object_mut() {
        let may_set = |name: &str| {
            let field = record_type.find_input_field(name);
            field.is_none_or(|field| engine.may_set(AccessAction::Create, record, field))
        };
        members.retain(|name, _| may_set(name));
    }
    let request = |verb: OperationVerb| DocumentTemplate {
        record,
        verb,
        id: Some(&id),
        values: &values,
        listing: None,
    };
    let list = request(OperationVerb::List).render(engine, &selection);
    let others = TAB_VERBS.iter().filter_map(|verb| request(*verb).render(engine, &selection));
    let more_lists = [filtered_list(engine, record, &selection), groups(engine, record)];
    let operations: Vec<String> =
        list.into_iter().chain(more_lists.into_iter().flatten()).chain(others).collect();
    (!operations.is_empty()).then(|| pretty_document(operations.join("\n")))
}

/// The list with a condition and an order, if its operation takes both.
fn filtered_list(engine: &Engine, record: RecordTypeId, selection: &str) -> Option<String> {
    let owner = engine.model().record(record);
    let mut titles = owner.title.fields().filter(|id| engine.shows_field(record, *id));
    let title = titles.find(|id| owner.field(*id).kind.is_text())?;
    let (operator, operand) = (FilterOperator::CONTAINS, Value::String("a".to_owned()));
    let condition = Condition::compare(title, operator, operand);
    let sort_keys = vec![SortKey::by_field(title, true)];
    let listing = Listing { conditions: vec![condition], sort_keys, ..Listing::default() };
    let (verb, values) = (OperationVerb::List, Json::Null);
    let request = DocumentTemplate { record, verb, id: None, values: &values, listing: Some(&listing) };
    let is_whole = request.unexpressed_parts(engine).is_empty();
    request.render_named(engine, selection, "Filtered").filter(|_| is_whole)
}

/// The number of records for each value of a field that groups them well.
fn groups(engine: &Engine, record: RecordTypeId) -> Option<String> {
    let owner = engine.model().record(record);
    let is_shown =
        |field: &Field| owner.find_field(&field.name).is_some_and(|id| engine.shows_field(record, id));
    let is_flag = |field: &Field| field.kind.scalar() == Some(Scalar::Boolean);
    let is_enum = |field: &Field| matches!(field.kind.value_type(), Some(ValueType::Enum(_)));
    let kinds: [&dyn Fn(&Field) -> bool; 3] = [&is_enum, &is_flag, &|field| field.kind.is_reference()];
    let field =
        kinds.iter().find_map(|is_kind| owner.fields.iter().find(|field| is_kind(field) && is_shown(field)));
    let values = field.map_or(Json::Null, |field| json!({ "groupBy": [field.name] }));
    let verb = OperationVerb::Aggregate;
    DocumentTemplate { record, verb, id: None, values: &values, listing: None }.render(engine, "")
}

/// One field per line, because GraphiQL cuts long lines off at its edge.
fn pretty_document(text: String) -> String {
    ast::Document::parse(text.as_str(), "tab.graphql").map_or(text, |document| document.to_string())
}
