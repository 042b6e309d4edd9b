//! Operations that link records and remove links.

use serde_json::{Map, Value as Json, json};

use trefoil_model::values::example_values;
use trefoil_resources::collection::nested_collections;

use crate::openapi::collections::CollectionDescriber;
use crate::openapi::parameters::parameter_reference;
use crate::openapi::responses::{OperationResponses, ProblemFormat};
use crate::openapi::unique_names::{UniqueNames, camel_case, pascal_case};
use crate::openapi::values::{ValueContext, key_schema};

impl CollectionDescriber<'_> {
    /// Adds the operations to the paths of linked records.
    pub fn add_link_operations(&self, names: &mut UniqueNames, paths: &mut Map<String, Json>) {
        let parent = &self.record().name;
        for nested in nested_collections(self.record()).filter(|nested| nested.is_link()) {
            let (child, segment) = (self.model.record(nested.record), &nested.segment);
            let path = format!("{}/{{id}}/{segment}", self.collection.path);
            let one = format!("{path}/{{{}Id}}", camel_case(&child.name));
            let id = |verb: &str| format!("{verb}{parent}{}", pascal_case(segment));
            let headers = || vec![parameter_reference("If-Match"), parameter_reference("Idempotency-Key")];
            let responses = |text: &str| {
                OperationResponses::new(ProblemFormat::Negotiated)
                    .add_empty(204, text, &["Idempotency-Replayed"])
                    .add_problems(&[400, 404])
            };
            let summary = format!("Link one of the {segment} with one {parent}");
            let linked = responses("Linked.").for_body();
            let mut link = self.operation(&names.reserve(&id("link")), summary, headers(), linked);
            let media = json!({
                "schema": key_schema(child.key_form(), ValueContext::Body),
                "example": example_values::example_id(child.key_form()).to_string(),
            });
            link["requestBody"] = json!({ "required": true, "content": { "application/json": media } });
            paths[&path]["post"] = link;
            let summary = format!("Remove the link between one {parent} and one of its {segment}");
            let removed = responses("The link is removed.").for_writing();
            paths[&one]["delete"] =
                self.operation(&names.reserve(&id("unlink")), summary, headers(), removed);
        }
    }
}
