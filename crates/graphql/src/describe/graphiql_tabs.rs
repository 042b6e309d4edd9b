//! The initial tabs of GraphiQL: example operations for each record type.

use apollo_compiler::ast;
use serde_json::{Value as Json, json};

use trefoil_engine::abstract_document::abstract_document;
use trefoil_engine::graphql_document::{DocumentRequest, selection_text};
use trefoil_engine::{ChangeKind, Engine, OperationVerb, ResolverBinding};
use trefoil_model::RecordTypeId;
use trefoil_model::values::example_values;

/// The operations of a tab, in order.
const TAB_VERBS: [OperationVerb; 6] = [
    OperationVerb::List,
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
            abstract_document(model, root, operation)
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
    let selection = selection_text(model, record_type, &|_| None);
    let values = example_values::example_input(model, record_type);
    let values = values.unwrap_or_default();
    let operations = TAB_VERBS.iter().filter_map(|verb| {
        let request = DocumentRequest { record, verb: *verb, id: Some(&id), values: &values, listing: None };
        request.render(engine, &selection)
    });
    let operations: Vec<String> = operations.collect();
    (!operations.is_empty()).then(|| pretty_document(operations.join("\n")))
}

/// One field per line, because GraphiQL cuts long lines off at its edge.
fn pretty_document(text: String) -> String {
    ast::Document::parse(text.as_str(), "tab.graphql").map_or(text, |document| document.to_string())
}
