//! Deleting: a page that says what else is affected, and the deed.

use axum::response::Response;
use http::StatusCode;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use crate::Served;
use crate::delete::effects::{Affected, MOST, effects};
use crate::examples::page::About;
use crate::flash;
use crate::flash::Deed;
use crate::form::keys;
use crate::multi_read::{PART, look};
use crate::view::{Delete, Effect, Head, Link};
use trefoil_engine::{Operation, Selection};
use trefoil_http::client::Client;
use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::Pairs;
use trefoil_http::negotiation::format::{Chosen, FORM};
use trefoil_model::OnDelete;
use trefoil_model::error::Error;
use trefoil_model::naming::{inflection, names};
use trefoil_resources::form_input::Filled;
use trefoil_resources::list_query::Takes;
use trefoil_resources::parsed_body::{Place, Sent};
use trefoil_resources::request::Ask;
use trefoil_resources::write::{NEVER, refusal, see_other};
use trefoil_resources::{body_text, form_input};

impl Served {
    pub async fn delete_form(&self, ask: &Ask<'_>, id: i64) -> Result<Response, Problem> {
        self.asking(ask, id, StatusCode::OK, Vec::new()).await
    }

    /// DELETE from a client that takes more than JSON.
    pub async fn remove(&self, ask: &Ask<'_>, id: i64) -> Result<Response, Problem> {
        ask.query(ask.collection.record, Takes::Nothing)?;
        let expected = ask.expected(id).await?;
        let done = ask.carry_out(ask.deletion(id, expected), ask.key(b"")?).await;
        let done = done.map_err(refusal)?;
        Ok(done.marked(see_other(&ask.collection.path)))
    }

    pub async fn remove_by_form(&self, ask: &Ask<'_>, id: i64, bytes: &[u8]) -> Result<Response, Problem> {
        let pairs = sent(ask, bytes)?;
        let filled = Filled::of(ask.record(), &pairs);
        let key = keys::key(ask.key(bytes)?, ask.head, filled.key.as_deref(), &pairs);
        let in_headers = [IF_MATCH, IF_NONE_MATCH].iter().any(|name| ask.headers().contains_key(name));
        let expected = match &filled.version {
            Some(version) if !in_headers => Some(version.trim().parse().unwrap_or(NEVER)),
            Some(_) | None => ask.expected(id).await?,
        };
        let takes_page = FORM.wanted(ask.headers(), Chosen::Nothing).is_ok();
        match keys::write(ask, ask.deletion(id, expected), key).await {
            Ok(done) => {
                let (mut response, client) = (done.marked(see_other(&ask.collection.path)), client(ask));
                flash::tell(&mut response, client, Deed::Deleted, &ask.collection.path, id);
                Ok(response)
            }
            Err(Error::Conflict(violations)) if takes_page => {
                let why = violations.into_iter().map(|violation| violation.message).collect();
                self.asking(ask, id, StatusCode::CONFLICT, why).await
            }
            Err(Error::Stale { .. }) if !in_headers && takes_page => {
                let noun = &self.subject(ask.collection.record).resource.noun;
                let why = format!("This {noun} was changed meanwhile: look at it again before you delete it");
                self.asking(ask, id, StatusCode::CONFLICT, vec![why]).await
            }
            Err(error) => Err(refusal(error)),
        }
    }

    /// The page that asks; `why` it does so again.
    async fn asking(
        &self,
        ask: &Ask<'_>,
        id: i64,
        status: StatusCode,
        why: Vec<String>,
    ) -> Result<Response, Problem> {
        let (record, engine) = (ask.collection.record, &ask.site.engine);
        let titles = Selection::clone(&self.titles(engine.model(), record)).with_version();
        let operation = Operation::Get { record, id, selection: titles.into() };
        let found = look(engine, vec![operation], PART).await.map_err(refusal)?;
        let row = found.iter().flat_map(|found| &found.rows).next().ok_or_else(|| ask.missing(record, id))?;
        let (_, title) = self.title(record, row).ok_or_else(|| ask.missing(record, id))?;
        let version = row.cells.last().and_then(|cell| cell.as_cell().to_i64()).unwrap_or(NEVER);
        let affected = effects(engine, record, id).await.map_err(refusal)?;
        let resource = self.subject(record).resource.clone();
        let keep = format!("{}/{id}", resource.path);
        let mut told: Vec<Effect> = affected.iter().map(|affected| self.effect(ask, id, affected)).collect();
        let blocked = told.iter().any(|effect| effect.blocks);
        // What the store refused and is not seen any more, or is no matter of references.
        if !blocked {
            told.extend(why.into_iter().map(|text| Effect { text, href: keep.clone(), blocks: false }));
        }
        let above = vec![
            Link { label: resource.plural.clone(), href: resource.path.clone() },
            Link { label: title.clone(), href: keep.clone() },
        ];
        let mut head = Head::new("Delete", &resource.path, above);
        head.title = format!("Delete {title}");
        head.ways = Some(self.ways(ask.site, ask.head, About::Delete { record, id }));
        let submit = self.submit(&resource.noun, &affected);
        let (action, key) = (format!("{keep}/delete"), keys::fresh());
        let delete = Delete { resource, title, action, key, version, keep, submit, effects: told, blocked };
        self.show(ask.headers(), status, head, "delete", &delete)
    }

    fn effect(&self, ask: &Ask<'_>, id: i64, affected: &Affected) -> Effect {
        let resource = &self.subject(affected.record).resource;
        let field = ask.site.engine.model().record(affected.record).field(affected.field);
        let (many, one) = (counted(&resource.noun, affected.count), affected.count == 1);
        let label = names::label(&field.name).to_lowercase();
        let text = match (affected.fate, one) {
            (OnDelete::Cascade, true) => format!("{many} will be deleted too"),
            (OnDelete::Cascade, false) => format!("{many} will be deleted too"),
            (OnDelete::SetNull, true) => format!("{many} will lose its {label}"),
            (OnDelete::SetNull, false) => format!("{many} will lose their {label}"),
            (OnDelete::Refuse, true) => format!("{many} cannot be without its {label}"),
            (OnDelete::Refuse, false) => format!("{many} cannot be without their {label}"),
        };
        let href = match affected.direct {
            true => format!("{}?{}={id}", resource.path, field.input_name),
            false => resource.path.clone(),
        };
        Effect { text, href, blocks: affected.fate == OnDelete::Refuse }
    }

    fn submit(&self, noun: &str, affected: &[Affected]) -> String {
        let mut going = affected.iter().filter(|affected| affected.fate == OnDelete::Cascade);
        match (going.next(), going.next()) {
            (None, _) => format!("Delete {noun}"),
            (Some(only), None) => {
                let also = counted(&self.subject(only.record).resource.noun, only.count);
                format!("Delete {noun} and {}", also.replacen("More", "more", 1))
            }
            (Some(_), Some(_)) => format!("Delete {noun} and all that goes with it"),
        }
    }
}

/// "3 orders", "More than 1,000 orders".
fn counted(noun: &str, count: usize) -> String {
    match count {
        0..=MOST => inflection::counted(noun, count as u64),
        _ => format!("More than 1,000 {}", inflection::plural(noun)),
    }
}

/// The hidden fields, where the body is a form; any other body says nothing.
fn sent(ask: &Ask<'_>, bytes: &[u8]) -> Result<Pairs, Problem> {
    let essence = body_text::essence(ask.headers());
    if !["application/x-www-form-urlencoded", "multipart/form-data"].contains(&essence.as_str()) {
        return Ok(Pairs::new());
    }
    let is_field = |name: &str| form_input::of_control(ask.record(), name).is_some();
    match Place::Record.read(ask.headers(), bytes, is_field)? {
        Sent::Form(pairs) => Ok(pairs),
        Sent::Record(_) | Sent::Records(_) | Sent::Text(_) => Ok(Pairs::new()),
    }
}

fn client<'a>(ask: &'a Ask<'_>) -> Option<&'a Client> {
    ask.head.extensions.get::<Client>()
}
