//! The OpenAPI responses that operations share: problems in each format, and response headers.

use serde_json::{Map, Value as Json, json};

use crate::openapi::schemas::PROBLEM_SCHEMA;
use crate::openapi::values;

/// The format of problems at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemFormat {
    /// By `Accept`.
    Negotiated,
    /// By `Accept`, at a plain list, whose problems carry an `ETag`.
    PlainList,
    /// Text, whatever `Accept` says.
    Text,
}

/// Problems: status, component name, description.
const PROBLEMS: [(u16, &str, &str); 15] = [
    (400, "Invalid", "Malformed or invalid; all mistakes are listed."),
    (403, "CrossSite", "Cross-site write from a browser."),
    (404, "NotFound", "No such record, index or path."),
    (406, "NotAcceptable", "No available format matches `Accept`."),
    (408, "TooSlow", "The request was not received in time."),
    (
        409,
        "Conflict",
        "The value is taken, other records refer to the record, or another request with this `Idempotency-Key` is still running.",
    ),
    (412, "Stale", "`If-Match`, or `If-None-Match` of a write, is not satisfied; nothing was changed."),
    (413, "TooLarge", "The body is too large."),
    (
        415,
        "Unreadable",
        "The content type is not supported; `Accept-Post` or `Accept-Patch` lists those that are.",
    ),
    (421, "WrongHost", "The server does not answer requests to this `Host`."),
    (422, "KeyReused", "The `Idempotency-Key` was already used for a different request."),
    (429, "TooMany", "Too many requests, if a rate limit is set."),
    (431, "HeadTooLarge", "The request line and headers are too large."),
    (500, "Unexpected", "Server error; the log contains it under the request id."),
    (503, "Unavailable", "The store is unavailable or the server is stopping."),
];

/// Problems of any request.
const ALWAYS_POSSIBLE: [u16; 7] = [408, 413, 421, 429, 431, 500, 503];

/// Further problems of a write.
const WRITE_STATUSES: [u16; 4] = [403, 409, 412, 422];
/// Further problem of a write with a body.
const UNSUPPORTED_MEDIA: u16 = 415;

pub fn all_responses() -> Map<String, Json> {
    let mut responses = Map::new();
    for (status, name, description) in PROBLEMS {
        for format in [ProblemFormat::Negotiated, ProblemFormat::PlainList, ProblemFormat::Text] {
            responses.insert(component_name(name, format), problem_response(status, description, format));
        }
    }
    responses.insert(
        "NotModified".to_owned(),
        json!({ "description": "Not modified.", "headers": header_references(&["ETag!", "Link"]) }),
    );
    responses
}

fn component_name(name: &str, format: ProblemFormat) -> String {
    match format {
        ProblemFormat::Negotiated => name.to_owned(),
        ProblemFormat::PlainList => format!("{name}.List"),
        ProblemFormat::Text => format!("{name}.Text"),
    }
}

fn problem_response(status: u16, description: &str, format: ProblemFormat) -> Json {
    let mut names = match (status, format) {
        (409, _) => vec!["Retry-After"],
        (415, ProblemFormat::Negotiated | ProblemFormat::PlainList) => {
            vec!["Accept-Post", "Accept-Patch", "Accept-Encoding"]
        }
        (415, ProblemFormat::Text) => vec!["Accept-Encoding"],
        (429 | 503, _) => vec!["Retry-After!"],
        (_, _) => Vec::new(),
    };
    // Every response of a plain list carries its version.
    if format != ProblemFormat::Negotiated && [400, 404, 406, 409, 412, 415, 422].contains(&status) {
        names.push("ETag");
    }
    let text = json!({ "schema": { "type": "string" } });
    let content = match format {
        ProblemFormat::Negotiated | ProblemFormat::PlainList => json!({
            "application/problem+json": { "schema": values::schema_reference(PROBLEM_SCHEMA) },
            "text/plain": text,
            "text/html": text,
        }),
        ProblemFormat::Text => json!({ "text/plain": text }),
    };
    json!({ "description": description, "headers": header_references(&names), "content": content })
}

/// References to these headers and to those of every response. A `!` after a name marks a header that is always present.
pub fn header_references(names: &[&str]) -> Json {
    let mut headers = Map::new();
    for name in names.iter().chain(&["X-Request-Id!", "RateLimit", "RateLimit-Policy"]) {
        let component = name.replace('!', ".Always");
        let reference = json!({ "$ref": format!("#/components/headers/{component}") });
        headers.insert(name.trim_end_matches('!').to_owned(), reference);
    }
    Json::Object(headers)
}

pub fn all_headers() -> Map<String, Json> {
    let text = || json!({ "type": "string" });
    let non_negative = || json!({ "type": "integer", "minimum": 0 });
    let table = [
        ("ETag", "Version of the content, for `If-Match` and `If-None-Match`.", text()),
        (
            "Location",
            "The URL of the record, or of the page to show next.",
            json!({ "type": "string", "format": "uri-reference" }),
        ),
        ("Link", "Links to the `first`, `prev`, `next` and `last` part of the list, where known.", text()),
        ("X-Total-Count", "The number of matching records, if `count=true` is given.", non_negative()),
        ("Retry-After", "Retry after this number of seconds.", json!({ "type": "integer", "minimum": 1 })),
        (
            "Idempotency-Replayed",
            "The response is that of an earlier request with the same `Idempotency-Key`.",
            json!({ "type": "string", "const": "true" }),
        ),
        ("X-Request-Id", "Identifies the request in the server's log.", text()),
        ("RateLimit", "The remaining requests, if a rate limit is set.", text()),
        ("RateLimit-Policy", "The rate limit, if one is set.", text()),
        ("Accept-Post", "The content types that POST and PUT accept.", text()),
        ("Accept-Patch", "The content types that PATCH accepts.", text()),
        ("Accept-Encoding", "The supported encodings of a body.", text()),
        ("Content-Disposition", "The name of the file, if `format` is given.", text()),
        ("Allow", "The allowed methods.", text()),
    ];
    let mut headers = Map::new();
    for (name, description, schema) in table {
        let header = json!({ "description": description, "schema": schema });
        let mut always = header.clone();
        always["required"] = true.into();
        headers.insert(name.to_owned(), header);
        if ["ETag", "Location", "Retry-After", "X-Request-Id", "Allow"].contains(&name) {
            headers.insert(format!("{name}.Always"), always);
        }
    }
    headers
}

/// Collects the responses of one operation.
pub struct OperationResponses {
    problem_format: ProblemFormat,
    responses: Map<String, Json>,
}

impl OperationResponses {
    pub fn new(problem_format: ProblemFormat) -> OperationResponses {
        OperationResponses { problem_format, responses: Map::new() }
    }

    pub fn add(mut self, status: u16, response: Json) -> OperationResponses {
        self.responses.insert(status.to_string(), response);
        self
    }

    /// Adds a successful response without content.
    pub fn add_empty(self, status: u16, description: &str, names: &[&str]) -> OperationResponses {
        self.add(status, json!({ "description": description, "headers": header_references(names) }))
    }

    fn not_modified(self) -> OperationResponses {
        self.add(304, json!({ "$ref": "#/components/responses/NotModified" }))
    }

    pub fn add_problems(mut self, statuses: &[u16]) -> OperationResponses {
        for (status, name, _) in PROBLEMS.iter().filter(|(status, ..)| statuses.contains(status)) {
            let reference = format!("#/components/responses/{}", component_name(name, self.problem_format));
            self.responses.insert(status.to_string(), json!({ "$ref": reference }));
        }
        self
    }

    /// Adds the responses to the conditional headers of a read.
    pub fn for_reading(self) -> OperationResponses {
        self.not_modified().add_problems(&[412])
    }

    pub fn for_writing(self) -> OperationResponses {
        self.add_problems(&WRITE_STATUSES)
    }

    /// Adds the problems of a write with a body.
    pub fn for_body(self) -> OperationResponses {
        self.for_writing().add_problems(&[UNSUPPORTED_MEDIA])
    }

    /// The responses, with the problems of any request, ordered by status.
    pub fn finish(self) -> Json {
        let mut responses: Vec<_> = self.add_problems(&ALWAYS_POSSIBLE).responses.into_iter().collect();
        responses.sort_by(|(a, _), (b, _)| a.cmp(b));
        Json::Object(responses.into_iter().collect())
    }
}
