//! The load balancer configurations of docs/cluster: every node is replaced and no request is lost.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::check::{self, Truth};
use super::followers::Followers;
use super::node::Node;
use super::writers::{Fate, Habit, Writers};
use crate::support::postgres::database;
use crate::support::{Client, free_port};

/// Long enough for HAProxy's next two checks, and for nginx to take up a new configuration.
const DELAY: &[&str] = &["--shutdown-delay", "3s", "--heartbeat", "1s"];

/// As the files in docs/cluster name them.
const WRITTEN: [&str; 3] = ["10.0.0.11:8080", "10.0.0.12:8080", "10.0.0.13:8080"];

#[test]
fn haproxy_loses_no_request_in_a_rolling_restart() {
    let site = Site::start("haproxy.cfg");
    let file = site.configure("bind :80", |text| text);
    let child = Command::new(program("haproxy")).args(["-db", "-q", "-f"]).arg(&file).spawn();
    let balancer = Balancer(child.expect("HAProxy is installed"));
    site.replace_every_node(balancer, |_| (), |_| ());
}

#[test]
fn nginx_loses_no_request_in_a_rolling_restart() {
    let site = Site::start("nginx.conf");
    let (folder, file) = (site.folder.path().to_owned(), site.nginx(None));
    let run = |extra: &[&str]| {
        let mut command = Command::new(program("nginx"));
        let global = "daemon off; pid nginx.pid; error_log nginx.log;";
        command.args(["-e", "nginx.log", "-g", global, "-p"]).arg(&folder).arg("-c").arg(&file).args(extra);
        command.stderr(Stdio::null()).spawn().expect("nginx is installed")
    };
    let balancer = Balancer(run(&[]));
    let reload = || assert!(run(&["-s", "reload"]).wait().expect("nginx runs").success());
    let without = |node: usize| {
        site.nginx(Some(node));
        reload();
    };
    let with_all = |_: usize| {
        site.nginx(None);
        reload();
    };
    site.replace_every_node(balancer, without, with_all);
}

/// Three nodes and the configuration of what stands before them.
struct Site {
    nodes: Vec<Node>,
    url: String,
    /// Where the balancer listens.
    front: SocketAddr,
    written: String,
    folder: tempfile::TempDir,
}

struct Balancer(Child);

impl Drop for Balancer {
    fn drop(&mut self) {
        // nginx ends its workers when it is asked to end, and leaves them when it is killed.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

impl Site {
    fn start(file: &str) -> Site {
        let (folder, url) = (tempfile::tempdir().unwrap(), database());
        let arguments = [&["--database", &url], DELAY].concat();
        let nodes = WRITTEN.map(|_| Node::start(folder.path(), &arguments));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/cluster").join(file);
        let written = std::fs::read_to_string(path).unwrap();
        let front = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        Site { nodes: nodes.into(), url, front, written, folder }
    }

    /// The file as it is written but for the addresses.
    fn configure(&self, listen: &str, change: impl Fn(String) -> String) -> PathBuf {
        let mut text = self.written.clone();
        let word = listen.split(' ').next().unwrap();
        assert!(text.contains(listen) && WRITTEN.iter().all(|address| text.contains(address)));
        text = text.replace(listen, &format!("{word} {}", self.front));
        for (written, node) in WRITTEN.iter().zip(&self.nodes) {
            text = text.replace(written, &node.address.to_string());
        }
        let file = self.folder.path().join("balancer.conf");
        std::fs::write(&file, change(text)).unwrap();
        file
    }

    /// Without one of the nodes, as an operator takes it out; with room for temporary files that anyone may write to.
    fn nginx(&self, without: Option<usize>) -> PathBuf {
        self.configure("listen 80", |text| {
            let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
            let paths = paths.map(|name| format!("{name}_temp_path {name}; "));
            let text = text.replace("http {", &format!("http {{ access_log off; {}", paths.concat()));
            match without.map(|node| self.nodes[node].address) {
                Some(gone) => text.replace(&format!("server {gone} "), &format!("server {gone} down ")),
                None => text,
            }
        })
    }

    fn replace_every_node(&self, balancer: Balancer, before: impl Fn(usize), after: impl Fn(usize)) {
        let begin = Instant::now();
        while !Client::connect(self.front)
            .and_then(|mut client| client.ask("GET", "/health/ready", &[], b""))
            .is_ok_and(|reply| reply.status == 200)
        {
            assert!(begin.elapsed() < Duration::from_secs(20), "nobody answers behind the balancer");
            std::thread::sleep(Duration::from_millis(50));
        }
        socket(self.front).expect("a WebSocket through the balancer");
        let followers = Followers::start(&[self.front], 4);
        let created = Truth::on_postgres(&self.url).created.len();
        let writers = Writers::start(&[self.front], 6, Habit::Closes);
        for (number, node) in self.nodes.iter().enumerate() {
            std::thread::sleep(Duration::from_millis(500));
            before(number);
            assert!(node.stop().success(), "it ended in good order");
            node.launch();
            node.wait_until_ready(Duration::from_secs(30));
            after(number);
        }
        std::thread::sleep(Duration::from_millis(500));
        let ledger = writers.finish();
        assert!(ledger.odd.is_empty(), "{}", ledger.odd.join("\n"));
        let lost: Vec<_> = ledger.users.iter().filter(|(_, fate)| **fate == Fate::Unknown).collect();
        assert!(lost.is_empty(), "{} of {} requests got no answer: {lost:?}", lost.len(), ledger.users.len());
        assert!(ledger.users.len() > 300, "only {} writes", ledger.users.len());
        let truth = Truth::on_postgres(&self.url);
        let expected = truth.created.len() - created;
        followers.wait("all events", Duration::from_secs(30), |seen| seen.names.len() >= expected);
        let mut found = check::writes(&truth, &ledger);
        found.extend(followers.finish().iter().flat_map(|seen| check::events(&truth, created, seen)));
        assert!(found.is_empty(), "{}", found.join("\n"));
        drop(balancer);
    }
}

/// Opens a WebSocket and is told that it may subscribe.
fn socket(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let request = format!(
        "GET /graphql HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head)? > 0 {}
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // A text frame, whole, under a mask of zeros.
    let init = br#"{"type":"connection_init"}"#;
    let frame = [&[0x81, 0x80 | init.len() as u8, 0, 0, 0, 0][..], init].concat();
    stream.get_mut().write_all(&frame)?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer)?;
    let mut text = vec![0; usize::from(answer[1])];
    stream.read_exact(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("connection_ack"), "{text}");
    Ok(())
}

/// Debian keeps such programs where only root looks for them.
fn program(name: &str) -> PathBuf {
    let places = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin"];
    let found = places.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is not installed"))
}
