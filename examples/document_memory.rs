//! Measures what kept documents cost: resident memory per byte of text, for the sizes that the document cache assumes.
//!
//! `document_memory KIND COUNT [PLANS [BYTES]]`: so many documents of a kind, in so many plans each (kind `flags`), in a
//! cache of so many bytes.

use std::borrow::Cow;

use trefoil::{Trefoil, Value};
use trefoil_config::{Config, DatabaseLocation, ServerLimits};
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlState, RequestContext};

/// Kilobytes that this process holds in memory.
fn resident() -> Result<usize, Box<dyn std::error::Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    Ok(statm.split(' ').nth(1).ok_or("no resident size")?.parse::<usize>()? * 4)
}

/// A kind of document, and one with a number in it so that no two are the same.
type Kind = (&'static str, fn(usize) -> String);

const KINDS: [Kind; 9] = [
    ("point", |n| format!("query Q{n}($id: ID!) {{ getUserById(id: $id) {{ id name email }} }}")),
    ("shop", |n| {
        format!(
            "query Shop{n}($page: Int = 1) {{ products(page: $page, size: 20) {{ id name category price description }} \
             orders(status: NEW) {{ id item quantity user {{ id name orders {{ id status placedAt }} }} }} customers {{ id name }} }}"
        )
    }),
    ("mutation", |n| {
        format!(
            "mutation {{ createProduct(name: \"Product {n}\", category: \"c\", price: \"1.50\") {{ id name price }} }}"
        )
    }),
    ("short fields", |n| format!("{{ getAllUsers {{ a{n}:id {}}} }}", "id ".repeat(200))),
    ("aliases", |n| {
        let fields: String = (0..30).map(|i| format!("a{i}:getUserById(id:{n}){{id}} ")).collect();
        format!("{{ {fields}}}")
    }),
    ("fragments", |n| {
        let spread: String = (0..50).map(|_| "...on User{id} ".to_owned()).collect();
        format!("{{ getAllUsers {{ f{n}:name {spread}}} }}")
    }),
    ("flags", |n| {
        let fields: String = (0..20).map(|i| format!("a{i}:name ")).collect();
        format!(
            "query Q{n}($a:Boolean!,$b:Boolean!,$c:Boolean!,$d:Boolean!){{getAllUsers{{{fields} id@skip(if:$a) x:id@skip(if:$b) y:id@skip(if:$c) z:id@skip(if:$d)}}}}"
        )
    }),
    ("operations", |n| (0..40).map(|i| format!("query Q{i}_{n}{{getAllUsers{{id}}}}")).collect()),
    ("comment", |n| format!("{{ __typename }} # {n} {}", "x".repeat(2_000))),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let wanted = std::env::args().nth(1).ok_or("which kind, and how many")?;
    let count: usize = std::env::args().nth(2).ok_or("how many")?.parse()?;
    let plans: usize = std::env::args().nth(3).map_or(Ok(1), |text| text.parse())?;
    let (_, make) = KINDS.iter().find(|(name, _)| *name == wanted).ok_or("no such kind")?;
    let kept: usize = std::env::args().nth(4).map_or(Ok(8 << 30), |text| text.parse())?;
    let limits = ServerLimits { document_cache: kept, ..ServerLimits::default() };
    let config = Config { port: 0, database: DatabaseLocation::Memory, limits, ..Config::default() };
    let running = Trefoil::sample().config(config.clone()).start().await?;
    let served = GraphqlState::new(running.engine.clone(), &config);
    let (mut before, mut text) = (0, 0);
    for number in 0..count + 100 {
        // What the first ones allocate is not theirs alone.
        if number == 100 {
            before = resident()?;
        }
        let query = make(number);
        text += if number < 100 { 0 } else { query.len() };
        // The document of flags is planned once for each combination of them.
        for flags in 0..if wanted == "flags" { plans } else { 1 } {
            let variables = ["a", "b", "c", "d"].iter().enumerate();
            let variables =
                variables.map(|(bit, name)| ((*name).to_owned(), Value::from(flags >> bit & 1 == 1)));
            let variables = variables.chain([("id".to_owned(), Value::from("1"))]).collect();
            let operation = (wanted == "operations").then(|| Cow::Owned(format!("Q0_{number}")));
            let asked = GraphqlRequest { query: Cow::Borrowed(&query), operation_name: operation, variables };
            if matches!(
                served.execute_request(asked, RequestContext::default()).await,
                GraphqlReply::Rejected(_)
            ) {
                return Err("rejected".into());
            }
        }
    }
    let grown = (resident()? - before) * 1024;
    eprintln!(
        "{wanted}: {count} documents of {} bytes took {} bytes each, {} a byte",
        text / count,
        grown / count,
        grown / text
    );
    running.stop().await;
    Ok(())
}
