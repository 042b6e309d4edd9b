//! The operations that are generated for a record type, each as the SDL of its root field.

use apollo_compiler::Schema;

use crate::naming::names::{operation_names, unique_get_name};
use crate::sdl::generate::aggregate_types::{aggregate_name, having_name};
use crate::sdl::generate::generated_operations::GenerationFlags;
use crate::sdl::generate::input_types::{FieldTypes, create_name, update_name, writable_fields};
use crate::sdl::generate::result_types::{change_name, connection_name};
use crate::sdl::generate::where_types::where_name;
use crate::sdl::record_types::PartialModel;
use crate::searched_texts::searched_texts;
use crate::{KeySource, RecordType, RootType};

/// A root field that the schema may lack.
pub(super) struct GeneratedOperation {
    pub root: RootType,
    pub name: String,
    /// `book(id: ID!): Book`
    pub sdl: String,
    /// The types that it needs, besides those of the schema.
    pub types: Vec<String>,
}

/// Name and type of an argument.
type ArgumentText = (String, String);

/// All operations of the record type at this position that are wanted.
pub(super) fn operations_of(
    schema: &Schema,
    model: &PartialModel,
    position: usize,
    flags: GenerationFlags,
) -> Vec<GeneratedOperation> {
    let types = FieldTypes { schema, model };
    let record = &model.records[position];
    let mut list = OperationList { record, types, key: None, operations: Vec::new() };
    let key = record.field(record.id_field());
    if schema.get_object(&record.name).is_some_and(|ty| ty.fields.contains_key(key.name.as_str())) {
        list.key = Some((key.name.clone(), format!("{}!", list.types.key_type(position))));
    }
    if flags.queries {
        list.add_queries();
    }
    if flags.queries && flags.aggregates {
        list.add_aggregate();
    }
    if flags.mutations {
        list.add_mutations();
    }
    if flags.subscriptions {
        list.add_subscriptions();
    }
    list.operations
}

/// A field that a record type may lack: it counts or groups the records of a list.
pub(super) struct SummaryField {
    pub name: String,
    /// `ordersCount(where: OrderWhere): Int!`
    pub sdl: String,
    pub types: Vec<String>,
}

/// The fields that count and group related records of the type at `target`, beside the list `field`.
pub(super) fn summary_fields(
    schema: &Schema,
    model: &PartialModel,
    field: &str,
    target: usize,
) -> Vec<SummaryField> {
    let (types, record) = (FieldTypes { schema, model }, &model.records[target]);
    let list = OperationList { record, types, key: None, operations: Vec::new() };
    let summary = |ending: &str, (arguments, types): (Vec<ArgumentText>, Vec<String>), result: &str| {
        let name = format!("{field}{ending}");
        let sdl = format!("{name}{}: {result}", arguments_sdl(&arguments));
        (!arguments.is_empty()).then_some(SummaryField { name, sdl, types })
    };
    let groups = format!("[{}!]!", aggregate_name(record));
    let count = summary("Count", list.where_argument(""), "Int!");
    count.into_iter().chain(summary("Aggregate", list.aggregate_arguments(), &groups)).collect()
}

fn arguments_sdl(arguments: &[ArgumentText]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
    if arguments.is_empty() { String::new() } else { format!("({})", arguments.join(", ")) }
}

struct OperationList<'a> {
    record: &'a RecordType,
    types: FieldTypes<'a>,
    /// The argument that names a record; `None` if the key is hidden.
    key: Option<ArgumentText>,
    operations: Vec<GeneratedOperation>,
}

impl OperationList<'_> {
    fn add(
        &mut self,
        root: RootType,
        name: String,
        arguments: Vec<ArgumentText>,
        result: String,
        types: &[String],
    ) {
        let sdl = format!("{name}{}: {result}", arguments_sdl(&arguments));
        self.operations.push(GeneratedOperation { root, name, sdl, types: types.to_vec() });
    }

    fn add_queries(&mut self) {
        let record = self.record;
        let names = operation_names(&record.name);
        let [_, get] = &names.get;
        if let Some(key) = self.key.clone() {
            self.add(RootType::Query, get.clone(), vec![key], record.name.clone(), &[]);
        }
        for field in record.fields.iter().filter(|field| field.unique) {
            let argument =
                (field.input_name.clone(), format!("{}!", self.types.single_type(&record.name, field)));
            let name = unique_get_name(&record.name, &field.input_name);
            self.add(RootType::Query, name, vec![argument], record.name.clone(), &[]);
        }
        let paging = [("first", "Int"), ("after", "String"), ("page", "Int"), ("size", "Int")];
        let (arguments, mut types) = self.list_arguments(&paging);
        let result = format!("[{}!]!", record.name);
        self.add(RootType::Query, names.distinct_list(), arguments, result, &types);
        let cursors = [("first", "Int"), ("after", "String"), ("last", "Int"), ("before", "String")];
        let (arguments, _) = self.list_arguments(&cursors);
        types.push(connection_name(record));
        let result = format!("{}!", connection_name(record));
        self.add(RootType::Query, names.connection, arguments, result, &types);
    }

    fn add_aggregate(&mut self) {
        let names = operation_names(&self.record.name);
        let (arguments, types) = self.aggregate_arguments();
        let result = format!("[{}!]!", aggregate_name(self.record));
        self.add(RootType::Query, names.aggregate, arguments, result, &types);
    }

    /// The arguments of an aggregate, and the types that it needs.
    fn aggregate_arguments(&self) -> (Vec<ArgumentText>, Vec<String>) {
        let (mut arguments, mut types) = self.where_argument("");
        let having = having_name(self.record);
        let rest =
            [("groupBy", "[String!]"), ("having", &having), ("orderBy", "[String!]"), ("first", "Int")];
        let rest = rest.into_iter().chain(self.search_argument());
        let rest = rest.filter(|(name, _)| self.record.find_input_field(name).is_none());
        arguments.extend(rest.map(|(name, ty)| (name.to_owned(), ty.to_owned())));
        types.extend([aggregate_name(self.record), having]);
        (arguments, types)
    }

    /// The arguments of a list, and the types that they need. A field's name means the field, so an argument of that
    /// name is left out.
    fn list_arguments(&self, paging: &[(&str, &str)]) -> (Vec<ArgumentText>, Vec<String>) {
        let (mut arguments, types) = self.where_argument("");
        let rest = [("orderBy", "[String!]")].into_iter().chain(paging.iter().copied());
        let rest = rest.chain(self.search_argument());
        let rest = rest.filter(|(name, _)| self.record.find_input_field(name).is_none());
        arguments.extend(rest.map(|(name, ty)| (name.to_owned(), ty.to_owned())));
        (arguments, types)
    }

    /// `q`, if there are texts to search in.
    fn search_argument(&self) -> Option<(&'static str, &'static str)> {
        let model = self.types.model;
        let texts = searched_texts(&model.records, &model.embedded, self.record);
        (!texts.is_empty()).then_some(("q", "String"))
    }

    /// `where`, if there is something to filter by. `mark` is `!` where it is required.
    fn where_argument(&self, mark: &str) -> (Vec<ArgumentText>, Vec<String>) {
        let is_taken = self.record.find_input_field("where").is_some();
        if is_taken || !self.types.has_conditions(self.record) {
            return (Vec::new(), Vec::new());
        }
        let name = where_name(&self.record.name);
        (vec![("where".to_owned(), format!("{name}{mark}"))], vec![name])
    }

    /// The argument with the values of a write: not called like a field, which it would set.
    fn input_argument(&self, ty: String) -> ArgumentText {
        let names = ["input", "data", "values"].into_iter();
        let name = { names }.find(|name| self.record.find_input_field(name).is_none());
        (name.unwrap_or("newValues").to_owned(), ty)
    }

    fn add_mutations(&mut self) {
        let record = self.record;
        let names = operation_names(&record.name);
        let result = format!("{}!", record.name);
        let is_changeable = writable_fields(record).next().is_some();
        let has_input = is_changeable || record.key_source == KeySource::Client;
        let (create, update) = (create_name(record), update_name(record));
        if has_input {
            let input = self.input_argument(format!("{create}!"));
            self.add(
                RootType::Mutation,
                names.create,
                vec![input],
                result.clone(),
                std::slice::from_ref(&create),
            );
            let inputs = self.input_argument(format!("[{create}!]!"));
            let results = format!("[{}!]!", record.name);
            self.add(
                RootType::Mutation,
                names.create_many,
                vec![inputs],
                results,
                std::slice::from_ref(&create),
            );
        } else {
            self.add(RootType::Mutation, names.create, Vec::new(), result.clone(), &[]);
        }
        let expected_version = || ("expectedVersion".to_owned(), "Int".to_owned());
        let update_input = self.input_argument(format!("{update}!"));
        let (matching, where_types) = self.where_argument("!");
        if let Some(key) = self.key.clone().filter(|_| is_changeable) {
            let arguments = vec![key, update_input.clone(), expected_version()];
            self.add(
                RootType::Mutation,
                names.update,
                arguments,
                result.clone(),
                std::slice::from_ref(&update),
            );
        }
        if is_changeable && !matching.is_empty() {
            let arguments = [matching.clone(), vec![update_input]].concat();
            let types = [where_types.clone(), vec![update]].concat();
            self.add(RootType::Mutation, names.update_many, arguments, "Int!".to_owned(), &types);
        }
        let has_unique = record.fields.iter().any(|field| field.unique && field.is_writable());
        if (has_unique || record.accepts_given_key()) && has_input && record.find_input_field("by").is_none()
        {
            let by = ("by".to_owned(), "[String!]!".to_owned());
            let arguments = vec![by, self.input_argument(format!("{create}!"))];
            self.add(RootType::Mutation, names.upsert, arguments, result.clone(), &[create]);
        }
        if let Some(key) = self.key.clone() {
            self.add(RootType::Mutation, names.delete, vec![key, expected_version()], result, &[]);
        }
        if !matching.is_empty() {
            self.add(RootType::Mutation, names.delete_many, matching, "Int!".to_owned(), &where_types);
        }
    }

    fn add_subscriptions(&mut self) {
        let names = operation_names(&self.record.name);
        for name in [names.created, names.updated, names.deleted] {
            let (arguments, types) = self.where_argument("");
            let result = format!("{}!", self.record.name);
            self.add(RootType::Subscription, name, arguments, result, &types);
        }
        // A field of the change must not have the name of the field with the record.
        let [_, record_field] = &names.get;
        if self.key.is_some() && !matches!(record_field.as_str(), "kind" | "id" | "version" | "changed") {
            let (arguments, mut types) = self.where_argument("");
            types.push(change_name(self.record));
            let result = format!("{}!", change_name(self.record));
            self.add(RootType::Subscription, names.changed, arguments, result, &types);
        }
    }
}
