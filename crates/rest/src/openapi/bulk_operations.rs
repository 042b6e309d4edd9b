//! Operations on many records of a collection: by condition, and by unique fields.

use serde_json::{Value as Json, json};

use trefoil_engine::arguments::unique_fields::is_unique_field;

use crate::openapi::collections::{CollectionDescriber, line_content};
use crate::openapi::parameters::{self, parameter_reference};
use crate::openapi::responses::{OperationResponses, ProblemFormat, header_references};
use crate::openapi::schemas::response_schema;
use crate::openapi::unique_names::{UniqueNames, pascal_case};
use crate::openapi::values::schema_reference;

impl CollectionDescriber<'_> {
    /// Adds the operations to the path of the collection.
    pub fn add_bulk_operations(&self, names: &mut UniqueNames, path_item: &mut Json) {
        let plural = pascal_case(&self.collection.path);
        let mut patch = json!({ "schema": schema_reference(&format!("{}.Patch", self.record().name)) });
        self.add_example(&mut patch, "Patch");
        let content = json!({ "application/merge-patch+json": patch, "application/json": patch });
        let responses = self.count_responses().for_body();
        let mut update =
            self.matching_operation(names, &format!("update{plural}"), "Change every", responses);
        update["requestBody"] = json!({ "required": true, "content": content });
        path_item["patch"] = update;
        let responses = self.count_responses().for_writing();
        path_item["delete"] =
            self.matching_operation(names, &format!("delete{plural}"), "Delete every", responses);
        let unique: Vec<&str> = (self.record().fields.iter())
            .filter(|field| is_unique_field(self.record(), field))
            .map(|field| field.input_name.as_str())
            .collect();
        if self.collection.can_upsert {
            path_item["put"] = self.upsert_operation(names, &format!("upsert{plural}"), &unique);
        }
    }

    fn matching_operation(
        &self,
        names: &mut UniqueNames,
        id: &str,
        verb: &str,
        responses: OperationResponses,
    ) -> Json {
        let mut parameters = parameters::filter_parameters(self.model, self.record());
        parameters.push(json!({
            "name": "all", "in": "query", "schema": { "type": "boolean" }, "example": true,
            "description": "`true` instead of a condition: all records are meant.",
        }));
        parameters.push(parameter_reference("Idempotency-Key"));
        let summary = format!("{verb} {} that matches", self.record().name);
        self.operation(&names.reserve(id), summary, parameters, responses)
    }

    fn count_responses(&self) -> OperationResponses {
        let count = json!({
            "type": "object", "properties": { "count": { "type": "integer", "minimum": 0 } }, "required": ["count"],
        });
        let ok = json!({
            "description": "The number of records.", "content": { "application/json": { "schema": count } },
            "headers": header_references(&["Idempotency-Replayed"]),
        });
        OperationResponses::new(ProblemFormat::Negotiated).add(200, ok).add_problems(&[400])
    }

    fn upsert_operation(&self, names: &mut UniqueNames, id: &str, unique: &[&str]) -> Json {
        let record = self.record();
        let mut parameters = parameters::record_parameters(record);
        parameters.push(json!({
            "name": "by", "in": "query", "required": true, "style": "form", "explode": false,
            "schema": { "type": "array", "items": { "type": "string", "enum": unique }, "minItems": 1 },
            "description": "The unique fields that a record is found by.",
        }));
        parameters.push(parameter_reference("Idempotency-Key"));
        let one = schema_reference(&format!("{}.New", record.name));
        let many = json!({ "type": "array", "items": one });
        let mut content = json!({
            "application/json": { "schema": { "anyOf": [one, many] } }, "application/x-ndjson": line_content(&one),
        });
        self.add_example(&mut content["application/json"], "New");
        let shown = response_schema(record);
        let schema = json!({ "anyOf": [shown, { "type": "array", "items": shown }] });
        let response = |description: &str| {
            json!({
                "description": description, "content": { "application/json": { "schema": schema } },
                "headers": header_references(&["Location", "ETag", "Idempotency-Replayed"]),
            })
        };
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(200, response("The record that was updated, or all records that were sent."))
            .add(201, response("The record that was created."))
            .add_problems(&[400, 409])
            .for_body();
        let summary = format!("Update the {} with the same unique fields, else create it", record.name);
        let mut operation = self.operation(&names.reserve(id), summary, parameters, responses);
        operation["requestBody"] = json!({ "required": true, "content": content });
        operation
    }
}
