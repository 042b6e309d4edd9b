//! A proxy to PostgreSQL that counts the commits sent through it, and stops for good at one of them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// Where nothing goes on, counting commits from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The database never hears of this commit.
    Before(usize),
    /// The database has committed, and the client never hears of it.
    Answer(usize),
    /// The client has heard of it, and nothing that it says next is heard.
    After(usize),
    Never,
}

pub struct Gate {
    address: SocketAddr,
    shared: Arc<Shared>,
    stopped: mpsc::Receiver<()>,
}

struct Shared {
    stop: Stop,
    commits: AtomicUsize,
    tell: mpsc::Sender<()>,
}

impl Gate {
    /// Before the server of this URL, until the test's process ends.
    pub fn before(url: &str, stop: Stop) -> Gate {
        let server: SocketAddr = host(url).parse().expect("an address with a port");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (tell, stopped) = mpsc::channel();
        let shared = Arc::new(Shared { stop, commits: AtomicUsize::new(0), tell });
        let known = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(server).expect("the server listens");
                // Messages are passed on one by one: without this each would wait until the one before is acknowledged.
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                Passing::start(client, server, known.clone());
            }
        });
        Gate { address, shared, stopped }
    }

    /// The URL that leads through here; anything else stays what it is.
    pub fn through(&self, text: &str) -> String {
        if text.starts_with("postgres:") {
            text.replace(host(text), &self.address.to_string())
        } else {
            text.to_owned()
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.try_recv().is_ok()
    }

    pub fn commits(&self) -> usize {
        self.shared.commits.load(Ordering::SeqCst)
    }
}

/// `127.0.0.1:5432` of `postgres://user@127.0.0.1:5432/name`.
fn host(url: &str) -> &str {
    let rest = url.split_once('@').expect("a user").1;
    rest.split_once('/').expect("a name").0
}

/// One connection.
struct Passing {
    shared: Arc<Shared>,
    /// Nothing that the server says gets through any more.
    withheld: AtomicBool,
}

impl Passing {
    fn start(client: TcpStream, server: TcpStream, shared: Arc<Shared>) {
        let passing = Arc::new(Passing { shared, withheld: AtomicBool::new(false) });
        let (back, from, to) =
            (passing.clone(), server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
        std::thread::spawn(move || back.answers(from, to));
        std::thread::spawn(move || {
            // The end of one side is the end of both.
            let _ = passing.questions(&client, &server);
            let _ = (client.shutdown(Shutdown::Both), server.shutdown(Shutdown::Both));
        });
    }

    fn answers(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = [0; 16 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if self.withheld.load(Ordering::SeqCst) {
                let _ = self.shared.tell.send(());
            } else if to.write_all(&buffer[..length]).is_err() {
                return;
            }
        }
    }

    fn questions(&self, mut client: &TcpStream, mut server: &TcpStream) -> std::io::Result<()> {
        let (mut is_started, mut is_last) = (false, false);
        loop {
            let kind = if is_started { Some(byte(client)?) } else { None };
            let mut length = [0; 4];
            client.read_exact(&mut length)?;
            let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
            client.read_exact(&mut body)?;
            let is_commit = kind == Some(b'Q') && body == b"COMMIT\0";
            let number = if is_commit { self.shared.commits.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
            if is_last || (is_commit && self.shared.stop == Stop::Before(number)) {
                let _ = self.shared.tell.send(());
                return std::io::copy(&mut client, &mut std::io::sink()).map(drop);
            }
            self.withheld.fetch_or(is_commit && self.shared.stop == Stop::Answer(number), Ordering::SeqCst);
            is_last = is_commit && self.shared.stop == Stop::After(number);
            // Asking for TLS is a message without a kind, too: what begins the session is the one after it.
            is_started |= kind.is_none() && body[..4] != 80_877_103_u32.to_be_bytes();
            let message: Vec<u8> = kind.into_iter().chain(length).chain(body).collect();
            server.write_all(&message)?;
        }
    }
}

fn byte(mut from: &TcpStream) -> std::io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}
