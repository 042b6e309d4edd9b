//! What must come of a request of the matrix, and whether it did.

use std::collections::BTreeSet;

use super::super::judge::{RuleJudge, Verdict};
use super::super::rule_tree::Deed;
use super::super::stock::Cell;
use super::faces::{MatrixAct, MatrixAnswer, MatrixFace};
use super::forms::item;

/// What must come of a request.
#[derive(Debug)]
pub enum Expected {
    /// By its code.
    Refused(Vec<&'static str>),
    /// With exactly these titles, and none of the other secrets.
    Shown {
        titles: BTreeSet<String>,
        secrets: BTreeSet<String>,
        has_hidden_field: bool,
    },
    Done,
}

fn refused(judge: &RuleJudge<'_>) -> Expected {
    Expected::Refused(vec![if judge.actor.is_signed_in() { "FORBIDDEN" } else { "UNAUTHENTICATED" }])
}

pub fn expected_of_read(
    judge: &RuleJudge<'_>,
    is_good: bool,
    of: usize,
    act: MatrixAct,
    id: i64,
) -> Expected {
    let is_never = |deed: Deed| judge.verdict(of, deed) == Verdict::No;
    let marks = |at: usize, ids: &[i64]| -> BTreeSet<String> {
        let is_shown = |id: &&i64| judge.allows_field(of, **id, at, Deed::Read);
        let cells = ids.iter().filter(is_shown).map(|id| &judge.stock.rows[of][id][at]);
        cells.filter_map(|cell| if let Cell::Text(mark) = cell { Some(mark.clone()) } else { None }).collect()
    };
    let has_hidden_field = judge.field_verdict(of, item::SECRET, Deed::Read) == Verdict::No;
    let shown = |ids: &[i64]| Expected::Shown {
        titles: marks(item::TITLE, ids),
        secrets: marks(item::SECRET, ids),
        has_hidden_field,
    };
    let is_seen = |id: i64| judge.allows(of, id, Deed::Read);
    match act {
        _ if !is_good => Expected::Refused(vec!["UNAUTHENTICATED"]),
        MatrixAct::NewForm if is_never(Deed::Create) => refused(judge),
        MatrixAct::NewForm => Expected::Done,
        _ if is_never(Deed::Read) => refused(judge),
        MatrixAct::EditForm if is_never(Deed::Update) => refused(judge),
        MatrixAct::List | MatrixAct::Csv => {
            let ids: Vec<i64> = judge.stock.rows[of].keys().copied().filter(|id| is_seen(*id)).collect();
            shown(&ids)
        }
        _ if !is_seen(id) => Expected::Refused(vec!["NOT_FOUND"]),
        MatrixAct::EditForm if !judge.allows(of, id, Deed::Update) => refused(judge),
        MatrixAct::EditForm => Expected::Done,
        _ => shown(&[id]),
    }
}

pub fn check_answer(
    face: MatrixFace,
    act: MatrixAct,
    expected: &Expected,
    answer: &MatrixAnswer,
    is_good: bool,
) -> Result<(), String> {
    let told =
        || Err(format!("{expected:?}, but {} {:?} {}", answer.status, answer.codes, short(&answer.text)));
    let is_graphql = face == MatrixFace::Graphql;
    match expected {
        Expected::Refused(codes) if is_graphql && is_good => {
            // What is not there is null.
            let is_null = act == MatrixAct::One && codes == &["NOT_FOUND"] && answer.codes.is_empty();
            let has = codes.iter().any(|code| answer.codes.iter().any(|own| own == code));
            if !(has || is_null) || !answer.marks.is_empty() {
                return told();
            }
        }
        Expected::Refused(codes) => {
            let is_read =
                matches!(act, MatrixAct::One | MatrixAct::List | MatrixAct::NewForm | MatrixAct::EditForm);
            let status = |code: &&str| match *code {
                // Whoever is nobody yet is led to where people sign in.
                "UNAUTHENTICATED" if face == MatrixFace::Pages && is_read && is_good => 303,
                "UNAUTHENTICATED" => 401,
                "FORBIDDEN" => 403,
                "NOT_FOUND" => 404,
                "CONFLICT" => 409,
                _ => 400,
            };
            if !codes.iter().any(|code| status(code) == answer.status) {
                return told();
            }
        }
        Expected::Shown { titles, secrets, has_hidden_field } => {
            let others: BTreeSet<String> = answer.marks.difference(titles).cloned().collect();
            // A page shows what there is room for.
            let is_told = match face {
                MatrixFace::Pages => others.is_subset(secrets),
                MatrixFace::Graphql | MatrixFace::Rest => others == *secrets,
            };
            let is_refused =
                answer.codes.iter().any(|code| ["FORBIDDEN", "UNAUTHENTICATED"].contains(&code.as_str()));
            if answer.status != 200
                || !titles.is_subset(&answer.marks)
                || !is_told
                || is_graphql && is_refused != *has_hidden_field
            {
                return told();
            }
        }
        Expected::Done => {
            let fits = match (face, act) {
                (MatrixFace::Graphql, _) => answer.status == 200,
                (_, MatrixAct::NewForm | MatrixAct::EditForm) => answer.status == 200,
                (MatrixFace::Pages, _) => answer.status == 303,
                (_, MatrixAct::Create) => answer.status == 201,
                (_, MatrixAct::Delete) => answer.status == 204,
                _ => answer.status == 200,
            };
            if !fits {
                return told();
            }
        }
    }
    Ok(())
}

/// The beginning of an answer, for a failure.
pub fn short(text: &str) -> &str {
    let text = text.split_once("<main").map_or(text, |(_, main)| main);
    let end = text.char_indices().nth(900).map_or(text.len(), |(at, _)| at);
    &text[..end]
}
