//! Forms for new and changed records: how they are sent, and what becomes of them.

use axum::response::Response;
use http::header::{IF_MATCH, IF_NONE_MATCH};

use crate::Served;
use crate::flash;
use crate::flash::Deed;
use crate::form::editable_record::Kept;
use crate::form::keys;
use crate::form::page::{Sheet, Trouble};
use trefoil_engine::{Absent, Operation};
use trefoil_http::client::Client;
use trefoil_http::errors::problem::{Problem, Voice};
use trefoil_http::form_pairs;
use trefoil_http::form_pairs::Pairs;
use trefoil_model::RecordType;
use trefoil_model::error::{Error, Missing, Violation};
use trefoil_resources::field_values::Fields;
use trefoil_resources::form_input::{Filled, Meant, is_about};
use trefoil_resources::request::Ask;
use trefoil_resources::write::{NEVER, refusal, see_other};

impl Served {
    /// What the query says is filled in already: `/orders/new?userId=1`.
    pub async fn new_form(&self, ask: &Ask<'_>) -> Result<Response, Problem> {
        let mut given = form_pairs::urlencoded(ask.head.uri.query().unwrap_or_default(), "the query")?;
        given.retain(|(_, value)| !value.is_empty());
        let filled = Filled::of(ask.record(), &given);
        self.sheet(
            ask,
            Sheet { of: None, filled: Filled { version: None, ..filled }, trouble: Trouble::None },
        )
        .await
    }

    pub async fn edit_form(&self, ask: &Ask<'_>, id: i64) -> Result<Response, Problem> {
        let Some(kept) = self.kept(ask, id).await? else {
            return Err(ask.missing(ask.collection.record, id));
        };
        let mut filled = kept.filled(ask.site.engine.model(), ask.record());
        filled.version = Some(kept.version.to_string());
        self.sheet(ask, Sheet { of: Some((id, kept)), filled, trouble: Trouble::None }).await
    }

    pub async fn create(&self, ask: &Ask<'_>, pairs: &Pairs, bytes: &[u8]) -> Result<Response, Problem> {
        self.created(ask, pairs, bytes).await.map_err(|problem| problem.voice(Voice::Html))
    }

    async fn created(&self, ask: &Ask<'_>, pairs: &Pairs, bytes: &[u8]) -> Result<Response, Problem> {
        let filled = Filled::of(ask.record(), pairs);
        if filled.pressed.is_some() {
            return self.again(ask, None, filled).await;
        }
        let key = keys::key(ask.key(bytes)?, ask.head, filled.key.as_deref(), pairs);
        let meant = filled.read(ask.site.engine.model(), ask.record());
        let done = match judged(ask, meant, Absent::Reset) {
            Ok(fields) => keys::write(ask, ask.creation(fields, &ask.collection.whole.selection), key).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(done) => {
                let mut response = done.marked(see_other(&ask.collection.path));
                tell(ask, &mut response, Deed::Created, done.written.id);
                Ok(response)
            }
            Err(error) => self.refused(ask, None, filled, error).await,
        }
    }

    pub async fn replace(
        &self,
        ask: &Ask<'_>,
        id: i64,
        pairs: &Pairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        self.replaced(ask, id, pairs, bytes).await.map_err(|problem| problem.voice(Voice::Html))
    }

    async fn replaced(
        &self,
        ask: &Ask<'_>,
        id: i64,
        pairs: &Pairs,
        bytes: &[u8],
    ) -> Result<Response, Problem> {
        let filled = Filled::of(ask.record(), pairs);
        if filled.pressed.is_some() {
            return self.again(ask, Some(id), filled).await;
        }
        let key = keys::key(ask.key(bytes)?, ask.head, filled.key.as_deref(), pairs);
        let seen = Seen::of(ask, id, &filled).await?;
        let meant = filled.read(ask.site.engine.model(), ask.record());
        let (meant, absent) = self.without_untouched(ask, id, &seen, meant).await?;
        let expected = seen.version();
        let done = match judged(ask, meant, absent) {
            Ok(fields) => keys::write(ask, ask.change(id, fields, absent, expected), key).await,
            Err(error) => Err(error),
        };
        match (done, seen) {
            (Ok(done), _) => {
                let mut response = done.marked(see_other(&format!("{}/{id}", ask.collection.path)));
                tell(ask, &mut response, Deed::Updated, id);
                Ok(response)
            }
            (Err(Error::Stale { .. }), Seen::InForm(_)) => self.conflicting(ask, id, filled).await,
            (Err(Error::NotFound { what: Missing::Record { .. } }), Seen::InForm(_)) => {
                self.gone(ask, filled).await
            }
            (Err(error), Seen::InForm(_) | Seen::InHeaders(_)) => {
                self.refused(ask, Some(id), filled, error).await
            }
        }
    }

    /// Where the form was made of the record as it still is, only what was changed in it is written.
    async fn without_untouched(
        &self,
        ask: &Ask<'_>,
        id: i64,
        seen: &Seen,
        meant: Meant,
    ) -> Result<(Meant, Absent), Problem> {
        let Seen::InForm(version) = seen else { return Ok((meant, Absent::Reset)) };
        let kept = self.kept(ask, id).await?.filter(|kept| kept.version == *version);
        let Some(kept) = kept else { return Ok((meant, Absent::Reset)) };
        let Meant { fields, violations } = meant;
        let fields = kept.changed(ask.site.engine.model(), ask.record(), fields);
        Ok((Meant { fields, violations }, Absent::Keep))
    }

    /// A button was pressed that only changes the form.
    async fn again(&self, ask: &Ask<'_>, id: Option<i64>, mut filled: Filled) -> Result<Response, Problem> {
        filled.press(ask.record());
        let of = self.of(ask, id).await?;
        self.sheet(ask, Sheet { of, filled, trouble: Trouble::None }).await
    }

    /// The form with what is wrong with it; what is not the form's fault is an error page.
    async fn refused(
        &self,
        ask: &Ask<'_>,
        id: Option<i64>,
        filled: Filled,
        error: Error,
    ) -> Result<Response, Problem> {
        let trouble = match error {
            Error::Invalid(violations) => Trouble::Invalid(violations),
            Error::Conflict(violations) => Trouble::Taken(violations),
            error @ (Error::NotFound { .. }
            | Error::Stale { .. }
            | Error::KeyReused
            | Error::KeyInUse
            | Error::Limit(_)
            | Error::Unavailable { .. }
            | Error::OutcomeUnknown
            | Error::Cancelled
            | Error::Internal { .. }
            | Error::EventId { .. }
            | Error::Resolver { .. }) => return Err(refusal(error)),
        };
        let of = self.of(ask, id).await?;
        self.sheet(ask, Sheet { of, filled: filled.without_blank_groups(), trouble }).await
    }

    /// The record that a form is about.
    async fn of(&self, ask: &Ask<'_>, id: Option<i64>) -> Result<Option<(i64, Kept)>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let kept = self.kept(ask, id).await?;
        let kept = kept.ok_or_else(|| ask.missing(ask.collection.record, id))?;
        Ok(Some((id, kept)))
    }

    async fn conflicting(&self, ask: &Ask<'_>, id: i64, mut filled: Filled) -> Result<Response, Problem> {
        let Some(kept) = self.kept(ask, id).await? else { return self.gone(ask, filled).await };
        let theirs = kept.filled(ask.site.engine.model(), ask.record());
        filled.version = Some(kept.version.to_string());
        let trouble = Trouble::Overtaken(Box::new(theirs));
        self.sheet(ask, Sheet { of: Some((id, kept)), filled: filled.without_blank_groups(), trouble }).await
    }

    /// Somebody has deleted what is being edited: what was typed can still become a new record.
    async fn gone(&self, ask: &Ask<'_>, mut filled: Filled) -> Result<Response, Problem> {
        filled.version = None;
        self.sheet(ask, Sheet { of: None, filled: filled.without_blank_groups(), trouble: Trouble::Gone })
            .await
    }
}

/// The version that a form may overwrite, and who named it.
enum Seen {
    /// `If-Match` and its kin, or nobody.
    InHeaders(Option<i64>),
    InForm(i64),
}

impl Seen {
    async fn of(ask: &Ask<'_>, id: i64, filled: &Filled) -> Result<Seen, Problem> {
        let in_headers = [IF_MATCH, IF_NONE_MATCH].iter().any(|name| ask.headers().contains_key(name));
        match &filled.version {
            // What is no version is none that the record is at.
            Some(version) if !in_headers => Ok(Seen::InForm(version.trim().parse().unwrap_or(NEVER))),
            Some(_) | None => Ok(Seen::InHeaders(ask.expected(id).await?)),
        }
    }

    fn version(&self) -> Option<i64> {
        match self {
            Seen::InHeaders(version) => *version,
            Seen::InForm(version) => Some(*version),
        }
    }
}

/// The fields, if all that was typed stands for values; else everything that is wrong, in the order of the schema.
fn judged(ask: &Ask<'_>, meant: Meant, absent: Absent) -> Result<Fields, Error> {
    let Meant { fields, mut violations } = meant;
    if violations.is_empty() {
        return Ok(fields);
    }
    let (record, selection) = (ask.collection.record, ask.collection.whole.selection.clone());
    let operation = Operation::Update { record, id: 0, fields, absent, expected_version: None, selection };
    let others = ask.site.engine.violations(operation).into_iter();
    let told = violations.clone();
    violations.extend(others.filter(|other| !told.iter().any(|known| starts_alike(known, other))));
    violations.sort_by_key(|violation| position(ask.record(), violation));
    Err(Error::Invalid(violations))
}

fn starts_alike(one: &Violation, other: &Violation) -> bool {
    one.path.first() == other.path.first()
}

fn position(record: &RecordType, violation: &Violation) -> usize {
    let found = record.fields.iter().position(|field| is_about(violation, &field.input_name));
    found.unwrap_or(record.fields.len())
}

fn tell(ask: &Ask<'_>, response: &mut Response, deed: Deed, id: i64) {
    flash::tell(response, ask.head.extensions.get::<Client>(), deed, &ask.collection.path, id);
}
