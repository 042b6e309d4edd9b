//! The Host check: a server answers to its own names and the listed ones, and to no others.

use super::{Server, start, usual};
use trefoil_config::{Config, IpNetwork};

async fn ask_as(server: &Server, head: &str, host: &str) -> super::Answer {
    let mut line = server.connect().await;
    let (start, fields) = head.split_once('|').unwrap_or((head, ""));
    let fields: String =
        fields.split('|').filter(|field| !field.is_empty()).map(|field| format!("{field}\r\n")).collect();
    line.send(format!("{start} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")).await;
    line.answer().await
}

fn listing(names: &[&str]) -> Config {
    Config { allowed_hosts: names.iter().map(|&name| name.to_owned()).collect(), ..usual() }
}

#[tokio::test]
async fn unknown_host_is_421_on_every_path() {
    let server = start(listing(&["shop.example"])).await;
    let asked = [
        "GET /hello",
        "POST /echo",
        "GET /nowhere",
        "GET /metrics",
        "OPTIONS /echo",
        "OPTIONS /echo|Origin: https://app.example|Access-Control-Request-Method: POST",
        "GET /tunnel|Connection: upgrade|Upgrade: websocket",
    ];
    for head in asked {
        for host in ["evil.example", "localhost.evil.example:80", "192.168.1.5"] {
            assert_eq!(ask_as(&server, head, host).await.status, 421, "{head} at {host}");
        }
        for host in ["shop.example", "localhost:1", "127.0.0.1", "[::1]:80", "x.localhost"] {
            assert_ne!(ask_as(&server, head, host).await.status, 421, "{head} at {host}");
        }
    }
    ask_as(&server, "GET /hello", "Shop.Example.:8080").await.is(200, "Hello");
    ask_as(&server, "GET /health/ready", "10.1.2.3:8080").await.is(200, "ok");
}

#[tokio::test]
async fn host_error_names_the_setting_in_every_format() {
    let server = start(listing(&[])).await;
    let plain = ask_as(&server, "GET /hello|Accept: text/plain", "evil.example:80").await;
    plain.is(421, "allowed-hosts");
    plain.is(421, "evil.example:80");
    let json = ask_as(&server, "GET /hello|Accept: application/json", "evil.example").await;
    assert_eq!((json.status, &json.json()["code"]), (421, &"HOST_NOT_ALLOWED".into()));
    assert!(
        json.json()["detail"].as_str().is_some_and(|detail| detail.contains("allowed-hosts")),
        "{json:?}"
    );
    let graphql = ask_as(&server, "POST /graphql|Content-Length: 0", "evil.example").await;
    let error = &graphql.json()["errors"][0];
    assert_eq!((graphql.status, &error["extensions"]["code"]), (421, &"HOST_NOT_ALLOWED".into()));
    assert!(error["message"].as_str().is_some_and(|message| message.contains("allowed-hosts")), "{error}");
    ask_as(&server, "GET /hello|Accept: text/html", "evil.example").await.is(421, "<h1>421");
    let long = ask_as(&server, "GET /hello", &"x".repeat(9000)).await;
    assert!(long.status == 421 && long.body.len() < 1000, "{}", long.body.len());
}

#[tokio::test]
async fn absolute_url_host_counts_and_http_1_0_needs_none() {
    let server = start(listing(&[])).await;
    for (head, status) in [
        ("GET /hello HTTP/1.0\r\n\r\n", 200),
        ("GET /hello HTTP/1.0\r\nHost: localhost\r\n\r\n", 200),
        ("GET /hello HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421),
        ("GET http://localhost/hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        ("GET http://evil.example/hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421),
        ("GET http://evil.example/hello HTTP/1.0\r\n\r\n", 421),
        ("GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    ] {
        let mut line = server.connect().await;
        line.send(head).await;
        assert_eq!(line.answer().await.status, status, "{head}");
    }
}

#[tokio::test]
async fn forwarded_host_does_not_pass_the_host_check() {
    let here = IpNetwork { address: [127, 0, 0, 1].into(), prefix: 32 };
    let server = start(Config { trusted_proxies: vec![here], ..listing(&[]) }).await;
    let forwarded = "GET /hello|X-Forwarded-For: 1.1.1.1|X-Forwarded-Host: localhost";
    assert_eq!(ask_as(&server, forwarded, "evil.example").await.status, 421);
    // The host that the client named to the proxy goes into links alone.
    let forwarded = "GET /client|X-Forwarded-For: 1.1.1.1|X-Forwarded-Host: shop.example";
    ask_as(&server, forwarded, "localhost").await.is(200, "http://shop.example");
}

#[tokio::test]
async fn wildcard_bind_serves_any_host_unless_listed() {
    let open = |names: &[&str]| Config { host: "0.0.0.0".into(), open: true, ..listing(names) };
    let server = start(open(&[])).await;
    ask_as(&server, "GET /hello", "anything.example").await.is(200, "Hello");
    let server = start(open(&["shop.example"])).await;
    ask_as(&server, "GET /hello", "shop.example").await.is(200, "Hello");
    assert_eq!(ask_as(&server, "GET /hello", "anything.example").await.status, 421);
    // To listen on this machine alone is what counts, not what was allowed.
    let server = start(Config { open: true, ..listing(&[]) }).await;
    assert_eq!(ask_as(&server, "GET /hello", "anything.example").await.status, 421);
}
