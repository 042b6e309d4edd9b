//! Flash messages: a cookie that tells the next page what was done, by a code and never by text, and is cleared there.

use axum::response::Response;
use http::header::{COOKIE, HeaderName, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

use trefoil_http::client_info::ClientInfo;

use trefoil_model::RecordId;

use trefoil_resources::collection::record_path;

use crate::Pages;
use crate::template_data::{FlashView, PageLink};

/// What a browser wants the response for.
pub const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Long enough for a redirect, and too short to show an old message.
const MAX_AGE_SECONDS: u32 = 30;

/// The write that a message reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlashKind {
    Created,
    Updated,
    Deleted,
    /// Added to a plain list.
    Added,
}

impl FlashKind {
    const ALL: [FlashKind; 4] =
        [FlashKind::Created, FlashKind::Updated, FlashKind::Deleted, FlashKind::Added];

    fn code(self) -> &'static str {
        match self {
            FlashKind::Created => "created",
            FlashKind::Updated => "updated",
            FlashKind::Deleted => "deleted",
            FlashKind::Added => "added",
        }
    }
}

/// Sets the cookie for the record `id` at `path`, which may be out of sight. For a plain list `id` has no meaning.
pub fn set_cookie(
    response: &mut Response,
    client: Option<&ClientInfo>,
    kind: FlashKind,
    path: &str,
    id: Option<&RecordId>,
) {
    let name = path.trim_start_matches('/');
    // Cookies allow no other characters: without a message for such a path.
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_/~".contains(&byte)) {
        return;
    }
    let segment = id.map_or_else(|| ".".to_owned(), |id| record_path("", id).replacen('/', ".", 1));
    let secure = if client.is_some_and(|client| client.secure) { "; Secure" } else { "" };
    let cookie = format!(
        "flash={}.{name}{segment}; Path=/; Max-Age={MAX_AGE_SECONDS}; HttpOnly; SameSite=Lax{secure}",
        kind.code()
    );
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
}

/// Clears the cookie after its message was shown.
pub fn clear_cookie(headers: &mut HeaderMap) {
    headers.append(SET_COOKIE, HeaderValue::from_static("flash=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"));
}

/// The value of the cookie, unless a script fetches the page in the background: the message is for the page that the
/// browser navigates to.
pub fn cookie_for_page(headers: &HeaderMap) -> Option<&str> {
    if headers.get(FETCH_DEST).is_some_and(|dest| dest != "document") {
        return None;
    }
    cookie_value(headers)
}

/// The value of the cookie.
pub fn cookie_value(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).find_map(|cookie| cookie.trim().strip_prefix("flash="))
}

impl Pages {
    /// The message for a code; `None` if the code is not valid here.
    pub fn flash_view(&self, code: &str) -> Option<FlashView> {
        let (kind, rest) = code.split_once('.')?;
        let (name, segment) = rest.split_once('.')?;
        let is_segment = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte));
        if !is_segment {
            return None;
        }
        let kind = FlashKind::ALL.into_iter().find(|known| known.code() == kind)?;
        let path = format!("/{name}");
        if kind == FlashKind::Added {
            let list = self.site_view.nav.iter().find(|link| link.href == path)?;
            return Some(FlashView {
                text: format!("Added to {}.", list.label.to_lowercase()),
                link: None,
                another: None,
            });
        }
        let labels = self.labels.iter().find(|labels| labels.resource.path == path)?;
        let (label, noun) = (&labels.resource.label, &labels.resource.noun);
        // A changed record is on the page that shows the message.
        let link = (kind == FlashKind::Created && !segment.is_empty())
            .then(|| PageLink { label: format!("View the new {noun}"), href: format!("{path}/{segment}") });
        let another = (kind == FlashKind::Created)
            .then(|| PageLink { label: format!("Create another {noun}"), href: format!("{path}/new") });
        Some(FlashView { text: format!("{label} {}.", kind.code()), link, another })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flash_cookie_is_found_among_others() {
        let headers = |line: &'static str| HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(line))]);
        assert_eq!(cookie_for_page(&headers("a=b; flash=created.users.1; c=d")), Some("created.users.1"));
        assert_eq!(cookie_for_page(&headers("flash=")), Some(""));
        assert_eq!(cookie_for_page(&headers("aflash=x; flash")), None);
        assert_eq!(cookie_for_page(&HeaderMap::new()), None);
        for (dest, is_shown) in [("document", true), ("empty", false)] {
            let mut headers = headers("flash=created.users.1");
            headers.insert(FETCH_DEST, HeaderValue::from_static(dest));
            assert_eq!(cookie_for_page(&headers).is_some(), is_shown, "{dest}");
        }
    }

    #[test]
    fn flash_cookie_has_code_and_safe_path() {
        let mut response = Response::default();
        set_cookie(&mut response, None, FlashKind::Created, "/users", Some(&RecordId::Number(12)));
        set_cookie(&mut response, None, FlashKind::Created, "/us;ers", Some(&RecordId::Number(12)));
        let cookies: Vec<&HeaderValue> = response.headers().get_all(SET_COOKIE).iter().collect();
        assert_eq!(cookies, ["flash=created.users.12; Path=/; Max-Age=30; HttpOnly; SameSite=Lax"]);
    }
}
