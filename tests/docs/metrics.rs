//! Checks that docs/operating.md lists every metric of the server.

use std::fs;

use crate::support::{Client, Server};

#[test]
fn every_metric_is_documented() {
    let server = Server::sample();
    // Followed and left: a subscription has metrics of its own.
    let headers = [("accept", "text/event-stream")];
    let stream =
        Client::of(&server).send_until("GET", "/users", &headers, b"", |reply| !reply.body.is_empty());
    assert_eq!(stream.status, 200);
    let text = Client::of(&server).send("GET", "/metrics", &[], b"").text();
    let page = fs::read_to_string("docs/operating.md").expect("the page");
    let mut found = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').expect("a name and a type");
        let shown = match kind {
            "counter" => format!("`{name}_total`"),
            "info" => format!("`{name}_info`"),
            _ => format!("`{name}`"),
        };
        assert!(page.contains(&shown), "docs/operating.md lacks {shown}");
        found += 1;
    }
    assert!(found >= 10, "only {found} metrics in\n{text}");
}
