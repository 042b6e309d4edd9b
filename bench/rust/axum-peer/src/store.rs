//! Its store: cached statements on a connection for each core, and one writer thread that commits what waits together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use rusqlite::{Connection, Result, Row, ToSql, params};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::User;

const BATCH: usize = 256;
const SETTINGS: &str = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536; \
    PRAGMA mmap_size=268435456; PRAGMA busy_timeout=5000;";

pub struct Product {
    pub id: i64,
    pub name: String,
    pub category: String,
    pub price: String,
    pub description: String,
}

#[derive(Serialize)]
pub struct StatusGroup {
    status: String,
    count: i64,
    sum: i64,
    max: i64,
}

struct Creation {
    name: String,
    email: String,
    done: oneshot::Sender<Result<User>>,
}

pub struct Store {
    readers: Vec<Mutex<Connection>>,
    next: AtomicUsize,
    writer: mpsc::Sender<Creation>,
}

impl Store {
    pub fn open(path: &str) -> Store {
        let open = || {
            let connection = Connection::open(path).expect("the database");
            connection.execute_batch(SETTINGS).expect("its settings");
            connection
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let readers = (0..cores).map(|_| Mutex::new(open())).collect();
        let (writer, waiting) = mpsc::channel();
        let connection = open();
        std::thread::spawn(move || write(&connection, &waiting));
        Store { readers, next: AtomicUsize::new(0), writer }
    }

    fn rows<T>(
        &self,
        statement: &str,
        parameter: Option<impl ToSql>,
        read: impl FnMut(&Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let reader = self.next.fetch_add(1, Ordering::Relaxed) % self.readers.len();
        let connection = self.readers[reader].lock().expect("no reader panicked");
        let mut statement = connection.prepare_cached(statement)?;
        statement.query_map(rusqlite::params_from_iter(parameter), read)?.collect()
    }

    pub fn users(&self) -> Result<Vec<User>> {
        self.rows("SELECT id, name, email FROM users ORDER BY id", None::<i64>, user)
    }

    pub fn user(&self, id: i64) -> Result<Option<User>> {
        Ok(self.rows("SELECT id, name, email FROM users WHERE id = ?", Some(id), user)?.pop())
    }

    pub fn items(&self) -> Result<Vec<String>> {
        self.rows("SELECT text FROM items ORDER BY id", None::<i64>, |row| row.get(0))
    }

    pub fn products(&self) -> Result<Vec<Product>> {
        let statement = "SELECT id, name, category, price, description FROM products ORDER BY id LIMIT 20";
        self.rows(statement, None::<i64>, |row| {
            let (id, name, category) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Product { id, name, category, price: row.get(3)?, description: row.get(4)? })
        })
    }

    pub fn users_of_item(&self, item: &str) -> Result<Vec<User>> {
        let statement = "SELECT id, name, email FROM users WHERE id IN (SELECT user_id FROM orders WHERE item = ?) \
            ORDER BY id LIMIT 20";
        self.rows(statement, Some(item), user)
    }

    pub fn orders_by_status(&self) -> Result<Vec<StatusGroup>> {
        let statement = "SELECT status, count(*), sum(quantity), max(quantity) FROM orders GROUP BY status";
        self.rows(statement, None::<i64>, |row| {
            Ok(StatusGroup { status: row.get(0)?, count: row.get(1)?, sum: row.get(2)?, max: row.get(3)? })
        })
    }

    pub async fn create_user(&self, name: String, email: String) -> async_graphql::Result<User> {
        let (done, outcome) = oneshot::channel();
        self.writer.send(Creation { name, email, done })?;
        Ok(outcome.await??)
    }
}

fn user(row: &Row) -> Result<User> {
    Ok(User { id: row.get::<_, i64>(0)?.into(), name: row.get(1)?, email: row.get(2)? })
}

fn write(connection: &Connection, waiting: &mpsc::Receiver<Creation>) {
    while let Ok(first) = waiting.recv() {
        let jobs: Vec<Creation> = std::iter::once(first).chain(waiting.try_iter()).take(BATCH).collect();
        let outcomes = together(connection, &jobs);
        for (job, outcome) in jobs.into_iter().zip(outcomes) {
            let _ = job.done.send(outcome);
        }
    }
}

fn together(connection: &Connection, jobs: &[Creation]) -> Vec<Result<User>> {
    if let Err(error) = connection.execute_batch("BEGIN IMMEDIATE") {
        panic!("no transaction: {error}");
    }
    let outcomes = jobs.iter().map(|job| insert(connection, job)).collect();
    connection.execute_batch("COMMIT").expect("what was acknowledged is on disk");
    outcomes
}

fn insert(connection: &Connection, job: &Creation) -> Result<User> {
    let mut statement = connection.prepare_cached("INSERT INTO users (name, email) VALUES (?, ?)")?;
    let id = statement.insert(params![job.name, job.email])?;
    Ok(User { id: id.into(), name: job.name.clone(), email: job.email.clone() })
}
