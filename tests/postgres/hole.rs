//! A proxy to a server that can turn silent: it accepts bytes and forwards nothing, and no one is told.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct Hole {
    address: SocketAddr,
    is_open: Arc<AtomicBool>,
}

impl Hole {
    /// In front of the server that this address names.
    pub fn before(url: &str) -> Hole {
        let server: SocketAddr = host(url).parse().expect("an address with a port");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let is_open = Arc::new(AtomicBool::new(false));
        let opened = is_open.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (one, other) = (opened.clone(), opened.clone());
                std::thread::spawn(move || pass(client, server, &one));
                std::thread::spawn(move || pass(forth, back, &other));
            }
        });
        Hole { address, is_open }
    }

    pub fn url(&self, url: &str) -> String {
        url.replace(host(url), &self.address.to_string())
    }

    /// From now on everything that comes is swallowed.
    pub fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    /// What comes from now on passes again; what was swallowed stays so.
    pub fn close(&self) {
        self.is_open.store(false, Ordering::SeqCst);
    }
}

fn host(url: &str) -> &str {
    let behind = url.split_once('@').expect("a user").1;
    behind.split_once('/').expect("a database").0
}

fn pass(mut from: TcpStream, mut to: TcpStream, swallow: &AtomicBool) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !swallow.load(Ordering::SeqCst) && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // The end of a connection is not told through a hole either.
    if !swallow.load(Ordering::SeqCst) {
        let _ = to.shutdown(Shutdown::Both);
    }
}
