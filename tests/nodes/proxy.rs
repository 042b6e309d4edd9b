//! A TCP proxy that forwards, delays, cuts or silently drops the bytes of its connections.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// What arrives is passed on after this time.
    Late(Duration),
    /// Every connection is closed and no new one gets through.
    Cut,
    /// Connections stay and nothing arrives. What was sent meanwhile arrives when the hole is gone, as TCP has it,
    /// unless its sender has given up by then.
    BlackHole,
}

pub struct Proxy {
    pub address: SocketAddr,
    mode: watch::Sender<Mode>,
    runtime: Option<Runtime>,
}

impl Proxy {
    pub fn to(target: SocketAddr) -> Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let (mode, seen) = watch::channel(Mode::Pass);
        runtime.spawn(accept(listener, target, seen));
        Proxy { address, mode, runtime: Some(runtime) }
    }

    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_millis(100));
        }
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, mode: watch::Receiver<Mode>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(carry(client, target, mode.clone()));
    }
}

async fn carry(client: TcpStream, target: SocketAddr, mut mode: watch::Receiver<Mode>) {
    if passes(&mut mode).await.is_none() {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::spawn(pump(from_client, to_server, mode.clone()));
    pump(from_server, to_client, mode).await;
}

/// Carries one direction until it ends or is cut; the other one notices by its own end.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut mode: watch::Receiver<Mode>,
) -> Option<()> {
    let mut buffer = vec![0; 16 * 1024];
    let mut cut = mode.clone();
    loop {
        let length = tokio::select! {
            _ = cut.wait_for(|mode| *mode == Mode::Cut) => return None,
            read = from.read(&mut buffer) => read.ok()?,
        };
        let late = passes(&mut mode).await?;
        tokio::time::sleep(late).await;
        if length == 0 {
            return to.shutdown().await.ok();
        }
        to.write_all(&buffer[..length]).await.ok()?;
    }
}

/// Waits out a black hole, and tells how late everything is; None when it is cut.
async fn passes(mode: &mut watch::Receiver<Mode>) -> Option<Duration> {
    match *mode.wait_for(|mode| *mode != Mode::BlackHole).await.ok()? {
        Mode::Pass => Some(Duration::ZERO),
        Mode::Late(time) => Some(time),
        Mode::Cut | Mode::BlackHole => None,
    }
}
