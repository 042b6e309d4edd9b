//! Routes requests for records to REST or pages, by method, sub-path and format.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header::ALLOW;
use http::{Method, StatusCode};

use trefoil_http::errors::problem::{ErrorFormat, Problem, method_not_allowed};
use trefoil_http::etags;
use trefoil_http::negotiation::format::{FormatChoice, PAGE_ONLY, ResponseFormat, wants_no_content};
use trefoil_model::access::AccessAction;
use trefoil_model::{RecordId, RecordTypeId};
use trefoil_resources::aggregate_query::asks_for_groups;
use trefoil_resources::body_text;
use trefoil_resources::collection::SubPath;
use trefoil_resources::forms::form_input;
use trefoil_resources::parsed_body::{BodyKind, ParsedBody};
use trefoil_resources::request::ResourceRequest;
use trefoil_rest::as_json_problem;

use super::resource_router::ResourceState;

impl ResourceState {
    /// The response to a request for records.
    pub(crate) async fn handle_records(
        &self,
        request: &ResourceRequest<'_>,
        sub_path: SubPath<'_>,
        body: Result<Bytes, Problem>,
    ) -> Result<Response, Problem> {
        let method = match &request.head.method {
            &Method::HEAD => &Method::GET,
            other => other,
        };
        // Before the body and the query are read: whoever may never do this is not told what is wrong with them. A form
        // comes back with what was typed.
        if !is_form(request) {
            check_actions(request, method, sub_path)?;
        }
        match (method, sub_path) {
            (&Method::OPTIONS, sub_path) => Ok(options_response(request, sub_path)),
            (&Method::GET, sub_path) => self.handle_read(request, sub_path).await,
            (&Method::POST, SubPath::List) => self.handle_create(request, &body?).await,
            (&Method::POST | &Method::PUT, SubPath::Record(id)) => {
                self.handle_replace(request, &request.parse_id(id)?, &body?).await
            }
            (&Method::PUT, SubPath::List) if request.collection.can_upsert => {
                self.handle_upsert(request, &body?).await
            }
            (&Method::PATCH, SubPath::List) => {
                let body = body?;
                match parse_body(request, BodyKind::Patch, &body)? {
                    ParsedBody::Record(object) => {
                        etags::check_if_match(request.headers(), None)?;
                        trefoil_rest::patch_matching(request, object, &body)
                            .await
                            .map_err(|problem| trefoil_rest::json_problem(request, &body, problem))
                    }
                    ParsedBody::Records(_) | ParsedBody::Form(_) | ParsedBody::Text(_) => {
                        Err(unsupported_body())
                    }
                }
            }
            (&Method::DELETE, SubPath::List) => {
                etags::check_if_match(request.headers(), None)?;
                trefoil_rest::delete_matching(request).await.map_err(as_json_problem)
            }
            (&Method::PATCH, SubPath::Record(id)) => {
                let (id, body) = (request.parse_id(id)?, body?);
                match parse_body(request, BodyKind::Patch, &body)? {
                    ParsedBody::Record(object) => {
                        trefoil_rest::patch_record(request, &id, object, &body).await
                    }
                    ParsedBody::Records(_) | ParsedBody::Form(_) | ParsedBody::Text(_) => {
                        Err(unsupported_body())
                    }
                }
            }
            (&Method::DELETE, SubPath::Record(id)) => {
                let id = request.parse_id(id)?;
                let is_json = wants_no_content(request.headers(), request.collection.default_format);
                if is_json {
                    trefoil_rest::delete_record(request, &id).await
                } else {
                    self.pages.of_actor(request.resources).delete_record(request, &id).await
                }
            }
            (&Method::POST, SubPath::Delete(id)) => {
                self.pages
                    .of_actor(request.resources)
                    .submit_delete(request, &request.parse_id(id)?, &body?)
                    .await
            }
            (&Method::POST, SubPath::Nested(parent, nested)) if nested.is_link() => {
                let (parent, body) = (request.parse_id(parent)?, body?);
                etags::check_if_match(request.headers(), None)?;
                trefoil_rest::link_record(request, &parent, nested, &body).await.map_err(as_json_problem)
            }
            (&Method::DELETE, SubPath::NestedRecord(parent, nested, id)) if nested.is_link() => {
                let (parent, id) = (request.parse_id(parent)?, request.parse_id_of(nested.record, id)?);
                etags::check_if_match(request.headers(), None)?;
                trefoil_rest::unlink_record(request, &parent, nested, &id).await.map_err(as_json_problem)
            }
            (_, sub_path) => Err(method_not_allowed(request.collection.allowed_methods(sub_path))),
        }
    }

    async fn handle_read(
        &self,
        request: &ResourceRequest<'_>,
        sub_path: SubPath<'_>,
    ) -> Result<Response, Problem> {
        let (headers, pages) = (request.headers(), self.pages.of_actor(request.resources));
        match sub_path {
            SubPath::List => {
                match request.collection.list_formats().negotiate(headers, request.list_format_choice())? {
                    ResponseFormat::Html => pages.list_page(request).await,
                    format @ (ResponseFormat::Json
                    | ResponseFormat::TextLines
                    | ResponseFormat::Ndjson
                    | ResponseFormat::Csv
                    | ResponseFormat::EventStream) => {
                        trefoil_rest::read_list(request, format, &self.rest.streams).await
                    }
                }
            }
            SubPath::Record(id) => {
                match (
                    request.parse_id(id)?,
                    request.collection.record_formats().negotiate(headers, request.record_format_choice())?,
                ) {
                    (id, ResponseFormat::Html) => pages.detail_page(request, &id).await,
                    (
                        id,
                        ResponseFormat::Json
                        | ResponseFormat::TextLines
                        | ResponseFormat::Ndjson
                        | ResponseFormat::Csv
                        | ResponseFormat::EventStream,
                    ) => trefoil_rest::read_record(request, &id).await,
                }
            }
            SubPath::Nested(parent, nested) => {
                match (
                    request.parse_id(parent)?,
                    request
                        .collection
                        .nested_list_formats()
                        .negotiate(headers, request.list_format_choice())?,
                ) {
                    (parent, ResponseFormat::Html) => pages.nested_list_page(request, &parent, nested).await,
                    (
                        parent,
                        format @ (ResponseFormat::Json
                        | ResponseFormat::TextLines
                        | ResponseFormat::Ndjson
                        | ResponseFormat::Csv
                        | ResponseFormat::EventStream),
                    ) => trefoil_rest::read_nested_list(request, &parent, nested, format).await,
                }
            }
            SubPath::NestedRecord(parent, nested, id) => {
                match (
                    request.parse_id(parent)?,
                    request.parse_id_of(nested.record, id)?,
                    request.collection.record_formats().negotiate(headers, request.record_format_choice())?,
                ) {
                    (parent, id, ResponseFormat::Html) => {
                        pages.nested_detail_page(request, &parent, nested, &id).await
                    }
                    (
                        parent,
                        id,
                        ResponseFormat::Json
                        | ResponseFormat::TextLines
                        | ResponseFormat::Ndjson
                        | ResponseFormat::Csv
                        | ResponseFormat::EventStream,
                    ) => trefoil_rest::read_nested_record(request, &parent, nested, &id).await,
                }
            }
            SubPath::New => {
                PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                pages.new_form_page(request).await
            }
            SubPath::Summary => match request.list_format_choice() {
                // The same parameters are those of the list.
                FormatChoice::Named(format) if asks_for_groups(&request.head.uri, request.record()) => {
                    trefoil_rest::read_list(request, format, &self.rest.streams).await
                }
                FormatChoice::Named(_) | FormatChoice::Fields | FormatChoice::Unspecified => {
                    PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                    pages.summary_page(request).await
                }
            },
            SubPath::Edit(id) => {
                let id = request.parse_id(id)?;
                PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                pages.edit_form_page(request, &id).await
            }
            SubPath::Delete(id) => {
                let id = request.parse_id(id)?;
                PAGE_ONLY.negotiate(headers, FormatChoice::Unspecified)?;
                pages.delete_page(request, &id).await
            }
        }
    }

    async fn handle_create(&self, request: &ResourceRequest<'_>, bytes: &Bytes) -> Result<Response, Problem> {
        match parse_body(request, request.post_body_kind(), bytes)? {
            ParsedBody::Record(object) => trefoil_rest::create_one(request, object, bytes)
                .await
                .map_err(|problem| trefoil_rest::json_problem(request, bytes, problem)),
            ParsedBody::Records(objects) => trefoil_rest::create_many(request, objects, bytes)
                .await
                .map_err(|problem| trefoil_rest::json_problem(request, bytes, problem)),
            ParsedBody::Form(pairs) => {
                self.pages.of_actor(request.resources).submit_new(request, &pairs, bytes).await
            }
            ParsedBody::Text(text) => trefoil_rest::create_from_text(request, text, bytes)
                .await
                .map_err(|problem| problem.with_format(ErrorFormat::Text)),
        }
    }

    async fn handle_upsert(&self, request: &ResourceRequest<'_>, bytes: &Bytes) -> Result<Response, Problem> {
        let written = match parse_body(request, BodyKind::Upsert, bytes)? {
            ParsedBody::Record(object) => trefoil_rest::upsert_one(request, object, bytes).await,
            ParsedBody::Records(objects) => trefoil_rest::upsert_many(request, objects, bytes).await,
            ParsedBody::Form(_) | ParsedBody::Text(_) => Err(unsupported_body()),
        };
        written.map_err(|problem| trefoil_rest::json_problem(request, bytes, problem))
    }

    async fn handle_replace(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        bytes: &Bytes,
    ) -> Result<Response, Problem> {
        match parse_body(request, BodyKind::Record, bytes)? {
            ParsedBody::Record(object) => trefoil_rest::replace_record(request, id, object, bytes).await,
            ParsedBody::Form(pairs) => {
                self.pages.of_actor(request.resources).submit_edit(request, id, &pairs, bytes).await
            }
            ParsedBody::Records(_) | ParsedBody::Text(_) => Err(unsupported_body()),
        }
    }
}

fn is_form(request: &ResourceRequest<'_>) -> bool {
    let forms = ["application/x-www-form-urlencoded", "multipart/form-data"];
    request.head.method == Method::POST && forms.contains(&body_text::media_type(request.headers()).as_str())
}

/// Refuses what the actor may do with no record of the collection.
fn check_actions(
    request: &ResourceRequest<'_>,
    method: &Method,
    sub_path: SubPath<'_>,
) -> Result<(), Problem> {
    let engine = &request.resources.engine;
    if engine.access_view().is_none() {
        return Ok(());
    }
    let (read, own) = (AccessAction::Read, request.collection.record);
    let actions: &[(AccessAction, RecordTypeId)] = match (method, sub_path) {
        (&Method::GET, SubPath::List | SubPath::Record(_) | SubPath::Summary) => &[(read, own)],
        (&Method::GET, SubPath::New) | (&Method::POST, SubPath::List) => &[(AccessAction::Create, own)],
        (&Method::GET, SubPath::Edit(_)) => &[(read, own), (AccessAction::Update, own)],
        (&Method::GET, SubPath::Delete(_)) => &[(read, own), (AccessAction::Delete, own)],
        (&Method::GET, SubPath::Nested(_, nested) | SubPath::NestedRecord(_, nested, _)) => {
            &[(read, own), (read, nested.record)]
        }
        (&Method::PUT, SubPath::List) => &[(AccessAction::Create, own), (AccessAction::Update, own)],
        (&Method::POST | &Method::PUT, SubPath::Record(_))
        | (&Method::PATCH, SubPath::List | SubPath::Record(_))
        | (&Method::POST, SubPath::Nested(..))
        | (&Method::DELETE, SubPath::NestedRecord(..)) => &[(AccessAction::Update, own)],
        (&Method::DELETE, SubPath::List | SubPath::Record(_)) | (&Method::POST, SubPath::Delete(_)) => {
            &[(AccessAction::Delete, own)]
        }
        (_, _) => &[],
    };
    for (action, record) in actions {
        engine.require(*action, *record)?;
    }
    Ok(())
}

/// Parses a body; a body that cannot be parsed gets an error in the format that it was sent in.
fn parse_body(request: &ResourceRequest<'_>, kind: BodyKind, bytes: &[u8]) -> Result<ParsedBody, Problem> {
    let is_field = |name: &str| form_input::control_field(request.record(), name).is_some();
    let parsed = kind
        .parse(request.headers(), bytes, is_field)
        .and_then(|parsed| check_preconditions(request, kind).map(|()| parsed));
    parsed.map_err(|problem| match body_text::media_type(request.headers()).as_str() {
        essence if essence.contains("json") => as_json_problem(problem),
        // A patch never comes from a form.
        "application/x-www-form-urlencoded" | "multipart/form-data" if kind != BodyKind::Patch => {
            problem.with_format(ErrorFormat::Html)
        }
        _ => problem,
    })
}

/// A collection has no version that a write could depend on: its tags describe one page in one format.
fn check_preconditions(request: &ResourceRequest<'_>, kind: BodyKind) -> Result<(), Problem> {
    match kind {
        BodyKind::Collection | BodyKind::TextCollection | BodyKind::Upsert => {
            etags::check_if_match(request.headers(), None)
        }
        BodyKind::Record | BodyKind::Patch | BodyKind::Id => Ok(()),
    }
}

fn unsupported_body() -> Problem {
    Problem::from_status(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

fn options_response(request: &ResourceRequest<'_>, sub_path: SubPath<'_>) -> Response {
    let mut response =
        (StatusCode::NO_CONTENT, [(ALLOW, request.collection.allowed_methods(sub_path))]).into_response();
    let kinds = match sub_path {
        SubPath::List => &[request.post_body_kind(), BodyKind::Patch][..],
        SubPath::Record(_) => &[BodyKind::Record, BodyKind::Patch],
        SubPath::Nested(_, nested) if nested.is_link() => &[BodyKind::Id],
        SubPath::New
        | SubPath::Summary
        | SubPath::Edit(_)
        | SubPath::Delete(_)
        | SubPath::Nested(..)
        | SubPath::NestedRecord(..) => &[],
    };
    response.headers_mut().extend(kinds.iter().map(|kind| kind.accept_header()));
    response
}
