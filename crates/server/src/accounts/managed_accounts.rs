//! What those who may manage an account do with it: a link for a password, and the end of its sessions.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::HOST;
use serde_json::json;

use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_model::RecordId;
use trefoil_model::error::Error;
use trefoil_pages::account::sign_pages::LINK_PATH;
use trefoil_resources::collection::record_path;
use trefoil_resources::request::ResourceRequest;

use crate::accounts::account_call::AccountCall;
use crate::accounts::sign_in::json_response;

/// The account in the path, which the actor may manage. One that they may not see is not there.
async fn managed(call: &AccountCall) -> Result<RecordId, Problem> {
    let record = call.accounts.account.record;
    let collection = call.resources.collection(record);
    let request = ResourceRequest { resources: &call.resources, collection, head: &call.head };
    let id = request.parse_id_of(record, &call.path_part("/_/accounts/"))?;
    let engine = &call.resources.engine;
    let type_name = &engine.model().record(record).name;
    if call.client.identity.is_none() {
        return Err(Error::Unauthenticated { rule: None }.into());
    }
    if !engine.sees_record(record, &id).await? {
        return Err(Error::not_found(type_name.as_str()).into());
    }
    if !engine.record_meets_for_actor(record, &id, &call.accounts.account.manage).await? {
        let detail = "this is for those who may manage the account";
        return Err(Problem::new(StatusCode::FORBIDDEN, "FORBIDDEN", detail));
    }
    Ok(id)
}

pub async fn make_link(call: &AccountCall) -> Result<Response, Problem> {
    // Who reads it on its way chooses the password.
    call.refuse_open()?;
    let id = managed(call).await?;
    let account = call.accounts.service.find_usable(&id).await?.ok_or_else(not_found)?;
    let token = call.accounts.service.make_link(&id).await?;
    let origin = call.client.origin(call.head.headers.get(HOST));
    let link = format!("{origin}{LINK_PATH}?token={}", token.reveal());
    if call.is_json() {
        return Ok(json_response(StatusCode::CREATED, &json!({ "link": link })));
    }
    let collection = call.resources.collection(call.accounts.account.record);
    let back = record_path(&collection.path, &id);
    call.pages.made_link_page(&call.head.headers, &account.facts.label, link, Some(back))
}

pub async fn end_sessions(call: &AccountCall) -> Result<Response, Problem> {
    let id = managed(call).await?;
    call.accounts.service.end_sessions(&id, None).await?;
    if call.is_json() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let collection = call.resources.collection(call.accounts.account.record);
    Ok(call.see_other(&record_path(&collection.path, &id)))
}
