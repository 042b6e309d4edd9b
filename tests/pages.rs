//! List pages assembled from cached parts are the same as pages rendered at once.

use rusqlite::Connection;

use crate::support::{Client, Process};

const LISTS: [&str; 9] = [
    "/products",
    "/products?sort=-name&size=3",
    "/products?size=2&page=2",
    "/products?name.contains=e&category=",
    "/products?q=nothing+has+this",
    "/users",
    "/orders",
    "/orders?status=NEW&sort=item",
    "/users/1/orders",
];

/// Pages name the address that they were reached by.
const HOSTS: [&str; 2] = ["one.example", "two.example:8080"];

fn page(client: &mut Client, path: &str, cookie: &str) -> String {
    page_at(client, HOSTS[0], path, cookie)
}

fn page_at(client: &mut Client, host: &str, path: &str, cookie: &str) -> String {
    let headers = [("host", host), ("accept", "text/html"), ("cookie", cookie)];
    let reply = client.send("GET", path, &headers, b"");
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.text()
}

/// A cookie that tells nothing keeps a page from being put together.
fn compare(client: &mut Client, after: &str) {
    let first = page(client, "/users/1/orders?size=1", "flash=nothing");
    let next = next(&first);
    for path in LISTS.into_iter().chain([next.as_str()]) {
        let wholes = HOSTS.map(|host| page_at(client, host, path, "flash=nothing"));
        assert!(wholes[0].contains(HOSTS[0]) && wholes[1].contains(HOSTS[1]), "{path}");
        for _ in 0..2 {
            for (host, whole) in HOSTS.into_iter().zip(&wholes) {
                assert_eq!(page_at(client, host, path, "other=1"), *whole, "{path} at {host} after {after}");
            }
        }
    }
}

/// Where a page leads on to by a cursor.
fn next(page: &str) -> String {
    let mut links = page.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let found = links.find(|(link, _)| link.contains("after=")).expect("a next page");
    found.0.replace("&amp;", "&")
}

fn send(client: &mut Client, method: &str, path: &str, media: &str, body: &str) {
    let headers = [("content-type", media), ("accept", "application/json")];
    let reply = client.send(method, path, &headers, body.as_bytes());
    assert!(reply.status < 400, "{method} {path}: {} {}", reply.status, reply.text());
}

#[test]
fn list_page_is_never_stale_after_a_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Process::start(folder.path(), &["--allowed-hosts", "one.example,two.example"]);
    let mut client = server.client();
    let file = folder.path().join("trefoil-data/trefoil.db");
    let outside = Connection::open(file).expect("another program");
    outside.busy_timeout(std::time::Duration::from_secs(30)).expect("patience");
    compare(&mut client, "the start");
    for round in 0..10 {
        let name = format!("Name {round}");
        let seen = |client: &mut Client, path: &str, after: &str| {
            let text = page(client, path, "other=1");
            assert!(text.contains(&name), "{path} after {after}: {text}");
            compare(client, after);
        };
        match round {
            0 => {
                let update = format!("mutation {{ updateProduct(id: 1, name: \"{name}\") {{ id }} }}");
                client.graphql(&update);
                seen(&mut client, "/products", "GraphQL");
            }
            1 => {
                let body = format!("{{\"name\": \"{name}\"}}");
                send(&mut client, "PATCH", "/products/2", "application/merge-patch+json", &body);
                seen(&mut client, "/products", "REST");
            }
            2 => {
                let body = format!("name={}&price=1.50", name.replace(' ', "+"));
                send(&mut client, "POST", "/products/1", "application/x-www-form-urlencoded", &body);
                seen(&mut client, "/products", "a form");
            }
            3 => {
                let update = "UPDATE products SET name = ?1 WHERE id = 2";
                outside.execute(update, [&name]).expect("written");
                seen(&mut client, "/products", "another program");
            }
            4 => {
                outside.execute("UPDATE users SET name = ?1 WHERE id = 1", [&name]).expect("written");
                seen(&mut client, "/orders", "another program changed what is referred to");
                seen(&mut client, "/users/1/orders", "another program changed what is above");
            }
            5 => {
                send(&mut client, "POST", "/users", "text/plain", &name);
                seen(&mut client, "/orders", "a new choice of a filter");
            }
            6 => {
                let insert = "INSERT INTO products (name, price) VALUES (?1, '2.50')";
                outside.execute(insert, [&name]).expect("written");
                seen(&mut client, "/products", "a new record");
            }
            7 => {
                let update = "UPDATE products SET name = ?1 WHERE id = 2";
                let html = format!("{name}</a><b title=\"&amp;'>{{{{ 7 }}}}");
                outside.execute(update, [html]).expect("written");
                seen(&mut client, "/products", "another program wrote HTML");
            }
            8 => {
                // In the frames, where it would be taken for the place of the rows, and in rows.
                let update = "UPDATE users SET name = ?1 || char(0) || 'x' WHERE id = 1";
                outside.execute(update, [&name]).expect("written");
                let update = "UPDATE orders SET item = 'x' || char(0) || ?1 WHERE \"userId\" = 1";
                outside.execute(update, [&name]).expect("written");
                seen(&mut client, "/orders", "another program wrote U+0000");
                seen(&mut client, "/users/1/orders", "another program wrote U+0000");
            }
            _ => {
                send(&mut client, "DELETE", "/products/1", "text/plain", "");
                assert!(!page(&mut client, "/products", "other=1").contains("products-1\""));
                compare(&mut client, "a deletion");
            }
        }
    }
}

#[test]
fn list_page_is_the_same_without_the_part_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [
        "--allowed-hosts",
        "one.example,two.example",
        "--limit-page-parts",
        "0",
        "--limit-answer-cache",
        "0",
    ];
    let server = Process::start(folder.path(), &arguments);
    compare(&mut server.client(), "nothing");
}
