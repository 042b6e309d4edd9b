//! Requests from pages of other sites: cross-site writes are refused, listed CORS origins are allowed.

use super::{Server, start, usual};
use trefoil_config::{Config, IpNetwork};

const OTHER: &str = "https://app.example";

async fn check(server: &Server, fields: &str, status: u16) {
    let answer = server.ask(&format!("POST /echo|{fields}"), "x").await;
    answer.is(status, if status == 403 { "cross-site" } else { "x" });
}

#[tokio::test]
async fn cross_site_writes_are_refused() {
    let server = start(usual()).await;
    check(&server, "X: no browser", 200).await;
    check(&server, "Sec-Fetch-Site: same-origin", 200).await;
    check(&server, "Sec-Fetch-Site: none", 200).await;
    check(&server, "Sec-Fetch-Site: cross-site", 403).await;
    check(&server, "Sec-Fetch-Site: same-site", 403).await;
    check(&server, "Origin: http://localhost", 200).await;
    check(&server, "Origin: https://app.example", 403).await;
    check(&server, "Origin: null", 403).await;
    check(&server, "Sec-Fetch-Site: cross-site|Origin: http://localhost", 403).await;
    server.ask("GET /hello|Sec-Fetch-Site: cross-site", "").await.is(200, "Hello");
    let graphql = server.ask("POST /graphql|Sec-Fetch-Site: cross-site", "{}").await;
    assert_eq!(
        (graphql.status, &graphql.json()["errors"][0]["extensions"]["code"]),
        (403, &"CROSS_SITE".into())
    );
}

/// A proxy that asks for another name has the name that the browser knows in `X-Forwarded-Host`.
#[tokio::test]
async fn a_write_is_compared_with_the_host_that_the_proxy_was_asked_for() {
    let here = IpNetwork { address: [127, 0, 0, 1].into(), prefix: 32 };
    let server = start(Config { trusted_proxies: vec![here], ..usual() }).await;
    let proxied = "X-Forwarded-For: 1.1.1.1|X-Forwarded-Proto: https|X-Forwarded-Host: app.example";
    check(&server, &format!("Origin: {OTHER}|{proxied}"), 200).await;
    check(&server, &format!("Origin: http://localhost|{proxied}"), 403).await;
    check(&server, &format!("Origin: https://evil.example|{proxied}"), 403).await;
    // Nobody else may say so.
    let server = start(usual()).await;
    check(&server, &format!("Origin: {OTHER}|{proxied}"), 403).await;
}

#[tokio::test]
async fn cors_headers_are_absent_without_listed_origins() {
    let server = start(usual()).await;
    let answer = server.ask(&format!("GET /hello|Origin: {OTHER}"), "").await;
    assert_eq!(answer.field("access-control-allow-origin"), None);
    let preflight =
        server.ask(&format!("OPTIONS /echo|Origin: {OTHER}|Access-Control-Request-Method: POST"), "").await;
    assert_eq!((preflight.status, preflight.field("access-control-allow-origin")), (204, None));
}

#[tokio::test]
async fn cors_listed_origin_may_read_and_write() {
    let server = start(Config { cors_origins: vec![OTHER.into()], ..usual() }).await;
    let head = format!(
        "OPTIONS /echo|Origin: {OTHER}|Access-Control-Request-Method: POST|\
                        Access-Control-Request-Headers: content-type,x-mine"
    );
    let preflight = server.ask(&head, "").await;
    assert_eq!((preflight.status, preflight.field("access-control-allow-origin")), (200, Some(OTHER)));
    assert_eq!(preflight.field("access-control-allow-headers"), Some("content-type,x-mine"));
    assert!(
        preflight.field("access-control-allow-methods").is_some_and(|methods| methods.contains("DELETE"))
    );
    assert!(preflight.field("x-request-id").is_some());
    let plain = server.ask(&format!("OPTIONS /echo|Origin: {OTHER}"), "").await;
    assert_eq!(plain.status, 204);
    assert!(plain.field("allow").is_some_and(|allow| allow.contains("OPTIONS")), "{plain:?}");

    let write = server.ask(&format!("POST /echo|Origin: {OTHER}|Sec-Fetch-Site: cross-site"), "x").await;
    write.is(200, "x");
    assert_eq!(write.field("access-control-allow-origin"), Some(OTHER));
    let exposed = write.field("access-control-expose-headers").expect("a list").to_ascii_lowercase();
    for name in [
        "etag",
        "link",
        "location",
        "retry-after",
        "ratelimit",
        "ratelimit-policy",
        "x-request-id",
        "x-total-count",
    ] {
        assert!(exposed.split(',').any(|own| own.trim() == name), "{name} in {exposed}");
    }
    // Its errors can be read, too.
    let lost = server.ask(&format!("GET /nowhere|Origin: {OTHER}"), "").await;
    assert_eq!((lost.status, lost.field("access-control-allow-origin")), (404, Some(OTHER)));

    check(&server, "Origin: https://evil.example|Sec-Fetch-Site: cross-site", 403).await;
    let stranger = server.ask("GET /hello|Origin: https://evil.example", "").await;
    assert_eq!(stranger.field("access-control-allow-origin"), None);
}

#[tokio::test]
async fn cors_wildcard_allows_reads_but_no_writes() {
    let server = start(Config { cors_origins: vec!["*".into(), OTHER.into()], ..usual() }).await;
    let evil = "Origin: https://evil.example|Sec-Fetch-Site: cross-site";
    let read = server.ask(&format!("GET /hello|{evil}"), "").await;
    assert_eq!((read.status, read.field("access-control-allow-origin")), (200, Some("*")));
    assert_eq!(read.field("access-control-allow-credentials"), None);
    // With a preflight before it or, as here, without one.
    for simple in ["text/plain", "application/x-www-form-urlencoded", "application/json"] {
        let write = server.ask(&format!("POST /echo|{evil}|Content-Type: {simple}"), "x").await;
        write.is(403, "cors-origins");
        assert_eq!(write.field("access-control-allow-origin"), Some("*"), "the page can read why");
    }
    check(&server, "Origin: null", 403).await;
    check(&server, "Origin: *", 403).await;
    check(&server, &format!("Origin: {OTHER}|Sec-Fetch-Site: cross-site"), 200).await;
    check(&server, "Sec-Fetch-Site: same-origin", 200).await;
}
