//! The cookie that a browser has its session in, and the one of a sign-in that it has begun at a provider.

use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

/// Over HTTPS. Browsers take a cookie of this name only from this host, over HTTPS and for all paths.
const SECURE_NAME: &str = "__Host-trefoil";

/// Over plain HTTP.
const PLAIN_NAME: &str = "trefoil";

/// The same for a sign-in that was begun.
const SECURE_PENDING_NAME: &str = "__Host-trefoil-sign-in";
const PLAIN_PENDING_NAME: &str = "trefoil-sign-in";

fn cookie_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_NAME } else { PLAIN_NAME }
}

fn pending_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_PENDING_NAME } else { PLAIN_PENDING_NAME }
}

/// The token in the session's cookie; `None` without one, or with two.
pub(crate) fn find_token(headers: &HeaderMap, is_secure: bool) -> Option<&str> {
    find_cookie(headers, cookie_name(is_secure))
}

/// The sign-in that the browser has begun.
pub fn find_pending_sign_in(headers: &HeaderMap, is_secure: bool) -> Option<&str> {
    find_cookie(headers, pending_name(is_secure))
}

fn find_cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut tokens = pairs.filter(|(own, _)| *own == name).map(|(_, token)| token);
    tokens.next().filter(|_| tokens.next().is_none())
}

/// The header that gives a browser its session for so many seconds.
pub fn session_cookie(token: &str, seconds: i64, is_secure: bool) -> HeaderValue {
    cookie(cookie_name(is_secure), token, seconds, is_secure)
}

/// The header that gives a browser the sign-in that it has begun. It comes back from the provider by a link, so it must not be
/// `SameSite=Strict`.
pub fn pending_cookie(text: &str, seconds: i64, is_secure: bool) -> HeaderValue {
    cookie(pending_name(is_secure), text, seconds, is_secure)
}

/// The header that takes it away.
pub fn no_session_cookie(is_secure: bool) -> HeaderValue {
    cookie(cookie_name(is_secure), "", 0, is_secure)
}

fn cookie(name: &str, token: &str, seconds: i64, is_secure: bool) -> HeaderValue {
    let secure = if is_secure { "; Secure" } else { "" };
    let text = format!("{name}={token}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Lax{secure}");
    HeaderValue::try_from(text).expect("a token is visible ASCII")
}

/// Takes the session's cookie away, unless the response gives another one.
pub(crate) fn remove_stale(headers: &mut HeaderMap, is_secure: bool) {
    let name = cookie_name(is_secure);
    let is_session = |value: &HeaderValue| {
        value.as_bytes().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    if !headers.get_all(SET_COOKIE).iter().any(is_session) {
        headers.append(SET_COOKIE, no_session_cookie(is_secure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_cookie_of_the_name_counts() {
        let token = |lines: &[&'static str], is_secure| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(COOKIE, HeaderValue::from_static(line));
            }
            find_token(&headers, is_secure).map(str::to_owned)
        };
        assert_eq!(token(&["a=b; trefoil=tfs_x"], false).as_deref(), Some("tfs_x"));
        assert_eq!(token(&["a=b", "trefoil=tfs_x"], false).as_deref(), Some("tfs_x"));
        assert_eq!(token(&["trefoil=tfs_x; trefoil=tfs_y"], false), None);
        assert_eq!(token(&["trefoil=tfs_x; __Host-trefoil=tfs_y"], true).as_deref(), Some("tfs_y"));
        assert_eq!(token(&["__Host-trefoil=tfs_y"], false), None);
        assert_eq!(token(&["trefoil"], false), None);
    }

    #[test]
    fn stale_cookies_are_removed_once() {
        let mut headers = HeaderMap::from_iter([(SET_COOKIE, HeaderValue::from_static("trefoil-flash=x"))]);
        remove_stale(&mut headers, false);
        remove_stale(&mut headers, false);
        let lines: Vec<&HeaderValue> = headers.get_all(SET_COOKIE).iter().collect();
        assert_eq!(lines, ["trefoil-flash=x", "trefoil=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax"]);
    }
}
