//! The page of the audit: who did what, the last first.

use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde::Serialize;

use trefoil_http::errors::problem::Problem;
use trefoil_http::form_pairs::percent_encode;

use crate::Pages;
use crate::account::sign_pages::keep_private;
use crate::pages::AUDIT_PATH;
use crate::template_data::{PageHead, PageLink};

/// What the page shows.
#[derive(Debug, Default)]
pub struct AuditPage {
    /// As they were typed: actor, type, and times.
    pub filters: AuditFilterTexts,
    /// The types to choose from.
    pub types: Vec<String>,
    /// What is wrong with the filters.
    pub mistakes: Vec<String>,
    pub entries: Vec<AuditRow>,
    /// The cursor of earlier entries.
    pub older: Option<String>,
    /// These are not the last ones.
    pub is_later_page: bool,
    /// Why there may be none.
    pub notice: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilterTexts {
    pub actor: String,
    pub type_name: String,
    pub since: String,
    pub until: String,
}

/// An entry.
#[derive(Debug)]
pub struct AuditRow {
    /// ISO and for people.
    pub time: (String, String),
    pub actor: Option<String>,
    /// The name of the action, and how often.
    pub action: String,
    pub count: Option<i64>,
    /// What it was done to, with its page.
    pub subject: String,
    pub href: Option<String>,
    pub version: Option<i64>,
    pub fields: Vec<String>,
    pub address: Option<String>,
    pub request: Option<String>,
}

/// `audit.html`: the audit; `audit` in the template.
#[derive(Debug, Default, Serialize)]
pub struct AuditView {
    pub action: String,
    /// The values of the filters.
    pub actor: String,
    pub since: String,
    pub until: String,
    pub types: Vec<AuditChoice>,
    pub is_filtered: bool,
    /// What is wrong with them.
    pub complaints: Vec<PageLink>,
    pub notice: Option<String>,
    pub entries: Vec<AuditLine>,
    /// Addresses of the last entries, and of those before these.
    pub newest: Option<String>,
    pub older: Option<String>,
}

/// A type to filter by.
#[derive(Debug, Serialize)]
pub struct AuditChoice {
    pub name: String,
    pub is_chosen: bool,
}

/// One entry.
#[derive(Debug, Serialize)]
pub struct AuditLine {
    /// The time for people and in ISO format.
    pub time: String,
    pub at: String,
    /// Who did it, with the address of all that they did; `None` for nobody that is known.
    pub actor: Option<PageLink>,
    pub action: String,
    pub subject: String,
    /// The page of the subject.
    pub href: Option<String>,
    pub fields: String,
    pub address: String,
    pub request: String,
}

impl AuditFilterTexts {
    fn is_empty(&self) -> bool {
        *self == AuditFilterTexts::default()
    }

    fn address(&self, cursor: Option<&str>) -> String {
        let parameters = [
            ("actor", Some(self.actor.as_str())),
            ("type", Some(&self.type_name)),
            ("since", Some(&self.since)),
            ("until", Some(&self.until)),
            ("before", cursor),
        ];
        let given = parameters
            .iter()
            .filter_map(|(name, value)| Some((*name, value.filter(|text| !text.is_empty())?)));
        let pairs: Vec<String> =
            given.map(|(name, value)| format!("{name}={}", percent_encode(value))).collect();
        if pairs.is_empty() { AUDIT_PATH.to_owned() } else { format!("{AUDIT_PATH}?{}", pairs.join("&")) }
    }
}

impl Pages {
    pub fn audit_page(
        &self,
        headers: &HeaderMap,
        status: StatusCode,
        page: AuditPage,
    ) -> Result<Response, Problem> {
        let filters = &page.filters;
        let mut types = page.types;
        if !filters.type_name.is_empty() && !types.contains(&filters.type_name) {
            // One that the schema does not have any more.
            types.push(filters.type_name.clone());
        }
        let choice = |name: String| AuditChoice { is_chosen: name == filters.type_name, name };
        let complaint = |label: String| PageLink { label, href: "#since".to_owned() };
        let view = AuditView {
            action: AUDIT_PATH.to_owned(),
            actor: filters.actor.clone(),
            since: filters.since.clone(),
            until: filters.until.clone(),
            types: types.into_iter().map(choice).collect(),
            is_filtered: !filters.is_empty(),
            complaints: page.mistakes.into_iter().map(complaint).collect(),
            notice: page.notice,
            newest: page.is_later_page.then(|| filters.address(None)),
            older: page.older.map(|cursor| filters.address(Some(&cursor))),
            entries: page.entries.into_iter().map(|row| line(filters, row)).collect(),
        };
        let head = PageHead::new("Audit", AUDIT_PATH, Vec::new());
        let mut response = self.page_response(headers, status, head, "audit", &view)?;
        keep_private(&mut response);
        Ok(response)
    }
}

fn line(filters: &AuditFilterTexts, row: AuditRow) -> AuditLine {
    let actor = row.actor.map(|label| {
        let href = AuditFilterTexts { actor: label.clone(), ..filters.clone() }.address(None);
        PageLink { label, href }
    });
    let count = row.count.map(|count| format!(" × {count}")).unwrap_or_default();
    let version = row.version.map(|version| format!(", version {version}")).unwrap_or_default();
    AuditLine {
        time: row.time.1,
        at: row.time.0,
        actor,
        action: format!("{}{count}", action_words(&row.action)),
        subject: format!("{}{version}", row.subject),
        href: row.href,
        fields: row.fields.join(", "),
        address: row.address.unwrap_or_default(),
        request: row.request.unwrap_or_default(),
    }
}

/// `failed-sign-ins` for people: "Failed sign ins".
fn action_words(name: &str) -> String {
    let words = name.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_the_filters() {
        let none = AuditFilterTexts::default();
        assert_eq!(none.address(None), "/_/audit");
        assert_eq!(none.address(Some("5.6")), "/_/audit?before=5.6");
        let all = AuditFilterTexts {
            actor: "key:a&b".to_owned(),
            type_name: "Post".to_owned(),
            since: "2026-11-14T09:30".to_owned(),
            until: String::new(),
        };
        assert_eq!(
            all.address(Some("5.6")),
            "/_/audit?actor=key%3Aa%26b&type=Post&since=2026-11-14T09%3A30&before=5.6"
        );
        assert_eq!(action_words("failed-sign-ins"), "Failed sign ins");
    }
}
