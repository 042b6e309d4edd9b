//! `GET /_/audit`: the audit, for whom the setting `auth-see-audit` lets see it.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use trefoil_engine::{AuditEntry, AuditFilter, AuditPosition, KeyAccount};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_http::form_pairs;
use trefoil_model::access::AccessAction;
use trefoil_pages::Pages;
use trefoil_pages::account::audit_page::{AuditFilterTexts, AuditPage, AuditRow};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::record_path;

use crate::routes::ResourceRouter;

/// Entries on a page.
const PAGE_SIZE: usize = 50;

pub async fn serve_audit(State(router): State<ResourceRouter>, request: Request) -> Response {
    let client = ClientInfo::of(request.extensions());
    let (head, _) = request.into_parts();
    let _lease = router.gate().enter().await;
    let state = router.current();
    if state.catalog.engine.model().access.is_none() {
        return not_found().into_response();
    }
    let resources = state.catalog.for_actor(|| client.actor()).into_owned();
    let pages = state.pages.of_actor(&resources);
    Box::pin(show(&head, &resources, &pages)).await.unwrap_or_else(IntoResponse::into_response)
}

async fn show(head: &Parts, resources: &ServedResources, pages: &Pages) -> Result<Response, Problem> {
    resources.engine.confirm_actor().await?;
    resources.engine.check_audit()?;
    let pairs = form_pairs::parse_urlencoded(head.uri.query().unwrap_or_default(), "the query")?;
    let parameter = |name: &str| {
        pairs.iter().rev().find(|(own, _)| own == name).map_or("", |(_, value)| value.trim()).to_owned()
    };
    let filters = AuditFilterTexts {
        actor: parameter("actor"),
        type_name: parameter("type"),
        since: parameter("since"),
        until: parameter("until"),
    };
    let mut mistakes = Vec::new();
    let filter = read_filter(&filters, &parameter("before"), &mut mistakes);
    let is_later_page = filter.before.is_some();
    let mut entries = Vec::new();
    if mistakes.is_empty() {
        entries = resources.engine.credentials()?.read_audit(filter, PAGE_SIZE + 1).await?;
    }
    let has_more = entries.len() > PAGE_SIZE;
    entries.truncate(PAGE_SIZE);
    let older = entries.last().filter(|_| has_more).map(|last| last.position.to_text());
    let status = if mistakes.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let page = AuditPage {
        filters,
        types: resources.engine.model().records.iter().map(|record| record.name.clone()).collect(),
        mistakes,
        entries: entries.into_iter().map(|entry| row(resources, entry)).collect(),
        older,
        is_later_page,
        notice: None,
    };
    pages.audit_page(&head.headers, status, page)
}

fn read_filter(texts: &AuditFilterTexts, before: &str, mistakes: &mut Vec<String>) -> AuditFilter {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let mut time = |name: &str, text: &str| {
        let time = parse_time(text);
        if time.is_none() && !text.is_empty() {
            mistakes.push(format!("{name} is not a time such as 2026-11-14T09:30"));
        }
        time
    };
    let (since, until) = (time("From", &texts.since), time("Until", &texts.until));
    let position = AuditPosition::parse(before);
    if position.is_none() && !before.is_empty() {
        mistakes.push("The address of this page is not complete".to_owned());
    }
    AuditFilter {
        since,
        until,
        actor: text(&texts.actor),
        type_name: text(&texts.type_name),
        before: position,
    }
}

/// A time with an offset, or one in UTC, as browsers send it.
fn parse_time(text: &str) -> Option<Timestamp> {
    let with_offset = || text.parse::<Timestamp>().ok();
    let local = text.parse::<civil::DateTime>().ok().and_then(|time| time.to_zoned(TimeZone::UTC).ok());
    with_offset().or_else(|| local.map(|time| time.timestamp()))
}

fn row(resources: &ServedResources, entry: AuditEntry) -> AuditRow {
    let time = entry.time();
    let record = entry.type_name.as_deref().zip(entry.record_text());
    let subject = match (&record, &entry.name) {
        (_, Some(name)) => format!("key {name}"),
        (Some((type_name, id)), None) => format!("{type_name} {id}"),
        (None, None) => String::new(),
    };
    AuditRow {
        time: (time.to_string(), time.strftime("%-d %b %Y, %H:%M:%S UTC").to_string()),
        href: record_page(resources, &entry),
        subject,
        actor: entry.actor,
        action: entry.action,
        count: entry.count,
        version: entry.version,
        fields: entry.fields,
        address: entry.address,
        request: entry.request,
    }
}

/// The page of the record, if the actor may see any of its type.
fn record_page(resources: &ServedResources, entry: &AuditEntry) -> Option<String> {
    let engine = &resources.engine;
    let type_name = entry.type_name.as_deref()?;
    let record =
        engine.model().find_record(type_name).filter(|record| engine.may(AccessAction::Read, *record))?;
    let id = KeyAccount::parse(type_name, entry.record.as_deref()?)?.id;
    let is_gone = entry.action == "delete";
    (!is_gone).then(|| record_path(&resources.collection(record).path, &id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_unless_they_say_otherwise() {
        let expected = "2026-11-14T09:30:00Z".parse().ok();
        for text in ["2026-11-14T09:30", "2026-11-14T09:30:00", "2026-11-14T10:30:00+01:00"] {
            assert_eq!(parse_time(text), expected, "{text}");
        }
        assert_eq!(parse_time("2026-11-14"), "2026-11-14T00:00:00Z".parse().ok());
        assert_eq!((parse_time(""), parse_time("yesterday")), (None, None));
    }
}
