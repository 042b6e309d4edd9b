//! The real binary as a child process: started on a free port, its log read, stopped or killed.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::Client;

pub struct Process {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
    said: Arc<Mutex<String>>,
}

/// The binary with nothing of ours in its environment.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trefoil"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TREFOIL_")) {
        command.env_remove(name);
    }
    command.env_remove("DATABASE_URL");
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

/// Below the ports that the system gives to outgoing connections: one of those could take it while its server is down.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = (std::process::id() % 9000) as u16;
    for _ in 0..10_000 {
        let port = 10_000 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}

impl Process {
    /// `trefoil ARGUMENTS --port 0` in `folder`; returns when it listens.
    pub fn start(folder: &Path, arguments: &[&str]) -> Process {
        Process::start_with(folder, arguments, &[])
    }

    /// The same with these variables of the environment.
    pub fn start_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Process {
        let mut command = command(folder, arguments);
        command.envs(variables.iter().copied());
        let piped = command.args(["--port", "0", "--log-format", "json"]).stderr(Stdio::piped());
        let mut child = piped.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let (found, address) = std::sync::mpsc::channel();
        std::thread::spawn({
            let log = log.clone();
            move || {
                for line in lines.map_while(Result::ok) {
                    // In the log before it is acted on: who waits for the address may read the log next.
                    let address = address_in(&line);
                    *log.lock().expect("no panic while held") += &(line + "\n");
                    if let Some(address) = address {
                        let _ = found.send(address);
                    }
                }
            }
        });
        let said = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        std::thread::spawn({
            let said = said.clone();
            move || {
                for line in lines.map_while(Result::ok) {
                    *said.lock().expect("no panic while held") += &(line + "\n");
                }
            }
        });
        let address = address.recv_timeout(Duration::from_secs(20));
        let address = address.unwrap_or_else(|_| panic!("it did not start:\n{}", log.lock().expect("free")));
        Process { child, address, log, said }
    }

    pub fn client(&self) -> Client {
        Client::to(self.address)
    }

    /// Everything it has written to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("no panic while held").clone()
    }

    /// Everything it has written to standard output so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("no panic while held").clone()
    }

    /// Waits until the log says so.
    pub fn wait_for(&self, words: &str) {
        let begin = Instant::now();
        while !self.log().contains(words) {
            assert!(begin.elapsed() < Duration::from_secs(10), "no `{words}` in\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), pid.as_str()]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// How it ended, within this time.
    pub fn ended_within(&mut self, limit: Duration) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status;
            }
            assert!(begin.elapsed() < limit, "still running after {limit:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The most memory it ever had, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("running");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
        let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
        kilobytes.expect("a number") * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) =
        line.split_once("listening on http://").or_else(|| line.split_once("listening on https://"))?;
    let end = rest.find(|c: char| c == '"' || c == '/' || c.is_whitespace()).unwrap_or(rest.len());
    rest[..end].replace("localhost", "127.0.0.1").parse().ok()
}
