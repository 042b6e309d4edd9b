//! Headers of every response, and errors in the format that the client accepts.

use std::io::Read;

use super::{request, start, usual};

#[tokio::test]
async fn security_headers_on_every_response() {
    let server = start(usual()).await;
    for (head, caching) in
        [("GET /hello", "no-cache"), ("GET /nowhere", "no-store"), ("GET /panic", "no-store")]
    {
        let answer = server.ask(head, "").await;
        let policy = answer.field("content-security-policy").expect("a policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'")
                && policy.contains("frame-ancestors 'none'")
        );
        assert_eq!(answer.field("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.field("referrer-policy"), Some("same-origin"));
        assert_eq!(answer.field("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(answer.field("cache-control"), Some(caching), "{head}");
        assert!(answer.field("x-request-id").is_some() && answer.field("date").is_some());
    }
    let own = server.ask("GET /own", "").await;
    assert_eq!(own.field("content-security-policy"), Some("mine"));
    assert_eq!(own.field("cache-control"), Some("immutable"));
}

#[tokio::test]
async fn request_id_is_kept_when_it_is_harmless() {
    let server = start(usual()).await;
    let kept = server.ask("GET /hello|X-Request-Id: trace-7.a", "").await;
    assert_eq!(kept.field("x-request-id"), Some("trace-7.a"));
    let made = server.ask("GET /hello|X-Request-Id: <script>", "").await;
    assert_ne!(made.field("x-request-id"), Some("<script>"));
}

#[tokio::test]
async fn unknown_path_and_method_errors_follow_accept() {
    let server = start(usual()).await;
    let text = server.ask("GET /nowhere", "").await;
    text.is(404, "no resource exists at this path");
    assert_eq!(text.field("content-type"), Some("text/plain; charset=utf-8"));
    for path in ["/hello/", "/Hello", "//hello"] {
        server.ask(&format!("GET {path}"), "").await.is(404, "");
    }
    let json = server.ask("DELETE /hello|Accept: application/json", "").await;
    assert_eq!((json.status, json.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
    assert_eq!(json.field("content-type"), Some("application/problem+json; charset=utf-8"));
    assert_eq!(json.json()["code"], "METHOD_NOT_ALLOWED");
    assert_eq!(json.json()["requestId"].as_str(), json.field("x-request-id"));
    let page = server.ask("GET /nowhere|Accept: text/html,*/*;q=0.8", "").await;
    page.is(404, "<h1>404 Not Found</h1>");
    assert!(page.field("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept")), "{page:?}");
}

#[tokio::test]
async fn validation_errors_are_listed() {
    let server = start(usual()).await;
    let answer = server.ask("POST /invalid|Accept: application/json", "{}").await;
    let broken = &answer.json()["errors"][0];
    assert_eq!(
        (answer.status, &broken["pointer"], &broken["code"]),
        (400, &"#/name".into(), &"NOT_BLANK".into())
    );
}

#[tokio::test]
async fn internal_error_shows_only_the_request_id() {
    let server = start(usual()).await;
    for path in ["/panic", "/internal"] {
        let answer = server.ask(&format!("GET {path}"), "").await;
        let id = answer.field("x-request-id").expect("an id");
        answer.is(500, id);
        assert!(!answer.text().contains("purpose") && !answer.text().contains("secret"), "{answer:?}");
    }
    server.ask("GET /hello", "").await.is(200, "Hello");
}

#[tokio::test]
async fn keep_alive_works_and_head_has_no_body() {
    let server = start(usual()).await;
    let mut line = server.connect().await;
    for _ in 0..3 {
        line.send(request("GET /hello", "")).await;
        line.answer().await.is(200, "Hello");
    }
    line.send(request("HEAD /hello", "")).await;
    let head = line.head().await;
    assert_eq!((head.status, head.field("content-length")), (200, Some("5")));
    line.send(request("HEAD /nowhere", "")).await;
    assert_eq!(line.head().await.status, 404);
    line.send(request("POST /deaf", "not read by the handler")).await;
    line.answer().await.is(200, "did not listen");
}

#[tokio::test]
async fn gzip_is_used_when_accepted_and_useful() {
    let server = start(usual()).await;
    let packed = server.ask("GET /big|Accept-Encoding: gzip", "").await;
    assert_eq!(packed.field("content-encoding"), Some("gzip"));
    assert_eq!((packed.field("vary"), packed.field("etag")), (Some("accept-encoding"), Some("\"1.gzip\"")));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).expect("gzip");
    assert_eq!(text, "x".repeat(10_000));

    let plain = server.ask("GET /big", "").await;
    assert_eq!(plain.field("etag"), Some("\"1\""));
    assert_eq!((plain.field("content-encoding"), plain.field("vary")), (None, Some("accept-encoding")));
    for path in ["/hello", "/ndjson", "/metrics"] {
        let answer = server.ask(&format!("GET {path}|Accept-Encoding: gzip"), "").await;
        assert_eq!(answer.field("content-encoding").is_some(), path == "/metrics", "{path}");
    }
    let own = server.ask("GET /packed|Accept-Encoding: gzip", "").await;
    assert_eq!((own.field("content-encoding"), own.body.len()), (Some("br"), 10_000));
}

#[tokio::test]
async fn encoded_request_body_is_415() {
    let server = start(usual()).await;
    server.ask("POST /echo|Content-Encoding: gzip", "x").await.is(415, "Content-Encoding");
    server.ask("POST /echo|Content-Encoding: identity", "x").await.is(200, "x");
}

#[tokio::test]
async fn metrics_count_requests_by_route() {
    let server = start(usual()).await;
    for path in ["/users/1", "/users/2", "/nowhere/1"] {
        server.ask(&format!("GET {path}"), "").await;
    }
    let answer = server.ask("GET /metrics", "").await;
    assert!(
        answer.field("content-type").is_some_and(|media| media.starts_with("application/openmetrics-text"))
    );
    for words in [
        r#"duration_seconds_count{method="GET",route="/users/{id}",status="200"} 2"#,
        r#"duration_seconds_count{method="GET",route="unmatched",status="404"} 1"#,
        "http_server_active_requests 1",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
    ] {
        answer.is(200, words);
    }
    assert!(!answer.text().contains("/users/1"), "raw paths are no labels");
}
