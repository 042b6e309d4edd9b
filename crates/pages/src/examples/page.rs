//! `ExampleBuilder`: the GraphQL operation, the REST call and the browser's request equivalent to a page.

use http::header::HOST;
use http::request::Parts;
use http::{StatusCode, Uri};
use serde_json::{Value as Json, json};

use trefoil_engine::graphql_document::{self, DocumentTemplate, selection_text};
use trefoil_engine::{Listing, OperationVerb};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::form_pairs::{self, FormPairs, percent_encode};
use trefoil_model::access::AccessAction;
use trefoil_model::{Model, RecordId, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::{Collection, NestedCollection, SubPath, id_from_segment, record_path};
use trefoil_resources::list_query::{ListQuery, ParamSet, api_value};

use crate::Pages;
use crate::template_data::{ApiExamples, GraphqlExample};

pub const EXAMPLES_TITLE: &str = "Three ways to this page";

/// For a page without an operation in the schema; valid with any schema.
pub const NO_OPERATION: &str = "# The schema has no operation for this page.\n{ __typename }\n";

/// The subject of a page.
#[derive(Debug, Clone, Copy)]
pub enum PageSubject<'a> {
    /// The start page: examples for the first record type.
    Home,
    /// A list of records, with the URL of the page.
    List {
        record: RecordTypeId,
        address: &'a str,
    },
    Record {
        record: RecordTypeId,
        id: &'a RecordId,
        address: &'a str,
    },
    Delete {
        record: RecordTypeId,
        id: &'a RecordId,
    },
    /// A rejected request.
    Rejected,
    PlainList {
        path: &'a str,
    },
}

impl Pages {
    pub fn api_examples(
        &self,
        resources: &ServedResources,
        request: &Parts,
        subject: PageSubject<'_>,
    ) -> ApiExamples {
        let builder = self.example_builder(resources, request);
        match subject {
            PageSubject::Home => builder.home_examples(),
            PageSubject::List { record, address } => builder.list_examples(record, address),
            PageSubject::Record { record, id, address } => builder.record_examples(record, id, address),
            PageSubject::Delete { record, id } => builder.delete_examples(record, id),
            PageSubject::Rejected => {
                builder.rejected_examples(StatusCode::BAD_REQUEST, &request.method, &request.uri)
            }
            PageSubject::PlainList { path } => builder.read_examples(None, path, path),
        }
    }

    pub fn example_builder<'g>(
        &'g self,
        resources: &'g ServedResources,
        request: &Parts,
    ) -> ExampleBuilder<'g> {
        let host = request.headers.get(HOST);
        let client = request.extensions.get::<ClientInfo>();
        let origin = client.map_or_else(|| "http://localhost".to_owned(), |client| client.origin(host));
        ExampleBuilder { pages: self, resources, origin }
    }
}

/// Builds the examples of one application.
pub struct ExampleBuilder<'g> {
    pub pages: &'g Pages,
    pub resources: &'g ServedResources,
    /// Scheme and host: `https://shop.example`.
    pub origin: String,
}

impl ExampleBuilder<'_> {
    pub fn model(&self) -> &Model {
        self.resources.engine.model()
    }

    pub fn collection_path(&self, record: RecordTypeId) -> &str {
        &self.resources.collection(record).path
    }

    /// Selects the stored fields, and id and title of referenced records.
    fn selection_text(&self, record: RecordTypeId) -> String {
        let related = |target: RecordTypeId| {
            let record = self.model().record(target);
            let title = &self.pages.labels_of(target).title;
            let title = title.fields().map(|field| record.field(field).name.as_str());
            let words: Vec<&str> = record.key_in_schema().into_iter().chain(title).collect();
            (!words.is_empty()).then(|| words.join(" "))
        };
        let engine = &self.resources.engine;
        selection_text(engine.model(), engine.access_view().map(AsRef::as_ref), record, &related)
    }

    pub fn operation_text(&self, document: &DocumentTemplate<'_>) -> Option<String> {
        document.render(&self.resources.engine, &self.selection_text(document.record))
    }

    fn home_examples(&self) -> ApiExamples {
        let is_shown =
            |collection: &&Collection| self.resources.engine.may(AccessAction::Read, collection.record);
        match self.resources.collections.iter().find(is_shown) {
            Some(Collection { record, path, .. }) => {
                let title = format!("Three ways to the {}", self.pages.labels_of(*record).plural_noun);
                ApiExamples { title, ..self.list_examples(*record, path) }
            }
            None => self.read_examples(None, "/openapi.json", "/"),
        }
    }

    fn list_examples(&self, record: RecordTypeId, address: &str) -> ApiExamples {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        let (engine, api_query) = (&self.resources.engine, self.api_query(record, query));
        let uri = format!("/?{api_query}").parse::<Uri>().unwrap_or_default();
        let parsed = ListQuery::parse(
            &uri,
            engine.model(),
            engine.model().record(record),
            engine.limits(),
            ParamSet::List,
        );
        let listing = parsed.map(|query| query.listing).unwrap_or_default();
        let text = match self.resources.find_path(path) {
            Some((parent, SubPath::Nested(id, nested))) => {
                self.nested_operation(parent.record, id, nested, &listing)
            }
            Some(_) | None => {
                let values = Json::Null;
                let document = DocumentTemplate {
                    record,
                    verb: OperationVerb::List,
                    id: None,
                    values: &values,
                    listing: Some(&listing),
                };
                self.operation_text(&document)
                    .map(|text| with_missing_arguments(&document.unexpressed_parts(engine), text))
            }
        };
        let is_text_list =
            self.resources.collection(record).texts.is_some() && path == self.collection_path(record);
        let fields = if is_text_list { "fields=%2A" } else { "" };
        let query: Vec<&str> = [fields, &api_query].into_iter().filter(|part| !part.is_empty()).collect();
        let json = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
        self.read_examples(text, &json, address)
    }

    /// The operation for groups of records; `None` if the schema has none.
    pub fn groups_operation(
        &self,
        record: RecordTypeId,
        [group_keys, measures, orders]: [&[&str]; 3],
        listing: &Listing,
    ) -> Option<String> {
        let values = json!({ "groupBy": group_keys, "measures": measures, "orderBy": orders });
        let verb = OperationVerb::Aggregate;
        let document = DocumentTemplate { record, verb, id: None, values: &values, listing: Some(listing) };
        let text = self.operation_text(&document)?;
        Some(with_missing_arguments(&document.unexpressed_group_parts(&self.resources.engine), text))
    }

    /// The parameters of a page's query that REST accepts: pages ignore unknown ones, and have a page number beside a cursor.
    fn api_query(&self, record: RecordTypeId, query: &str) -> String {
        let engine = &self.resources.engine;
        let pairs: FormPairs = form_pairs::parse_urlencoded(query, "the query").unwrap_or_default();
        let has_cursor = pairs.iter().any(|(name, value)| name == "after" && !value.is_empty());
        let accepted = pairs.iter().filter(|(name, value)| {
            let uri = format!("/?{}={}", percent_encode(name), percent_encode(value))
                .parse::<Uri>()
                .unwrap_or_default();
            let is_ignored = value.is_empty() || name == "fields" || (has_cursor && name == "page");
            let (model, limits) = (engine.model(), engine.limits());
            let parsed = || ListQuery::parse(&uri, model, model.record(record), limits, ParamSet::List);
            !is_ignored && parsed().is_ok()
        });
        let model = engine.model();
        let accepted = accepted.map(|(name, value)| {
            let value = api_value(model, model.record(record), name, value);
            format!("{}={}", percent_encode(name), percent_encode(&value))
        });
        accepted.collect::<Vec<_>>().join("&")
    }

    /// The operation for a list nested in its parent record.
    pub fn nested_operation(
        &self,
        parent: RecordTypeId,
        id: &str,
        nested: &NestedCollection,
        listing: &Listing,
    ) -> Option<String> {
        let owner = self.model().record(parent);
        if !self.resources.engine.shows_field(parent, nested.field) {
            return None;
        }
        let field = owner.field(nested.field);
        let key = owner.key_in_schema().map(|key| format!("{key} ")).unwrap_or_default();
        let selection = format!("{key}{} {{ {} }}", field.name, self.selection_text(nested.record));
        let (values, id) = (Json::Null, id_from_segment(owner.key_form(), id).ok()?);
        let id = Some(&id);
        let document =
            DocumentTemplate { record: parent, verb: OperationVerb::Get, id, values: &values, listing: None };
        let text = document.render(&self.resources.engine, &selection)?;
        Some(with_missing_arguments(
            &graphql_document::unexpressed_listing_parts(self.model().record(nested.record), listing, |_| {
                false
            }),
            text,
        ))
    }

    fn record_examples(&self, record: RecordTypeId, id: &RecordId, address: &str) -> ApiExamples {
        let values = Json::Null;
        let document = DocumentTemplate {
            record,
            verb: OperationVerb::Get,
            id: Some(id),
            values: &values,
            listing: None,
        };
        let path = address.split_once('?').map_or(address, |(path, _)| path);
        self.read_examples(self.operation_text(&document), path, address)
    }

    /// Examples of a read. `text` is the operation; `None` if the schema has none.
    pub fn read_examples(&self, text: Option<String>, json: &str, page: &str) -> ApiExamples {
        let origin = &self.origin;
        ApiExamples {
            title: EXAMPLES_TITLE.to_owned(),
            graphql: self.graphql_example(text.unwrap_or_else(|| NO_OPERATION.to_owned())),
            rest: format!(
                "curl -H 'Accept: application/json' {}",
                shell_quote(&format!("{origin}{}", escape_brackets(json)))
            ),
            page: format!(
                "curl -H 'Accept: text/html' {}",
                shell_quote(&format!("{origin}{}", escape_brackets(page)))
            ),
        }
    }

    pub fn delete_examples(&self, record: RecordTypeId, id: &RecordId) -> ApiExamples {
        let values = Json::Null;
        let document = DocumentTemplate {
            record,
            verb: OperationVerb::Delete,
            id: Some(id),
            values: &values,
            listing: None,
        };
        let url = format!("{}{}", self.origin, record_path(self.collection_path(record), id));
        ApiExamples {
            title: EXAMPLES_TITLE.to_owned(),
            graphql: self.graphql_example(
                self.operation_text(&document).unwrap_or_else(|| self.fallback_operation(record, Some(id))),
            ),
            rest: format!("curl -i -X DELETE -H 'Accept: application/json' {}", shell_quote(&url)),
            page: format!("curl -i -X POST {}", shell_quote(&format!("{url}/delete"))),
        }
    }

    /// If the schema has no operation for a write: one that reads the record or the list.
    pub fn fallback_operation(&self, record: RecordTypeId, id: Option<&RecordId>) -> String {
        let get = id.and_then(|id| self.get_operation(record, id));
        let text = get.or_else(|| self.list_operation(record));
        let remark = "# The schema has no operation for this. This one reads the data instead.\n";
        text.map_or_else(|| NO_OPERATION.to_owned(), |text| format!("{remark}{text}"))
    }

    pub fn graphql_example(&self, text: String) -> GraphqlExample {
        let run = self.pages.site_view.graphiql.then(|| format!("/graphql?query={}", percent_encode(&text)));
        GraphqlExample { text, run }
    }
}

/// Adds a comment on the parts of the page that the operation cannot express.
pub fn with_missing_arguments(missing: &[String], text: String) -> String {
    if missing.is_empty() {
        text
    } else {
        format!("# The operation has no argument for: {}\n{text}", missing.join(", "))
    }
}

/// Escapes brackets and braces, which curl expands to several URLs.
pub fn escape_brackets(address: &str) -> String {
    let table = [('[', "%5B"), (']', "%5D"), ('{', "%7B"), ('}', "%7D")];
    table.iter().fold(address.to_owned(), |address, (letter, escaped)| address.replace(*letter, escaped))
}

/// Quotes a text as one word of a POSIX shell.
pub fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_quote_makes_one_word() {
        for text in ["", "plain", "it's", "$(reboot) `x` \"y\" \\ !z", "a\nb", "';'"] {
            let line = format!("printf %s {}", shell_quote(text));
            let output = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{line}");
        }
    }
}
