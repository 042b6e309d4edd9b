//! POST and DELETE of the records that a link of one record leads to.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use trefoil_engine::{MissingFields, RelatedInput};
use trefoil_http::errors::problem::Problem;
use trefoil_model::RecordId;
use trefoil_model::error::Error;
use trefoil_resources::collection::NestedCollection;
use trefoil_resources::list_query::ParamSet;
use trefoil_resources::parsed_body;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::write_problem;

/// Links the record whose id is the body. Nothing changes if it is linked already.
pub async fn link_record(
    request: &ResourceRequest<'_>,
    parent_id: &RecordId,
    nested: &NestedCollection,
    bytes: &[u8],
) -> Result<Response, Problem> {
    let target = request.resources.engine.model().record(nested.record);
    let id = parsed_body::parse_id(request.headers(), bytes, target)?;
    let links = RelatedInput { connect: vec![id.clone()], ..RelatedInput::new(nested.field) };
    write_links(request, parent_id, nested, &id, links, bytes).await
}

/// Removes the link to a record, which itself stays.
pub async fn unlink_record(
    request: &ResourceRequest<'_>,
    parent_id: &RecordId,
    nested: &NestedCollection,
    id: &RecordId,
) -> Result<Response, Problem> {
    let links = RelatedInput { disconnect: vec![id.clone()], ..RelatedInput::new(nested.field) };
    write_links(request, parent_id, nested, id, links, b"").await
}

async fn write_links(
    request: &ResourceRequest<'_>,
    parent_id: &RecordId,
    nested: &NestedCollection,
    id: &RecordId,
    links: RelatedInput,
    bytes: &[u8],
) -> Result<Response, Problem> {
    request.parse_query(nested.record, ParamSet::Empty).await?;
    let update = request.update_operation(parent_id, Vec::new(), MissingFields::Keep, None);
    let written =
        request.execute_write(update.with_related(vec![links]), request.idempotency_key(bytes)?).await;
    // The path and the body name one record and nothing else that could be wrong.
    let written = written.map_err(|error| {
        if matches!(error, Error::Invalid(_)) {
            request.not_found(nested.record, id)
        } else {
            write_problem(error)
        }
    })?;
    Ok(written.mark_replayed(StatusCode::NO_CONTENT.into_response()))
}
