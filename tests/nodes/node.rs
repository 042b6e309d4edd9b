//! One node of several: the real binary on a port that it keeps over restarts, on a database that may go down.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::{Client, command, free_port};

pub struct Node {
    pub address: SocketAddr,
    folder: PathBuf,
    arguments: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl Node {
    /// `trefoil serve ARGUMENTS`, not yet started; what it logs goes to a file in `folder`.
    pub fn new(folder: &Path, arguments: &[&str]) -> Node {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Node { address, folder: folder.to_owned(), arguments, child: Mutex::new(None) }
    }

    /// A node that is ready.
    pub fn start(folder: &Path, arguments: &[&str]) -> Node {
        let node = Node::new(folder, arguments);
        node.launch();
        node.wait_until_ready(Duration::from_secs(60));
        node
    }

    /// Starts the process and does not wait for it.
    pub fn launch(&self) {
        let log = File::options().create(true).append(true).open(self.log_file()).expect("a log file");
        let mut command = command(&self.folder, &["serve", "--host", "127.0.0.1", "--log-format", "json"]);
        command.args(["--port", &self.address.port().to_string()]).args(&self.arguments);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("the binary runs");
        *self.child.lock().expect("no panic while held") = Some(child);
    }

    pub fn client(&self) -> Client {
        Client::to(self.address)
    }

    pub fn is_ready(&self) -> bool {
        let ask = || -> io::Result<u16> {
            let mut client = Client::connect(self.address)?;
            client.patience(Duration::from_secs(2))?;
            Ok(client.ask("GET", "/health/ready", &[], b"")?.status)
        };
        ask().is_ok_and(|status| status == 200)
    }

    pub fn wait_until_ready(&self, limit: Duration) {
        let begin = Instant::now();
        while !self.is_ready() {
            let ended = self.ended();
            if ended.is_some() || begin.elapsed() > limit {
                panic!("not ready after {:?} ({ended:?}):\n{}", begin.elapsed(), self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// `kill -9`.
    pub fn kill(&self) {
        if let Some(mut child) = self.child.lock().expect("no panic while held").take() {
            let _ = child.kill();
            child.wait().expect("it was killed");
        }
    }

    /// SIGTERM, and waits for the end.
    pub fn stop(&self) -> ExitStatus {
        let mut child = self.child.lock().expect("no panic while held").take().expect("it runs");
        let sent = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        child.wait().expect("a child of ours")
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join(format!("node-{}.log", self.address.port()))
    }

    fn ended(&self) -> Option<ExitStatus> {
        self.child.lock().expect("no panic while held").as_mut()?.try_wait().expect("a child of ours")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
