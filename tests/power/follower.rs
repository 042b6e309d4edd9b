//! Subscribers under power cuts: which events each got, when on the disk's clock, and whether the log agrees.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use super::rig::Rig;

const QUERY: &str = "/graphql?query=subscription%7BuserCreated%7Bid%20name%7D%7D";

/// How many follow at once; each second one goes away and comes back all the time.
const FOLLOWERS: usize = 4;

/// One subscriber over all lives of the server.
#[derive(Clone, Default)]
pub struct Followed {
    /// The place where it began, and the moment by which it knew.
    start: Option<(String, u64)>,
    seen: Vec<Seen>,
}

#[derive(Debug, Clone)]
struct Seen {
    id: String,
    name: String,
    moment: u64,
}

impl Followed {
    pub fn was_told(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Where it goes on after everything that it knew by this moment.
    fn last(&self, moment: u64) -> Option<&str> {
        let (start, _) = self.start.as_ref().filter(|(_, at)| *at <= moment)?;
        let seen = self.seen.iter().take_while(|seen| seen.moment <= moment).last();
        Some(seen.map_or(start, |seen| &seen.id))
    }

    /// What is known to a subscriber when the power comes back, where time begins anew.
    pub fn remembered(mut self, moment: u64) -> Followed {
        self.start = self.start.filter(|(_, at)| *at <= moment).map(|(id, _)| (id, 0));
        self.seen.retain(|seen| seen.moment <= moment && self.start.is_some());
        self.seen.iter_mut().for_each(|seen| seen.moment = 0);
        self
    }

    /// Everything up to the last event it was told is in the log, once and in this order.
    pub fn complaints(&self, database: &Connection, moment: u64) -> rusqlite::Result<Vec<String>> {
        let (Some((start, _)), Some(last)) = (&self.start, self.last(moment)) else { return Ok(Vec::new()) };
        let logged = logged(database, number(start), number(last))?;
        let seen = self.seen.iter().filter(|seen| seen.moment <= moment);
        let told: Vec<_> = seen.map(|seen| (number(&seen.id), seen.name.clone())).collect();
        Ok(difference(&told, &logged).into_iter().collect())
    }
}

fn number(id: &str) -> i64 {
    id.rsplit('-').next().and_then(|digits| digits.parse().ok()).expect("an id ends in its number")
}

/// The users whose creation the log tells of after one place and up to another.
fn logged(database: &Connection, after: i64, until: i64) -> rusqlite::Result<Vec<(i64, String)>> {
    let sql = "SELECT number, image ->> '$.name' FROM trefoil_changes \
               WHERE resource = 'User' AND deed = 'created' AND number > ?1 AND number <= ?2 ORDER BY number";
    let mut statement = database.prepare(sql)?;
    let rows = statement.query_map((after, until), |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn difference(told: &[(i64, String)], logged: &[(i64, String)]) -> Option<String> {
    let at = (0..told.len().max(logged.len())).find(|i| told.get(*i) != logged.get(*i))?;
    Some(format!(
        "lost: a subscriber was told {:?}, the log has {:?} (event {at} of {} and {})",
        told.get(at),
        logged.get(at),
        told.len(),
        logged.len()
    ))
}

/// Subscribers at work until the server is gone.
pub struct Following(Vec<JoinHandle<Followed>>);

impl Following {
    pub fn start(rig: &Arc<Rig>, address: SocketAddr, mut before: Vec<Followed>) -> Following {
        before.resize_with(FOLLOWERS, Followed::default);
        let spawn = |(number, followed): (usize, Followed)| {
            let rig = rig.clone();
            std::thread::spawn(move || follow(&rig, address, followed, number % 2 == 1))
        };
        Following(before.into_iter().enumerate().map(spawn).collect())
    }

    pub fn finish(self) -> Vec<Followed> {
        self.0.into_iter().map(|thread| thread.join().expect("subscribers do not panic")).collect()
    }
}

/// Follows until the connection breaks; a restless one leaves after a few events and comes back.
fn follow(rig: &Rig, address: SocketAddr, mut followed: Followed, restless: bool) -> Followed {
    while let Ok(mut stream) = Stream::open(address, followed.last(u64::MAX)) {
        let seen = followed.seen.len();
        let enough = if restless { seen + 1 + seen % 17 } else { usize::MAX };
        while followed.seen.len() < enough {
            match stream.next() {
                Ok(Block { id, name: Some(name) }) => {
                    followed.seen.push(Seen { id, name, moment: rig.moment() });
                }
                Ok(Block { id, name: None }) if followed.start.is_none() => {
                    followed.start = Some((id, rig.moment()));
                }
                Ok(Block { .. }) => {}
                Err(_) => return followed,
            }
        }
    }
    followed
}

/// A subscriber that comes back after a cut is told the rest of the log, in order and once.
pub fn resumed(address: SocketAddr, database: &Path, followed: &Followed, moment: u64) -> Option<String> {
    let last = followed.last(moment)?;
    let database = Connection::open(database).expect("the database is there");
    let rest = logged(&database, number(last), i64::MAX).expect("the log can be read");
    let mut told = Vec::new();
    let mut stream = Stream::open(address, Some(last)).expect("the server runs");
    while told.len() < rest.len() {
        match stream.next() {
            Ok(Block { id, name: Some(name) }) => told.push((number(&id), name)),
            Ok(Block { .. }) => {}
            Err(error) => return Some(format!("coming back to {last} failed: {error}")),
        }
    }
    difference(&told, &rest)
}

/// A subscription over an event stream.
struct Stream {
    chunks: BufReader<TcpStream>,
    /// What came and is not a whole block yet.
    text: String,
}

/// One block; the name is that of the user it tells of.
struct Block {
    id: String,
    name: Option<String>,
}

impl Stream {
    fn open(address: SocketAddr, last: Option<&str>) -> io::Result<Stream> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(40)))?;
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(stream, "GET {QUERY} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{last}\r\n")?;
        let mut chunks = BufReader::new(stream);
        let status = line(&mut chunks)?;
        if !status.contains(" 200 ") {
            return Err(io::Error::other(status));
        }
        while !line(&mut chunks)?.is_empty() {}
        Ok(Stream { chunks, text: String::new() })
    }

    /// The next block that names a place.
    fn next(&mut self) -> io::Result<Block> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field =
                    |name: &str| block.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
                let id = field("id:").map(str::to_owned);
                let data: Option<Value> = field("data:").and_then(|data| serde_json::from_str(data).ok());
                let shown = block.to_owned();
                self.text = rest.to_owned();
                let name = data.as_ref().and_then(|data| data["data"]["userCreated"]["name"].as_str());
                match id {
                    Some(id) => return Ok(Block { id, name: name.map(str::to_owned) }),
                    None if data.is_some() => return Err(io::Error::other(shown)),
                    None => {}
                }
            }
            self.chunk()?;
        }
    }

    fn chunk(&mut self) -> io::Result<()> {
        let size = usize::from_str_radix(&line(&mut self.chunks)?, 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        self.chunks.read_exact(&mut chunk)?;
        if size == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.text += std::str::from_utf8(&chunk[..size]).map_err(io::Error::other)?;
        Ok(())
    }
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match stream.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}
