//! The sessions of an account, to itself and to those who manage it.

use jiff::Timestamp;

use trefoil_engine::{Engine, KeyAccount, SessionRecord};
use trefoil_model::error::Result;

use crate::Pages;
use crate::template_data::SessionView;

impl SessionView {
    /// `end` is the address that ends it.
    pub fn new(session: &SessionRecord, is_current: bool, end: Option<String>) -> SessionView {
        let times = |time: Timestamp| (time.to_string(), time.strftime("%-d %b %Y, %H:%M UTC").to_string());
        let ((created_at, created), (seen_at, seen)) = (times(session.created), times(session.seen));
        SessionView {
            created,
            created_at,
            seen,
            seen_at,
            address: session.address.clone().unwrap_or_default(),
            browser: session.browser.as_deref().map(browser_name).unwrap_or_default(),
            is_current,
            end,
        }
    }
}

impl Pages {
    /// Where an account is signed in, the last used first.
    pub(crate) async fn sessions_of(
        &self,
        engine: &Engine,
        account: &KeyAccount,
    ) -> Result<Vec<SessionView>> {
        let (sessions, now) = (engine.credentials()?.list_sessions(account).await?, Timestamp::now());
        let good = sessions.iter().filter(|(_, session)| session.is_good_at(now, self.session_idle));
        Ok(good.map(|(_, session)| SessionView::new(session, false, None)).collect())
    }
}

/// Browser and system of a `User-Agent`, as far as they are well known: "Firefox on Linux".
fn browser_name(text: &str) -> String {
    // Each names those before it, to be taken for them.
    let browsers = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    let systems = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |known: &[(&str, &'static str)]| {
        known.iter().find(|(part, _)| text.contains(part)).map(|(_, name)| *name)
    };
    match (find(&browsers), find(&systems)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, _) => text.chars().take(60).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_by_what_they_are() {
        for (text, expected) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1 Version/19.0 Safari/604.1",
                "Safari on iPhone",
            ),
            ("curl/8.5.0", "curl/8.5.0"),
        ] {
            assert_eq!(browser_name(text), expected);
        }
    }
}
