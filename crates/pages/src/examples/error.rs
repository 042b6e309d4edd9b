//! API examples on error pages: the rejected request, so that it can be repeated.

use http::{Method, StatusCode, Uri};
use serde_json::Value as Json;

use trefoil_engine::graphql_document::DocumentTemplate;
use trefoil_engine::{Listing, OperationVerb};
use trefoil_http::errors::problem::Problem;
use trefoil_http::errors::render::ErrorContext;
use trefoil_model::access::AccessAction;
use trefoil_model::{RecordId, RecordTypeId};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::{Collection, SubPath, id_from_segment};

use crate::Pages;
use crate::examples::page::{ExampleBuilder, escape_brackets, shell_quote};
use crate::template_data::ApiExamples;

impl Pages {
    /// The examples, made of method and URL alone, since the store may have failed.
    pub fn error_examples(
        &self,
        resources: &ServedResources,
        problem: &Problem,
        context: &ErrorContext,
    ) -> ApiExamples {
        let builder = ExampleBuilder { pages: self, resources, origin: context.origin() };
        builder.rejected_examples(problem.status, &context.method, &context.uri)
    }
}

impl ExampleBuilder<'_> {
    /// Examples that create or delete for a rejected creation or deletion. A rejected replacement becomes examples that
    /// read the record: the submitted values are unknown here, and invented ones would do harm.
    pub fn rejected_examples(&self, status: StatusCode, method: &Method, uri: &Uri) -> ApiExamples {
        let found = self.resources.find_path(uri.path());
        let examples = match (found, method) {
            _ if status == StatusCode::METHOD_NOT_ALLOWED => None,
            (Some((collection, SubPath::New)), &Method::GET | &Method::HEAD)
            | (Some((collection, SubPath::List)), &Method::POST) => {
                let may_create = self.resources.engine.may(AccessAction::Create, collection.record);
                may_create.then(|| self.create_examples(collection.record, None))
            }
            (Some((collection, SubPath::Delete(id))), &Method::POST)
            | (Some((collection, SubPath::Record(id))), &Method::DELETE) => {
                self.parse_id(collection.record, id).map(|id| self.delete_examples(collection.record, &id))
            }
            (Some(_) | None, _) => None,
        };
        let mut examples = examples.unwrap_or_else(|| self.repeat_examples(found, uri));
        if status == StatusCode::METHOD_NOT_ALLOWED {
            let url = shell_quote(&format!("{}{}", self.origin, escape_brackets(request_address(uri))));
            let command =
                |media: &str| format!("curl -i -X {} -H 'Accept: {media}' {url}", shell_method(method));
            (examples.rest, examples.page) = (command("application/json"), command("text/html"));
        }
        ApiExamples { title: "Three ways to ask for this".to_owned(), ..examples }
    }

    fn repeat_examples(&self, found: Option<(&Collection, SubPath<'_>)>, uri: &Uri) -> ApiExamples {
        let address = request_address(uri);
        let Some((collection, sub_path)) = found else {
            return self.read_examples(None, address, address);
        };
        let (record, path) = (collection.record, &collection.path);
        match sub_path {
            SubPath::List | SubPath::New => self.read_examples(self.list_operation(record), address, address),
            SubPath::Record(id) => {
                self.read_examples(self.get_or_list_operation(record, id), address, address)
            }
            // A summary without its groups is the list.
            SubPath::Summary => self.read_examples(self.list_operation(record), path, address),
            // A form has no JSON representation, but its record does.
            SubPath::Edit(id) | SubPath::Delete(id) => {
                self.read_examples(self.get_or_list_operation(record, id), &format!("{path}/{id}"), address)
            }
            SubPath::Nested(id, nested) => {
                let text = self.nested_operation(record, id, nested, &Listing::default());
                self.read_examples(text.or_else(|| self.list_operation(nested.record)), address, address)
            }
            SubPath::NestedRecord(_, nested, id) => {
                self.read_examples(self.get_or_list_operation(nested.record, id), address, address)
            }
        }
    }

    pub fn list_operation(&self, record: RecordTypeId) -> Option<String> {
        let (values, listing) = (Json::Null, Listing::default());
        let document = DocumentTemplate {
            record,
            verb: OperationVerb::List,
            id: None,
            values: &values,
            listing: Some(&listing),
        };
        self.operation_text(&document)
    }

    pub fn get_operation(&self, record: RecordTypeId, id: &RecordId) -> Option<String> {
        let values = Json::Null;
        let (verb, id) = (OperationVerb::Get, Some(id));
        self.operation_text(&DocumentTemplate { record, verb, id, values: &values, listing: None })
    }

    /// The operation for the id of a path. A malformed id cannot be an argument: then the list instead.
    fn get_or_list_operation(&self, record: RecordTypeId, id: &str) -> Option<String> {
        match self.parse_id(record, id) {
            Some(id) => self.get_operation(record, &id),
            None => self.list_operation(record),
        }
    }

    fn parse_id(&self, record: RecordTypeId, id: &str) -> Option<RecordId> {
        id_from_segment(self.model().record(record).key_form(), id).ok()
    }
}

fn request_address(uri: &Uri) -> &str {
    uri.path_and_query().map_or_else(|| uri.path(), |address| address.as_str())
}

/// The method, quoted if it is not plain.
fn shell_method(method: &Method) -> String {
    let is_plain = method.as_str().bytes().all(|letter| letter.is_ascii_alphanumeric());
    if is_plain { method.to_string() } else { shell_quote(method.as_str()) }
}
