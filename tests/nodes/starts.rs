//! Nodes that start at the same moment on an empty database: one creates the tables, all of them serve.

use std::time::Duration;

use super::node::Node;
use crate::support::postgres::{database, sql};

#[test]
fn two_nodes_start_at_once() {
    start_at_once(2);
}

#[test]
fn five_nodes_start_at_once() {
    start_at_once(5);
}

fn start_at_once(count: usize) {
    let (folder, url) = (tempfile::tempdir().unwrap(), database());
    let nodes: Vec<Node> = (0..count).map(|_| Node::new(folder.path(), &["--database", &url])).collect();
    nodes.iter().for_each(Node::launch);
    nodes.iter().for_each(|node| node.wait_until_ready(Duration::from_secs(60)));
    for table in ["users", "products", "orders", "customers", "articles"] {
        let seeded = sql(&url, &format!("SELECT count(*) || ' ' || max(id) FROM {table}"));
        let (rows, last) = seeded.split_once(' ').unwrap();
        assert_eq!(rows, last, "the seed of {table} was loaded once: ids from 1 up");
        assert_eq!(rows, seeds(table).to_string(), "all of the seed of {table}");
    }
    // They agree on what comes next.
    for (number, node) in nodes.iter().enumerate() {
        let name = format!("of node {number}");
        let create = format!(r#"mutation {{ createUser(name: "{name}", email: "") {{ id }} }}"#);
        let answer = node.client().graphql(&create);
        let id = answer["data"]["createUser"]["id"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let read = format!("{{ getUserById(id: {id}) {{ name }} }}");
        for other in &nodes {
            assert_eq!(other.client().graphql(&read)["data"]["getUserById"]["name"], name);
        }
    }
}

/// How many records the sample begins with.
fn seeds(table: &str) -> usize {
    let file = format!("{}/app/seed/{table}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    serde_json::from_str::<serde_json::Value>(&text).unwrap().as_array().unwrap().len()
}
