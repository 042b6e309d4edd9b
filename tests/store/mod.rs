//! Both stores against real databases: what they store, what they refuse, and what it costs.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]

mod cancelling;
mod cursors;
mod failing;
mod indexes;
mod keys;
mod kinds;
mod listing;
mod lists;
mod many;
mod memory;
mod pages;
mod plans;
mod postgres;
mod row_layout;
mod trees;
mod writing;

use std::collections::HashMap;
use std::sync::Arc;

use tempfile::TempDir;
use trefoil_engine::arguments::sort_keys::parse_sort_key;
use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{
    Authority, CancelFlag, ChildSelection, Condition, CountMode, IdempotencyKey, JobResult, Listing,
    MissingFields, Operation, Outcome, Plan, PlanLimits, PreparedSelection, Row, RowSink, Selection, SortKey,
    Store, StoreJob,
};
use trefoil_model::error::{Error, Result};
use trefoil_model::{
    FieldId, FilterOperator, Model, RecordId, RecordType, RecordTypeId, SourceFile, StoredValue, Value,
    parse_schema,
};
use trefoil_sql::migrate::MigrationMode;
use trefoil_sql::{PostgresStore, SqlStore, SqliteOptions, SqliteStore};

use crate::store::row_layout::shown;
use crate::support::Outsider;

/// Makes of each `async fn name(bench: Bench)` a test on SQLite and one on PostgreSQL.
macro_rules! both {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            use super::Bench;

            #[tokio::test]
            async fn sqlite() {
                super::$name(Bench::new()).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::$name(Bench::postgres().await).await;
            }
        })+
    };
}
use both;

const SCHEMA: &str = r#"
scalar Decimal
scalar Long
type Query { users: [User] }
type User @index(fields: ["name"]) {
  id: ID!
  name: String!
  email: String @unique
  nick: String @unique
  age: Int
  score: Float
  balance: Decimal @unique
  price: Decimal! @default(value: "0")
  big: Long
  manager: User @reference(inverse: "reports")
  reports: [User]
  orders: [Order]
}
type Order { id: ID!  user: User @reference(onDelete: CASCADE)  item: String! @default(value: "thing")  parts: [OrderPart] }
type OrderPart { id: ID!  order: Order!  label: String! }
type Student { id: ID!  name: String!  courses: [Course] }
type Course { id: ID!  title: String!  students: [Student] }
scalar Date
scalar DateTime
scalar UUID
scalar URL
scalar Email
scalar JSON
enum Color { GREEN RED }
type Town { city: String!  zip: Int }
type Thing {
  id: ID!  flag: Boolean  day: Date  at: DateTime  uuid: UUID  url: URL  email: Email  json: JSON
  color: Color  tags: [String!]  place: Town  rank: Int  label: ID
}
type Only {
  id: ID!  count: Long @unique  ratio: Float @unique  amount: Decimal @unique  day: Date @unique
  at: DateTime @unique  uuid: UUID @unique  color: Color @unique
}
"#;

/// A store of its own.
struct Bench {
    store: Arc<SqlStore>,
    model: Arc<Model>,
    place: Place,
}

enum Place {
    Folder(TempDir),
    /// The address of a database on the server that all tests share.
    Server(String),
}

/// Waits on a thread of its own, so that it can be called within a runtime and without.
fn waited<T: Send>(future: impl Future<Output = T> + Send) -> T {
    let wait = || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future);
    std::thread::scope(|scope| scope.spawn(wait).join().unwrap())
}

fn options() -> SqliteOptions {
    SqliteOptions { busy_timeout: std::time::Duration::from_millis(300), ..SqliteOptions::default() }
}

fn lists() -> [String; 2] {
    ["items".into(), "samples".into()]
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Some(&folder.path().join("trefoil.db")), options()).unwrap();
        Bench::with(store, folder)
    }

    fn in_memory() -> Bench {
        Bench::with(SqliteStore::open(None, options()).unwrap(), tempfile::tempdir().unwrap())
    }

    fn with(store: SqliteStore, folder: TempDir) -> Bench {
        let model = model();
        waited(store.migrate(&model, &[], &lists(), MigrationMode::Start)).unwrap();
        Bench { store: Arc::new(SqlStore::Sqlite(Box::new(store))), model, place: Place::Folder(folder) }
    }

    async fn postgres() -> Bench {
        let url = crate::support::postgres::database();
        let name = url.rsplit('/').next().unwrap().split('?').next().unwrap();
        crate::support::postgres::sql(&url, &format!("ALTER DATABASE \"{name}\" SET lock_timeout = '300ms'"));
        let options = trefoil_sql::postgres::PostgresOptions::for_url(
            trefoil_config::PostgresUrl::parse(&url).unwrap(),
        );
        let store = PostgresStore::open(options).await.unwrap();
        let model = model();
        store.migrate(&model, &[], &lists(), MigrationMode::Start).await.unwrap();
        Bench { store: Arc::new(SqlStore::Postgres(Box::new(store))), model, place: Place::Server(url) }
    }

    /// Runs something on SQLite's only connection that writes.
    fn on_writer<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut rusqlite::Connection) -> T + Send + 'static,
    ) -> Result<T> {
        waited(self.sqlite().run_on_writer(call))
    }

    fn sqlite(&self) -> &SqliteStore {
        match &*self.store {
            SqlStore::Sqlite(store) => store,
            SqlStore::Postgres(_) => panic!("this is about SQLite alone"),
        }
    }

    fn is_sqlite(&self) -> bool {
        matches!(&*self.store, SqlStore::Sqlite(_))
    }

    fn statements(&self) -> u64 {
        match &*self.store {
            SqlStore::Sqlite(store) => store.statement_count(),
            SqlStore::Postgres(store) => store.statement_count(),
        }
    }

    /// A connection as another program has it.
    async fn outsider(&self) -> Outsider {
        match &self.place {
            Place::Folder(folder) => Outsider::file(&folder.path().join("trefoil.db")),
            Place::Server(url) => Outsider::server(url).await,
        }
    }

    /// Lets another program run statements; gives what the last of them found.
    async fn outside(&self, statements: &str) -> String {
        self.outsider().await.run(statements).await.unwrap()
    }

    /// SQL for a text of so many characters that differs from row to row; a multiple of 32.
    fn noise(&self, length: usize) -> String {
        match self.place {
            Place::Folder(_) => format!("hex(randomblob({}))", length / 2),
            Place::Server(_) => format!("repeat(md5(CAST(random() AS text)), {})", length / 32),
        }
    }

    fn record(&self, name: &str) -> (RecordTypeId, &RecordType) {
        let id = self.model.find_record(name).unwrap();
        (id, self.model.record(id))
    }

    fn field(&self, record: &str, field: &str) -> FieldId {
        self.record(record).1.find_field(field).unwrap()
    }

    fn fields(&self, record: &str, fields: &[(&str, Value)]) -> Vec<(FieldId, Value)> {
        fields.iter().map(|(name, value)| (self.field(record, name), value.clone())).collect()
    }

    /// `"id name orders(id parts(label))"`
    fn select(&self, record: &str, text: &str) -> Arc<PreparedSelection> {
        let mut words = text.replace('(', " ( ").replace(')', " ) ");
        words.push_str(" )");
        PreparedSelection::new(
            self.selection(self.record(record).0, &mut words.split_whitespace().peekable()),
        )
    }

    fn selection<'t>(
        &self,
        record: RecordTypeId,
        words: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>,
    ) -> Selection {
        let (mut columns, mut children) = (Vec::new(), Vec::new());
        let owner = self.model.record(record);
        while let Some(word) = words.next().filter(|word| *word != ")") {
            let field = owner.find_field(word).unwrap();
            if words.next_if_eq(&"(").is_some() {
                let target = trefoil_engine::plan::relation_target(owner.field(field)).unwrap();
                let selection = self.selection(target, words);
                children.push(ChildSelection::new(field, Listing::default(), selection));
            } else {
                columns.push(field);
            }
        }
        Selection::new(columns, children)
    }

    fn get(&self, record: &str, id: i64, select: &str) -> Operation {
        Operation::Get {
            record: self.record(record).0,
            id: id.into(),
            selection: self.select(record, select),
        }
    }

    fn list(&self, record: &str, listing: Listing, select: &str) -> Operation {
        Operation::List { record: self.record(record).0, listing, selection: self.select(record, select) }
    }

    fn create(&self, record: &str, fields: &[(&str, Value)], select: &str) -> Operation {
        let (record_id, fields) = (self.record(record).0, self.fields(record, fields));
        let (filled_fields, selection) = (Vec::new(), self.select(record, select));
        Operation::Create { record: record_id, id: None, fields, filled_fields, selection }
    }

    fn update(&self, record: &str, id: i64, fields: &[(&str, Value)], version: Option<i64>) -> Operation {
        Operation::Update {
            record: self.record(record).0,
            id: id.into(),
            fields: self.fields(record, fields),
            filled_fields: Vec::new(),
            missing_fields: MissingFields::Keep,
            expected_version: version,
            selection: self.select(record, "id"),
        }
    }

    fn delete(&self, record: &str, id: i64, select: &str) -> Operation {
        let selection = self.select(record, select);
        Operation::Delete { record: self.record(record).0, id: id.into(), expected_version: None, selection }
    }

    fn order(&self, record: &str, words: &[&str]) -> Vec<SortKey> {
        let record = self.record(record).1;
        let order = |word: &&str| parse_sort_key(&self.model, record, "sort", word).unwrap();
        words.iter().map(order).collect()
    }

    fn cursor(&self, record: &str, order: &[SortKey], row: &dyn Row, first: usize) -> String {
        let format = CursorFormat::of(&self.model, self.record(record).1, order);
        format.encode(format.read(row, first))
    }

    fn condition(&self, record: &str, field: &str, operator: &str, value: Value) -> Condition {
        let operator = FilterOperator::from_name(operator).expect("the name of an operator");
        Condition::compare(self.field(record, field), operator, value)
    }

    fn job(&self, operations: Vec<Operation>) -> StoreJob {
        let mut answer = TestSink::default();
        let mut plans = Vec::new();
        for (number, operation) in operations.into_iter().enumerate() {
            let (selection, extra) = shown(&operation);
            answer.shapes.insert(number, (selection, extra));
            plans.push((
                number,
                Plan::prove(
                    &self.model,
                    &PlanLimits::default(),
                    &Authority::operator(),
                    operation,
                    &jiff::Timestamp::UNIX_EPOCH.into(),
                )
                .unwrap(),
            ));
        }
        let (key, cancel) = (None, CancelFlag::default());
        StoreJob {
            model: self.model.clone(),
            plans,
            sink: Box::new(answer),
            idempotency_key: key,
            atomic: false,
            asks_again: false,
            cancel_flag: cancel,
            origin: None,
        }
    }

    async fn run(&self, job: StoreJob) -> Result<TestSink> {
        match self.store.run(job).await? {
            JobResult::Completed(answer) => Ok(into_test_sink(answer)),
            JobResult::Replayed(bytes) => panic!("replayed {bytes:?}"),
        }
    }

    async fn all(&self, operations: Vec<Operation>) -> TestSink {
        self.run(self.job(operations)).await.unwrap()
    }

    async fn one(&self, operation: Operation) -> Result<(Outcome, Vec<ReadRow>)> {
        let mut told = self.all(vec![operation]).await;
        let rows = told.rows.remove(&0).unwrap_or_default();
        told.outcomes.remove(&0).unwrap().map(|outcome| (outcome, rows))
    }

    async fn rows(&self, operation: Operation) -> Vec<ReadRow> {
        self.one(operation).await.unwrap().1
    }

    /// How many statements it takes.
    async fn cost(&self, operation: Operation) -> u64 {
        let before = self.statements();
        self.one(operation).await.unwrap();
        self.statements() - before
    }

    /// The id of a new record.
    async fn make(&self, record: &str, fields: &[(&str, Value)]) -> i64 {
        let outcome = self.one(self.create(record, fields, "id")).await.unwrap().0;
        let Outcome::Created { id, version: 1 } = outcome else { panic!("{outcome:?}") };
        number(&id)
    }

    async fn user(&self, name: &str) -> i64 {
        self.make("User", &[("name", text(name))]).await
    }

    async fn count(&self, record: &str) -> u64 {
        let listing = Listing { count: CountMode::Exact, ..Listing::default() };
        let outcome = self.one(self.list(record, listing, "id")).await.unwrap().0;
        let Outcome::Listed { total: Some(total), .. } = outcome else { panic!("{outcome:?}") };
        total
    }
}

fn model() -> Arc<Model> {
    let file = SourceFile { name: "graphql/test.graphqls".into(), text: SCHEMA.into() };
    let (model, _) = parse_schema(&[file], &[]).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    Arc::new(model)
}

fn text(text: &str) -> Value {
    Value::String(text.into())
}

fn int(number: i64) -> Value {
    Value::Int(number)
}

fn key(key: &str, fingerprint: u128) -> Option<IdempotencyKey> {
    Some(IdempotencyKey { key: key.into(), fingerprint })
}

/// A sink that keeps everything it receives.
#[derive(Default)]
struct TestSink {
    shapes: HashMap<usize, (Arc<PreparedSelection>, usize)>,
    rows: HashMap<usize, Vec<ReadRow>>,
    outcomes: HashMap<usize, Result<Outcome>>,
    /// What `keep` gives.
    kept: Option<Vec<u8>>,
}

/// A row: its cells, and for each child its rows.
#[derive(Debug, Clone, PartialEq)]
struct ReadRow {
    cells: Vec<StoredValue>,
    children: Vec<Vec<ReadRow>>,
}

impl ReadRow {
    fn copy(row: &dyn Row, selection: &Selection, extra: usize) -> ReadRow {
        let cells = (0..selection.columns.len() + extra).map(|i| row.cell(i).to_stored()).collect();
        let children = selection.children.iter().enumerate().map(|(i, child)| {
            let mut rows = Vec::new();
            let extra = child.aggregate.as_ref().map_or(0, trefoil_engine::AggregateQuery::cell_count);
            row.each_child(i, &mut |row| rows.push(ReadRow::copy(row, &child.selection, extra)));
            rows
        });
        ReadRow { cells, children: children.collect() }
    }
}

/// `1 Ada [2 [] | 3 [7]]`: cells, then children.
impl std::fmt::Display for ReadRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cells = self.cells.iter().map(|cell| match cell {
            StoredValue::Null => "null".into(),
            StoredValue::Int(number) => number.to_string(),
            StoredValue::Real(number) => format!("{number:?}"),
            StoredValue::Text(text) => text.clone(),
        });
        let children = self.children.iter().map(|rows| format!("[{}]", show(rows)));
        f.write_str(&cells.chain(children).collect::<Vec<_>>().join(" "))
    }
}

fn show(rows: &[ReadRow]) -> String {
    rows.iter().map(ReadRow::to_string).collect::<Vec<_>>().join(" | ")
}

impl RowSink for TestSink {
    fn row(&mut self, plan: usize, row: &dyn Row) {
        assert!(!self.outcomes.contains_key(&plan), "a row after the end of plan {plan}");
        let (selection, extra) = &self.shapes[&plan];
        self.rows.entry(plan).or_default().push(ReadRow::copy(row, selection, *extra));
    }

    fn finish_plan(&mut self, plan: usize, outcome: Result<Outcome>) {
        assert!(self.outcomes.insert(plan, outcome).is_none(), "plan {plan} ended twice");
    }

    fn bytes_to_replay(&mut self) -> Option<Vec<u8>> {
        self.kept.clone()
    }

    fn reset(&mut self) {
        self.rows.clear();
        self.outcomes.clear();
    }
}

fn into_test_sink(answer: Box<dyn RowSink>) -> TestSink {
    let any: Box<dyn std::any::Any> = answer;
    *any.downcast().unwrap()
}

/// `email UNIQUE: Email is already taken`, one for each violation.
fn complaints(error: &Error) -> Vec<String> {
    let path = |violation: &trefoil_model::error::Violation| {
        violation
            .path
            .iter()
            .map(|segment| match segment {
                trefoil_model::error::PathSegment::Field(name) => name.clone(),
                trefoil_model::error::PathSegment::Index(index) => index.to_string(),
            })
            .collect::<Vec<_>>()
            .join(".")
    };
    let line = |violation| format!("{} {}: {}", path(violation), violation.code, violation.message);
    error.violations().iter().map(line).collect()
}

/// An id that was counted.
fn number(id: &RecordId) -> i64 {
    id.as_cell().to_i64().expect("a number")
}
