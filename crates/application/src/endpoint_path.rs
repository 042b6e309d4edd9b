//! Validation and normalisation of the path of an endpoint.

/// The path as requests spell it, or why it cannot be a path.
pub fn normalise_path(path: &str) -> Result<String, &'static str> {
    if !path.starts_with('/') {
        return Err("it must start with /");
    }
    if path.contains(['?', '#']) {
        return Err("it must not have a query or fragment");
    }
    if path.contains(['{', '}', '*']) {
        return Err("parameters and wildcards are not supported");
    }
    if path.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("it must not contain spaces, backslashes or control characters");
    }
    // Clients resolve these before they send, also percent-encoded.
    let is_dots =
        |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    if path.contains("//") || path.split('/').any(is_dots) {
        return Err("it must not have empty, `.` or `..` segments");
    }
    let mut url = url::Url::parse("http://localhost/").expect("a constant");
    url.set_path(path);
    Ok(url.path().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_or_rejected() {
        assert_eq!(normalise_path("/api/message").unwrap(), "/api/message");
        assert_eq!(normalise_path("/grüße").unwrap(), "/gr%C3%BC%C3%9Fe");
        assert_eq!(normalise_path("/hello/").unwrap(), "/hello/");
        for wrong in [
            "",
            "hello",
            "/a?b=1",
            "/a#b",
            "/a b",
            "//a",
            "/a/../b",
            "/users/{id}",
            "/a\\b",
            "/*",
            "/a/%2E./b",
        ] {
            assert!(normalise_path(wrong).is_err(), "{wrong}");
        }
    }
}
