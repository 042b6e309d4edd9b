//! The smallest program with resolvers of its own: the sample with a motto, and a field that greets by id.

use trefoil::App;
use trefoil::SourceFile;
use trefoil::{ResolverResult, StartError, Trefoil, Value};

const MORE: &str = r#"
extend type Query {
  motto: String!
  newest: User
}

extend type User {
  initials: String!
}
"#;

#[tokio::main]
async fn main() -> Result<(), StartError> {
    let mut app = App::sample();
    app.schema.push(SourceFile { name: "graphql/more.graphqls".into(), text: MORE.into() });
    Trefoil::app(app)
        .resolver("Query.motto", |_call| async {
            Ok(ResolverResult::Value("Three faces, one middle".into()))
        })
        .resolver("Query.newest", |call| async move {
            let users = call.engine.list("User", Default::default()).await?;
            let newest = users.iter().filter_map(|user| user.get("id")?.as_i64()).max();
            Ok(match newest {
                Some(id) => ResolverResult::Record { type_name: "User".into(), id: id.into() },
                None => ResolverResult::Value(Value::Null),
            })
        })
        .resolver("User.initials", |call| async move {
            let name = call.parent.get("name").and_then(Value::as_str).unwrap_or_default();
            let initials: String = name.split_whitespace().filter_map(|word| word.chars().next()).collect();
            Ok(ResolverResult::Value(initials.into()))
        })
        .serve()
        .await
}
