//! What must become of a write: allowed with its effect, or refused with one of these codes.

use super::deeds::{RecordDeed, WriteRequest, is_settable};
use super::judge::{OldState, RuleJudge, Verdict};
use super::rule_tree::Deed;
use super::shape::Content;
use super::stock::{AccessStock, Cell};

/// What must become of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteVerdict {
    /// The records afterwards; those that are created have ids that the store chooses.
    Allowed(Box<AccessStock>),
    /// With one of these codes, and nothing is changed.
    Refused(Vec<&'static str>),
    /// Nothing is said of it; if it is refused, nothing is changed.
    Open,
}

/// What a write that is refused by a rule is told.
fn forbidden(judge: &RuleJudge<'_>) -> WriteVerdict {
    WriteVerdict::Refused(vec![if judge.actor.is_signed_in() { "FORBIDDEN" } else { "UNAUTHENTICATED" }])
}

/// What must become of a write. Of several records it is not told whose refusal comes first.
pub fn verdict(judge: &RuleJudge<'_>, request: &WriteRequest) -> WriteVerdict {
    match verdict_in_order(judge, request) {
        WriteVerdict::Refused(_) if request.deeds.len() > 1 => {
            let of_rule = if judge.actor.is_signed_in() { "FORBIDDEN" } else { "UNAUTHENTICATED" };
            WriteVerdict::Refused(vec![of_rule, "FORBIDDEN", "NOT_FOUND", "REFERENCE", "CONFLICT"])
        }
        verdict => verdict,
    }
}

/// In the order of docs/access.md: what can never be, the record, its rule, references, the record as it would be.
fn verdict_in_order(judge: &RuleJudge<'_>, request: &WriteRequest) -> WriteVerdict {
    for deed in &request.deeds {
        if is_never(judge, deed) {
            return forbidden(judge);
        }
        // Anonymous actors need a credential, unless nobody may set the field.
        if gives_forbidden_field(judge, deed) {
            let is_known = judge.actor.is_signed_in();
            return WriteVerdict::Refused(if is_known {
                vec!["FORBIDDEN"]
            } else {
                vec!["UNAUTHENTICATED", "FORBIDDEN"]
            });
        }
    }
    if is_wrong(judge, request) {
        return WriteVerdict::Open;
    }
    let is_written = |deed: &&RecordDeed| {
        // Of many only those are written that are found.
        !request.is_of_many || deed.id.is_some_and(|id| is_seen(judge, deed.of, id))
    };
    let deeds: Vec<&RecordDeed> = request.deeds.iter().filter(is_written).collect();
    let mut after = judge.stock.clone();
    let mut created: Vec<(usize, i64)> = Vec::new();
    for deed in &deeds {
        let before = deed.id.and_then(|id| judge.stock.rows[deed.of].get(&id));
        if let Some(id) = deed.id {
            if before.is_none() || !is_seen(judge, deed.of, id) {
                return WriteVerdict::Refused(vec!["NOT_FOUND"]);
            }
            if !judge.allows(deed.of, id, deed.deed) {
                return forbidden(judge);
            }
            let is_changed = |(at, cell): &&(usize, Cell)| before.is_some_and(|row| row[*at] != *cell);
            let mut changed = deed.given.iter().filter(is_changed);
            if !changed.all(|(at, _)| judge.allows_field(deed.of, id, *at, Deed::Update)) {
                return forbidden(judge);
            }
        }
        let id = deed.id.unwrap_or_else(|| next_id(&after, deed.of));
        match deed.deed {
            Deed::Delete => drop(after.rows[deed.of].remove(&id)),
            Deed::Create | Deed::Update | Deed::Read | Deed::UpdateTo => {
                let outer = created.first().map(|(_, id)| *id);
                let row = deed.row_after(judge, before, outer);
                after.rows[deed.of].insert(id, row);
            }
        }
        if deed.id.is_none() {
            created.push((deed.of, id));
        }
    }
    if deeds.iter().any(|deed| has_unseen_reference(judge, deed)) {
        return WriteVerdict::Refused(vec!["REFERENCE"]);
    }
    if let Some(verdict) = forget_deleted(judge, &deeds, &mut after) {
        return verdict;
    }
    after.fill_other_sides(judge.shape);
    verdict_afterwards(judge, &deeds, &created, after)
}

/// The rules for records as they would be.
fn verdict_afterwards(
    judge: &RuleJudge<'_>,
    deeds: &[&RecordDeed],
    created: &[(usize, i64)],
    after: AccessStock,
) -> WriteVerdict {
    let mut new = created.iter();
    for deed in deeds {
        let before = deed.id.and_then(|id| judge.stock.rows[deed.of].get(&id));
        let old = Some(OldState { stock: judge.stock, row: before });
        let later = RuleJudge { stock: &after, old, ..*judge };
        match (deed.deed, deed.id) {
            (Deed::Update, Some(id)) => {
                if !later.allows(deed.of, id, Deed::UpdateTo) {
                    return forbidden(judge);
                }
            }
            (Deed::Create, _) => {
                let (of, id) = *new.next().expect("a created record");
                let may_give = |at: usize| later.allows_field(of, id, at, Deed::Create);
                if !later.allows(of, id, Deed::Create) || !given_fields(deed).all(may_give) {
                    return forbidden(judge);
                }
            }
            (Deed::Read | Deed::UpdateTo | Deed::Delete | Deed::Update, _) => {}
        }
    }
    WriteVerdict::Allowed(Box::new(after))
}

/// What no record could make allowed.
fn is_never(judge: &RuleJudge<'_>, deed: &RecordDeed) -> bool {
    let is_no = |of: usize, deed: Deed| judge.verdict(of, deed) == Verdict::No;
    match deed.deed {
        Deed::Update => is_no(deed.of, Deed::Update) || is_no(deed.of, Deed::UpdateTo),
        other => is_no(deed.of, other),
    }
}

/// Whether a field is given that the actor may set in no record.
fn gives_forbidden_field(judge: &RuleJudge<'_>, deed: &RecordDeed) -> bool {
    given_fields(deed).any(|at| judge.field_verdict(deed.of, at, deed.deed) == Verdict::No)
}

/// Which fields are given, with the reference of a record that is created in a list of another.
fn given_fields(deed: &RecordDeed) -> impl Iterator<Item = usize> {
    deed.given.iter().map(|(at, _)| *at).chain(deed.inside)
}

/// Whether the request itself is refused, by which of its mistakes is not told here: a required field is not given, or
/// several records get the same login.
fn is_wrong(judge: &RuleJudge<'_>, request: &WriteRequest) -> bool {
    let lacks = |deed: &RecordDeed| {
        let mut fields = judge.shape.types[deed.of].fields.iter().enumerate();
        let is_given = |at: usize| deed.given.iter().any(|(own, _)| *own == at) || deed.inside == Some(at);
        deed.deed == Deed::Create
            && fields.any(|(at, field)| field.required && is_settable(field) && !is_given(at))
    };
    let is_login = |deed: &RecordDeed| {
        deed.given.iter().any(|(at, _)| judge.shape.types[deed.of].fields[*at].content == Content::Login)
    };
    // Whether nothing is found, or the search is refused.
    let is_unseen = |deed: &RecordDeed| judge.verdict(deed.of, Deed::Read) == Verdict::No;
    let is_open_for_many = |deed: &RecordDeed| is_login(deed) || is_unseen(deed);
    request.deeds.iter().any(lacks) || request.is_of_many && request.deeds.iter().any(is_open_for_many)
}

fn is_seen(judge: &RuleJudge<'_>, of: usize, id: i64) -> bool {
    judge.stock.rows[of].contains_key(&id) && judge.allows(of, id, Deed::Read)
}

/// Whether a reference or link is given that leads to what is out of sight, also if it leads there already: who guesses it is
/// not told so.
fn has_unseen_reference(judge: &RuleJudge<'_>, deed: &RecordDeed) -> bool {
    deed.given.iter().any(|(at, cell)| {
        let Some(target) = judge.shape.types[deed.of].fields[*at].content.target() else { return false };
        let given: Vec<i64> = match cell {
            Cell::One(id) => vec![*id],
            Cell::Many(ids) => ids.clone(),
            _ => Vec::new(),
        };
        given.iter().any(|id| !is_seen(judge, target, *id))
    })
}

/// Links to deleted records go with them; a reference keeps them from being deleted.
fn forget_deleted(
    judge: &RuleJudge<'_>,
    deeds: &[&RecordDeed],
    after: &mut AccessStock,
) -> Option<WriteVerdict> {
    let deleted: Vec<(usize, i64)> = deeds
        .iter()
        .filter(|deed| deed.deed == Deed::Delete)
        .filter_map(|deed| Some((deed.of, deed.id?)))
        .collect();
    let mut is_referred_to = false;
    for (of, owner) in judge.shape.types.iter().enumerate() {
        for (at, field) in owner.fields.iter().enumerate() {
            let Some(target) = field.content.target() else { continue };
            for row in after.rows[of].values_mut() {
                let is_gone = |id: &i64| deleted.contains(&(target, *id));
                match &mut row[at] {
                    Cell::One(id) if is_gone(id) => is_referred_to = true,
                    Cell::Many(ids) if matches!(field.content, Content::Link { .. }) => {
                        ids.retain(|id| !is_gone(id))
                    }
                    _ => {}
                }
            }
        }
    }
    is_referred_to.then(|| WriteVerdict::Refused(vec!["CONFLICT"]))
}

/// An id that no record has.
fn next_id(stock: &AccessStock, of: usize) -> i64 {
    stock.rows[of].keys().last().copied().unwrap_or(0).max(1_000_000) + 1
}
