//! An application whose records are followed, on either store, with the credentials of its clients.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::credentials;
use crate::support::{Process, command, postgres};

const SCHEMA: &str = r#"
enum Role { AUTHOR EDITOR ADMIN }
extend schema @allow(all: "role(ADMIN)")
type User @account(login: "email", roles: "role", if: "!blocked") @allow(read: true) {
  id: ID!
  email: String! @unique @email @allow(read: "this == me || role(ADMIN)")
  role: Role @allow(write: "role(ADMIN)")
  blocked: Boolean! @default(value: false) @allow(write: "role(ADMIN)")
}
type Post @allow(read: "published || role(EDITOR)", write: "role(AUTHOR)") {
  id: ID!
  title: String!
  published: Boolean! @default(value: true)
  note: String @allow(read: "role(EDITOR)")
  remark: String @allow(read: "title == 'open' || role(EDITOR)")
}
type Page @allow(read: "role(EDITOR)") { id: ID!  text: String! }
type PostChange { kind: String!  id: ID!  post: Post  changed: [String!]! }
type Query { posts: [Post!]!  users: [User!]!  pages: [Page!]! }
type Mutation {
  createPost(title: String!, published: Boolean, note: String): Post
  updatePost(id: ID!, title: String, published: Boolean, note: String, remark: String): Post
  updateUser(id: ID!, email: String, role: Role, blocked: Boolean): User
  deleteUser(id: ID!): User
}
type Subscription { postCreated: Post!  postChanged: PostChange!  userUpdated: User! }
"#;
const USERS: &str = r#"[
  {"id": 1, "email": "ada@example.org", "role": "EDITOR"},
  {"id": 2, "email": "bob@example.org"},
  {"id": 3, "email": "eve@example.org"}
]"#;

pub struct StreamSite {
    folder: TempDir,
    store: Vec<String>,
}

impl StreamSite {
    pub fn on_sqlite() -> StreamSite {
        StreamSite::new(&["--database", "sqlite:", "--data", "data"])
    }

    pub fn on_postgres() -> StreamSite {
        StreamSite::new(&["--database", &postgres::database()])
    }

    /// One on each kind of store.
    pub fn both() -> [StreamSite; 2] {
        [StreamSite::on_sqlite(), StreamSite::on_postgres()]
    }

    fn new(store: &[&str]) -> StreamSite {
        let store = store.iter().map(|flag| (*flag).to_owned()).collect();
        let site = StreamSite { folder: tempfile::tempdir().expect("a folder"), store };
        for (name, text) in [
            ("app/graphql/schema.graphqls", SCHEMA),
            ("app/seed/users.json", USERS),
            ("app/trefoil.toml", credentials::ISSUER),
        ] {
            let path = site.folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            std::fs::write(path, text).expect("written");
        }
        site.must(&["reset", "app", "--yes"]);
        site
    }

    /// Runs a statement on the store, as another program would, and gives the rows that it returns, a line each.
    pub fn sql(&self, statement: &str) -> String {
        match self.store.as_slice() {
            [_, url] => postgres::sql(url, statement),
            _ => {
                let file = self.folder.path().join("data/trefoil.db");
                let database = rusqlite::Connection::open(file).expect("a database");
                database.busy_timeout(std::time::Duration::from_secs(10)).expect("a timeout");
                let mut statement = database.prepare(statement).expect("a statement");
                let rows = statement.query_map([], |row| row.get::<_, String>(0)).expect("it runs");
                rows.map(Result::unwrap).collect::<Vec<_>>().join("\n")
            }
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.store.len() == 2
    }

    /// What a command that succeeds prints.
    pub fn must(&self, arguments: &[&str]) -> String {
        let arguments: Vec<&str> =
            arguments.iter().copied().chain(self.store.iter().map(String::as_str)).collect();
        let ran = command(self.folder.path(), &arguments).output().expect("the binary runs");
        assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).expect("UTF-8").trim_end().to_owned()
    }

    /// `Bearer …` with a new key.
    pub fn key(&self, name: &str, flags: &[&str]) -> String {
        format!("Bearer {}", self.must(&[&["key", "add", name, "app"], flags].concat()))
    }

    pub fn revoke(&self, name: &str) {
        self.must(&["key", "revoke", name, "app"]);
    }

    pub fn serve(&self) -> Process {
        self.serve_with(&[])
    }

    pub fn serve_with(&self, flags: &[&str]) -> Process {
        let store = self.store.iter().map(String::as_str);
        let arguments = ["serve", "app"].into_iter().chain(store).chain(flags.iter().copied());
        let secret = [("TOKEN_SECRET", credentials::SECRET)];
        Process::start_with(self.folder.path(), &arguments.collect::<Vec<_>>(), &secret)
    }
}

/// `Bearer …` with a token of the account with this address.
pub fn token_of(email: &str) -> String {
    let claims = json!({"sub": email, "email": email, "email_verified": true});
    format!("Bearer {}", credentials::token(claims, credentials::SECRET))
}

/// The answer to a document, without a connection that is kept.
pub fn ask(server: &Process, credential: &str, query: &str) -> Value {
    let body = json!({ "query": query }).to_string();
    let headers = [
        ("Authorization", credential),
        ("Content-Type", "application/json"),
        ("Accept", "application/graphql-response+json"),
    ];
    server.client().send("POST", "/graphql", &headers, body.as_bytes()).json()
}

/// The same for one that must succeed.
pub fn done(server: &Process, credential: &str, query: &str) -> Value {
    let answer = ask(server, credential, query);
    assert!(answer.get("errors").is_none(), "{query}: {answer}");
    answer["data"].clone()
}
