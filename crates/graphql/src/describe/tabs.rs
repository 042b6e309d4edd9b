//! The tabs that GraphiQL opens with: operations of the schema that run as they are.

use serde_json::{Value as Json, json};

use trefoil_engine::graphql_document::{Wanted, selection};
use trefoil_engine::{Deed, Engine, Verb};
use trefoil_model::TypeId;
use trefoil_model::values::example_values;

/// What a tab shows of a record type, in order.
const SHOWN: [Verb; 6] = [
    Verb::List,
    Verb::Get,
    Verb::Create,
    Verb::Watch(Deed::Created),
    Verb::Watch(Deed::Updated),
    Verb::Watch(Deed::Deleted),
];

/// One tab for each record type that has an operation.
pub fn of(engine: &Engine) -> Json {
    let model = engine.model();
    let records = (0..model.records.len()).map(TypeId);
    records.filter_map(|record| tab(engine, record)).map(|query| json!({ "query": query })).collect()
}

fn tab(engine: &Engine, record: TypeId) -> Option<String> {
    let model = engine.model();
    let fields = &model.record(record).fields;
    let (shown, values) = (selection(model, fields, &|_| None), example_values::given(model, fields));
    let values = values.unwrap_or_default();
    let operations = SHOWN.iter().filter_map(|verb| {
        let wanted = Wanted { record, verb: *verb, id: 1, values: &values, listing: None };
        wanted.document(engine, &shown)
    });
    let operations: Vec<String> = operations.collect();
    (!operations.is_empty()).then(|| operations.join("\n"))
}
