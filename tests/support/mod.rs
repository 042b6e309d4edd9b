//! A real server for a test, in this process or as the binary in its own process, and a client for it.

mod client;
mod outsider;
pub mod postgres;
mod process;

use std::net::SocketAddr;

use trefoil::Trefoil;
use trefoil_config::{Config, DatabaseLocation};
use trefoil_engine::Engine;
use trefoil_http::routing::ServedRoute;

pub use client::{Client, Reply};
pub use outsider::Outsider;
pub use process::{Process, command, free_port};

/// Whether the long form of a check was asked for, as `./test --long` does.
pub fn is_long() -> bool {
    std::env::var("LONG_CHECKS").is_ok_and(|value| value == "1")
}

/// A server on a free port, with its data in memory or in a folder; stopped when dropped.
pub struct Server {
    pub address: SocketAddr,
    pub engine: Engine,
    /// Every path that is answered, with its methods.
    pub routes: Vec<ServedRoute>,
    /// What the engine runs on.
    pub runtime: tokio::runtime::Handle,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    /// The sample, in memory.
    pub fn sample() -> Server {
        Server::start(Trefoil::sample(), Config { database: DatabaseLocation::Memory, ..Config::default() })
    }

    pub fn start(trefoil: Trefoil, config: Config) -> Server {
        let (ready, parts) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let config = Config { port: 0, host: "127.0.0.1".into(), ..config };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            runtime.block_on(async move {
                let running = trefoil.config(config).start().await.expect("the server starts");
                let runtime = tokio::runtime::Handle::current();
                let parts = (running.addresses[0], running.engine.clone(), running.routes(), runtime);
                assert!(ready.send(parts).is_ok(), "the test waits");
                let _ = stopped.await;
                running.stop().await;
            });
        });
        let (address, engine, routes, runtime) = parts.recv().expect("the server listens");
        Server { address, engine, routes, runtime, stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
