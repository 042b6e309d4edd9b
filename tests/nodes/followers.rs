//! Subscribers that reconnect to any node with their last event id, and record every event they get.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::power::chance::Chance;

/// Longer than the pause between two heartbeats of the nodes under trial.
const SILENCE: Duration = Duration::from_secs(4);

/// What one subscriber has seen.
#[derive(Default, Clone)]
pub struct Seen {
    pub names: Vec<String>,
    /// Where it would go on.
    pub last: Option<String>,
    /// Answers and events that the contract does not allow.
    pub odd: Vec<String>,
    /// How often it came back.
    pub returns: usize,
}

pub struct Followers {
    stop: Arc<AtomicBool>,
    seen: Vec<Arc<Mutex<Seen>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Followers {
    /// `each` subscribers begin at each address; returns when all of them know where they start.
    pub fn start(addresses: &[SocketAddr], each: usize) -> Followers {
        let stop = Arc::new(AtomicBool::new(false));
        let seen: Vec<_> = (0..each * addresses.len()).map(|_| Arc::<Mutex<Seen>>::default()).collect();
        let spawn = |(number, seen): (usize, &Arc<Mutex<Seen>>)| {
            let (addresses, stop, seen) = (addresses.to_vec(), stop.clone(), seen.clone());
            let chance = Chance::new(number as u64);
            let at = number % addresses.len();
            std::thread::spawn(move || Follower { addresses, at, stop, seen, chance }.work())
        };
        let threads = seen.iter().enumerate().map(spawn).collect();
        let followers = Followers { stop, seen, threads };
        followers.wait("each knows where it starts", Duration::from_secs(20), |seen| seen.last.is_some());
        followers
    }

    pub fn wait(&self, what: &str, limit: Duration, done: impl Fn(&Seen) -> bool) {
        let begin = Instant::now();
        for seen in &self.seen {
            while !done(&seen.lock().expect("no panic while held")) {
                if begin.elapsed() > limit {
                    let seen = seen.lock().expect("no panic while held");
                    panic!("not within {limit:?}: {what}; {} seen, {:?}", seen.names.len(), seen.odd);
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    pub fn finish(self) -> Vec<Seen> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("subscribers do not panic");
        }
        self.seen.iter().map(|seen| seen.lock().expect("no panic while held").clone()).collect()
    }
}

struct Follower {
    addresses: Vec<SocketAddr>,
    at: usize,
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    chance: Chance,
}

impl Follower {
    fn work(mut self) {
        while !self.stop.load(Ordering::Relaxed) {
            // An error of the connection is a reason to come back, to whichever node.
            let _ = self.follow();
            self.at = self.chance.below(self.addresses.len());
            self.seen().returns += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("no panic while held")
    }

    /// One connection, until it breaks, falls silent, or the subscriber has had enough of this node.
    fn follow(&mut self) -> io::Result<()> {
        let until = Instant::now() + Duration::from_millis(1000 + self.chance.below(4000) as u64);
        let mut stream = Stream::open(self.addresses[self.at], self.seen().last.as_deref())?;
        match stream.status {
            200 => {}
            503 if stream.retry_after => {
                std::thread::sleep(Duration::from_millis(200));
                return Ok(());
            }
            status => {
                let mut body = String::new();
                let _ = stream.body.read_to_string(&mut body);
                self.seen().odd.push(format!("a subscription was answered with {status}: {body}"));
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
            let block = stream.block()?;
            self.take(&block);
        }
        Ok(())
    }

    /// What a whole block says; one that was cut off says nothing.
    fn take(&mut self, block: &[String]) {
        let of = |name: &str| block.iter().find_map(|line| line.strip_prefix(name));
        let mut seen = self.seen();
        if let Some(data) = of("data: ") {
            let event: Value = serde_json::from_str(data).unwrap_or_default();
            match event["data"]["userCreated"]["name"].as_str() {
                Some(name) => seen.names.push(name.to_owned()),
                None => seen.odd.push(block.join("\n")),
            }
            if of("id: ").is_none() {
                seen.odd.push(format!("an event without an id: {data}"));
            }
        }
        if let Some(id) = of("id: ") {
            seen.last = Some(id.to_owned());
        }
    }
}

/// A response of `text/event-stream` while it comes.
struct Stream {
    status: u16,
    retry_after: bool,
    body: BufReader<Chunked>,
}

impl Stream {
    fn open(address: SocketAddr, last: Option<&str>) -> io::Result<Stream> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
        stream.set_read_timeout(Some(SILENCE))?;
        let body = json!({"query": "subscription { userCreated { name } }"}).to_string();
        let resume = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let request = format!(
            "POST /graphql HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: text/event-stream\r\n{resume}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes())?;
        let mut stream = BufReader::new(stream);
        let status = line(&mut stream)?.split(' ').nth(1).and_then(|code| code.parse().ok());
        let (mut retry_after, mut chunked) = (false, false);
        loop {
            let header = line(&mut stream)?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            retry_after |= header.starts_with("retry-after:");
            chunked |= header.starts_with("transfer-encoding:");
        }
        let body = BufReader::new(Chunked { stream, left: if chunked { 0 } else { usize::MAX } });
        Ok(Stream { status: status.ok_or(io::ErrorKind::InvalidData)?, retry_after, body })
    }

    /// The lines up to the next empty one.
    fn block(&mut self) -> io::Result<Vec<String>> {
        let mut block = Vec::new();
        loop {
            let line = line(&mut self.body)?;
            if line.is_empty() {
                return Ok(block);
            }
            block.push(line);
        }
    }
}

/// Takes the chunks of a body apart as they come.
struct Chunked {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.left == 0 {
            let size = line(&mut self.stream)?;
            if size.is_empty() {
                continue; // the end of the chunk before
            }
            self.left = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let room = buffer.len().min(self.left);
        let length = self.stream.read(&mut buffer[..room])?;
        self.left -= length;
        Ok(length)
    }
}

/// A whole line without its end; the end of the stream within one is an error.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    match line.strip_suffix('\n') {
        Some(line) => Ok(line.trim_end_matches('\r').to_owned()),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
