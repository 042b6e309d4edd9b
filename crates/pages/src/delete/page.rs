//! The page that confirms a deletion, with its effects on other records, and the deletion itself.

use axum::response::Response;
use http::StatusCode;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use trefoil_engine::{Operation, PreparedSelection, Selection};
use trefoil_http::client_info::ClientInfo;
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::{FormPairs, percent_encode};
use trefoil_http::negotiation::format::{FormatChoice, PAGE_ONLY};
use trefoil_model::access::AccessAction;
use trefoil_model::error::Error;
use trefoil_model::{OnDelete, RecordId};
use trefoil_resources::body_text;
use trefoil_resources::collection::record_path;
use trefoil_resources::forms::form_input::{self, FormInput};
use trefoil_resources::list_query::ParamSet;
use trefoil_resources::parsed_body::{BodyKind, ParsedBody};
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::write::{IMPOSSIBLE_VERSION, see_other, write_problem};

use crate::Pages;
use crate::delete::effects::{AffectedRecords, LostLinks, MAX_COUNTED, deletion_effects, lost_links};
use crate::detail::display::ValueDisplay;
use crate::examples::page::PageSubject;
use crate::flash::{self, FlashKind};
use crate::form::keys;
use crate::labels::{ResourceLabels, noun_form};
use crate::phrases::counted_noun;
use crate::snapshot_reads::{TEXT_PREVIEW_BYTES, read_snapshot};
use crate::template_data::{DeleteView, EffectView, PageHead, PageLink};

impl Pages {
    pub async fn delete_page(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
    ) -> Result<Response, Problem> {
        self.confirmation_page(request, id, StatusCode::OK, Vec::new()).await
    }

    /// DELETE by a client that accepts more than JSON.
    pub async fn delete_record(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
    ) -> Result<Response, Problem> {
        request.parse_query(request.collection.record, ParamSet::Empty).await?;
        let expected = request.expected_version(id).await?;
        let write = request
            .execute_write(request.delete_operation(id, expected), request.idempotency_key(b"")?)
            .await;
        let write = write.map_err(write_problem)?;
        Ok(write.mark_replayed(see_other(&request.collection.path)))
    }

    pub async fn submit_delete(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let pairs = sent_pairs(request, bytes)?;
        let input = FormInput::from_pairs(request.record(), &pairs);
        let key = keys::form_key(request.idempotency_key(bytes)?, request.head, input.key.as_deref(), &pairs);
        let in_headers = [IF_MATCH, IF_NONE_MATCH].iter().any(|name| request.headers().contains_key(name));
        let expected = match &input.version {
            Some(version) if !in_headers => Some(version.trim().parse().unwrap_or(IMPOSSIBLE_VERSION)),
            Some(_) | None => request.expected_version(id).await?,
        };
        let accepts_html = PAGE_ONLY.negotiate(request.headers(), FormatChoice::Unspecified).is_ok();
        match keys::write_once(request, request.delete_operation(id, expected), key).await {
            Ok(write) => {
                let (mut response, client) =
                    (write.mark_replayed(see_other(&request.collection.path)), request_client(request));
                flash::set_cookie(
                    &mut response,
                    client,
                    FlashKind::Deleted,
                    &request.collection.path,
                    Some(id),
                );
                Ok(response)
            }
            Err(Error::Conflict(violations)) if accepts_html => {
                let reasons = violations.into_iter().map(|violation| violation.message).collect();
                self.confirmation_page(request, id, StatusCode::CONFLICT, reasons).await
            }
            Err(Error::Stale { .. }) if !in_headers && accepts_html => {
                let noun = &self.labels_of(request.collection.record).resource.noun;
                let reason = format!("This {noun} has been changed: check it again before you delete it");
                self.confirmation_page(request, id, StatusCode::CONFLICT, vec![reason]).await
            }
            Err(error) => Err(write_problem(error)),
        }
    }

    /// The confirmation page; `reasons` say why a deletion failed.
    async fn confirmation_page(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        status: StatusCode,
        reasons: Vec<String>,
    ) -> Result<Response, Problem> {
        let (record, engine) = (request.collection.record, &request.resources.engine);
        let titles = Selection::clone(&self.title_selection(engine.model(), record)).with_version();
        let operation = Operation::Get { record, id: id.clone(), selection: PreparedSelection::new(titles) };
        let found =
            read_snapshot(engine, vec![operation], TEXT_PREVIEW_BYTES).await.map_err(write_problem)?;
        let row =
            found.iter().flat_map(|found| &found.rows).next().ok_or_else(|| request.not_found(record, id))?;
        let (_, title) = self
            .row_title(ValueDisplay::of(engine), record, row)
            .ok_or_else(|| request.not_found(record, id))?;
        engine.require_allowed(AccessAction::Delete, record, id).await.map_err(write_problem)?;
        let version = row.cells.last().and_then(|cell| cell.as_cell().to_i64()).unwrap_or(IMPOSSIBLE_VERSION);
        let affected = deletion_effects(engine, record, id).await.map_err(write_problem)?;
        let resource = self.labels_of(record).resource.clone();
        let keep = record_path(&resource.path, id);
        let mut effects: Vec<EffectView> =
            affected.iter().map(|affected| self.effect_view(request, id, affected)).collect();
        let blocked = effects.iter().any(|effect| effect.blocks);
        if !blocked {
            let links = lost_links(engine, record, id).await.map_err(write_problem)?;
            effects.extend(links.into_iter().map(|links| self.links_view(&keep, &resource.noun, &links)));
        }
        // Reasons of the store that are not visible as effects: no longer true, or not about references.
        if !blocked {
            effects.extend(reasons.into_iter().map(|text| EffectView {
                text,
                href: keep.clone(),
                blocks: false,
            }));
        }
        let parents = vec![
            PageLink { label: resource.plural.clone(), href: resource.path.clone() },
            PageLink { label: title.clone(), href: keep.clone() },
        ];
        let mut head = PageHead::new("Delete", &resource.path, parents);
        head.title = format!("Delete {title}");
        head.ways =
            Some(self.api_examples(request.resources, request.head, PageSubject::Delete { record, id }));
        let submit = self.submit_label(&resource.noun, &affected);
        let (action, key) = (format!("{keep}/delete"), keys::new_key());
        let delete = DeleteView { resource, title, action, key, version, keep, submit, effects, blocked };
        self.page_response(request.headers(), status, head, "delete", &delete)
    }

    fn effect_view(
        &self,
        request: &ResourceRequest<'_>,
        id: &RecordId,
        affected: &AffectedRecords,
    ) -> EffectView {
        let resource = &self.labels_of(affected.record).resource;
        let field = request.resources.engine.model().record(affected.record).field(affected.field);
        let (many, one) =
            (affected_count(self.labels_of(affected.record), affected.count), affected.count == 1);
        let label = noun_form(&field.label());
        let text = match (affected.on_delete, one) {
            (OnDelete::Cascade, true) => format!("{many} will be deleted too"),
            (OnDelete::Cascade, false) => format!("{many} will be deleted too"),
            (OnDelete::SetNull, true) => format!("{many} will lose its {label}"),
            (OnDelete::SetNull, false) => format!("{many} will lose their {label}"),
            (OnDelete::Refuse, true) => format!("{many} requires its {label}"),
            (OnDelete::Refuse, false) => format!("{many} require their {label}"),
        };
        let href = match affected.is_direct {
            true => format!("{}?{}={}", resource.path, field.input_name, percent_encode(&id.to_string())),
            false => resource.path.clone(),
        };
        EffectView { text, href, blocks: affected.on_delete == OnDelete::Refuse }
    }

    fn links_view(&self, own: &str, noun: &str, links: &LostLinks) -> EffectView {
        let labels = self.labels_of(links.record);
        let (many, verb) = match links.count {
            1 => (affected_count(labels, 1), "is"),
            count => (affected_count(labels, usize::try_from(count).unwrap_or(usize::MAX)), "are"),
        };
        let list = links.segment.as_ref().map(|segment| format!("{own}/{segment}"));
        EffectView {
            text: format!("{many} {verb} no longer linked with this {noun}"),
            href: list.unwrap_or_else(|| labels.resource.path.clone()),
            blocks: false,
        }
    }

    fn submit_label(&self, noun: &str, affected: &[AffectedRecords]) -> String {
        let mut deleted = affected.iter().filter(|affected| affected.on_delete == OnDelete::Cascade);
        match (deleted.next(), deleted.next()) {
            (None, _) => format!("Delete {noun}"),
            (Some(only), None) => {
                let other_records = affected_count(self.labels_of(only.record), only.count);
                format!("Delete {noun} and {}", other_records.replacen("More", "more", 1))
            }
            (Some(_), Some(_)) => format!("Delete {noun} and all dependent records"),
        }
    }
}

/// "3 orders", "More than 1,000 orders".
fn affected_count(labels: &ResourceLabels, count: usize) -> String {
    match count {
        0..=MAX_COUNTED => counted_noun(count as u64, &labels.resource.noun, &labels.plural_noun),
        _ => format!("More than 1,000 {}", labels.plural_noun),
    }
}

/// The pairs of a form body; none for any other body.
fn sent_pairs(request: &ResourceRequest<'_>, bytes: &[u8]) -> Result<FormPairs, Problem> {
    let media_type = body_text::media_type(request.headers());
    if !["application/x-www-form-urlencoded", "multipart/form-data"].contains(&media_type.as_str()) {
        return Ok(FormPairs::new());
    }
    let is_field = |name: &str| form_input::control_field(request.record(), name).is_some();
    match BodyKind::Record.parse(request.headers(), bytes, is_field)? {
        ParsedBody::Form(pairs) => Ok(pairs),
        ParsedBody::Record(_) | ParsedBody::Records(_) | ParsedBody::Text(_) => Ok(FormPairs::new()),
    }
}

fn request_client<'a>(request: &'a ResourceRequest<'_>) -> Option<&'a ClientInfo> {
    request.head.extensions.get::<ClientInfo>()
}
