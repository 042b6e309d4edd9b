//! The real binary as a child process, on the simulated disk or on what a power cut left of it.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::Client;
use super::rig::Rig;

pub const BINARY: &str = env!("CARGO_BIN_EXE_trefoil");

/// Below the folder of a [`Rig`] or of a cut.
pub const DATA: &str = "trefoil-data";

pub struct Server {
    child: Child,
    pub address: SocketAddr,
    log: PathBuf,
}

impl Server {
    pub fn on_simulated_disk(rig: &Rig) -> Server {
        Server::start(rig.command(BINARY), &rig.folder())
    }

    /// The same with an application of the test.
    pub fn serving_on(rig: &Rig, app: &Path) -> Server {
        let mut command = rig.command(BINARY);
        command.arg("serve").arg(app);
        Server::start(command, &rig.folder())
    }

    pub fn serving(folder: &Path, app: &Path) -> Server {
        let mut command = Command::new(BINARY);
        command.arg("serve").arg(app);
        Server::start(command, folder)
    }

    /// On an ordinary disk.
    pub fn on(folder: &Path) -> Server {
        Server::start(Command::new(BINARY), folder)
    }

    /// At a free port; returns when it is ready. Without an application of its own it serves the sample.
    fn start(mut command: Command, folder: &Path) -> Server {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = free.expect("a free port");
        let log = folder
            .parent()
            .expect("a temporary folder has one")
            .join(format!("trefoil-{}.log", address.port()));
        let child = command
            .current_dir(folder)
            .env("TREFOIL_HOST", "127.0.0.1")
            .env("TREFOIL_PORT", address.port().to_string())
            .env("TREFOIL_DATA", folder.join(DATA))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).expect("a log file"))
            .spawn()
            .expect("the binary was built");
        let mut server = Server { child, address, log };
        server.wait_until_ready();
        server
    }

    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn wait_until_ready(&mut self) {
        let begin = Instant::now();
        while !self.is_ready() {
            let ended = self.child.try_wait().expect("a child of ours");
            let late = begin.elapsed() > Duration::from_secs(20);
            if ended.is_some() || late {
                panic!("the server did not start ({ended:?}):\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_ready(&self) -> bool {
        let ask = || -> io::Result<u16> { Ok(Client::connect(self.address)?.get("/health/ready")?.status) };
        ask().is_ok_and(|status| status == 200)
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address).expect("the server listens")
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child of ours").is_none()
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("it was killed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
