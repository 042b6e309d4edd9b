//! Runs one hot path so many times and nothing else, for `bench/instructions` to count.

use std::borrow::Cow;

use trefoil::{Trefoil, Value};
use trefoil_config::Config;
use trefoil_graphql::{GraphqlReply, GraphqlRequest, GraphqlState, RequestContext};

const USERS: i64 = 1_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which path: point, list or create")?;
    let times: i64 = arguments.next().ok_or("how often")?.parse()?;
    let folder = tempfile::tempdir()?;
    let config = Config { port: 0, data: folder.path().join("data"), ..Config::default() };
    let running = Trefoil::sample().config(config.clone()).start().await?;
    for number in 0..USERS {
        let name = format!("User {number}");
        let fields = [("name", Value::from(name)), ("email", Value::from("user@example.org"))];
        running.engine.create("User", Value::object(fields)).await?;
    }
    let served = GraphqlState::new(running.engine.clone(), &config);
    for number in 0..times {
        let answer = served.execute_request(request(&path, number)?, RequestContext::default()).await;
        let GraphqlReply::Executed(executed) = answer else { return Err("not executed".into()) };
        if executed.body.is_empty() {
            return Err("no answer".into());
        }
    }
    running.stop().await;
    Ok(())
}

fn request(path: &str, number: i64) -> Result<GraphqlRequest<'static>, String> {
    let (query, variables) = match path {
        "point" => (
            "query ($id: ID!) { getUserById(id: $id) { id name } }",
            vec![("id".to_owned(), Value::from((1 + number % USERS).to_string()))],
        ),
        "list" => ("{ getAllUsers { id name email } }", Vec::new()),
        "create" => (
            "mutation ($name: String!) { createUser(name: $name, email: \"a@example.org\") { id } }",
            vec![("name".to_owned(), Value::from(format!("New user {number}")))],
        ),
        other => return Err(format!("no path `{other}`")),
    };
    Ok(GraphqlRequest { query: Cow::Borrowed(query), operation_name: None, variables })
}
