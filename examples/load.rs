//! One request after another on each of many connections for a while: the load of bench/postgres.
//!
//!     load get|create SECONDS CONNECTIONS ADDRESS…
//!
//! The connections are spread evenly over the addresses. It prints how many requests were answered in how many seconds;
//! an answer that is not a user is a failure. One thread, as pgbench has by default.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Users that there are before the load begins.
const USERS: u64 = 10_000;

#[derive(Debug, Clone, Copy)]
enum Load {
    Get,
    Create,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [load, seconds, connections, addresses @ ..] = arguments.as_slice() else {
        return Err("usage: load get|create SECONDS CONNECTIONS ADDRESS…".into());
    };
    let load = match load.as_str() {
        "get" => Load::Get,
        "create" => Load::Create,
        other => return Err(format!("no load {other}").into()),
    };
    let addresses =
        addresses.iter().map(|address| address.parse()).collect::<Result<Vec<SocketAddr>, _>>()?;
    let connections: usize = connections.parse()?;
    let began = Instant::now();
    let until = began + Duration::from_secs(seconds.parse()?);
    let mut running = JoinSet::new();
    for (index, address) in addresses.into_iter().cycle().take(connections).enumerate() {
        running.spawn(send_until(until, load, address, index as u64));
    }
    let mut answered = 0;
    while let Some(ended) = running.join_next().await {
        answered += ended??;
    }
    writeln!(std::io::stdout(), "{answered} {:.3}", began.elapsed().as_secs_f64())?;
    Ok(())
}

async fn send_until(until: Instant, load: Load, address: SocketAddr, index: u64) -> Result<u64, Failed> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut answer = Vec::with_capacity(1024);
    let mut chance = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut answered = 0;
    while Instant::now() < until {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        stream.write_all(request(load, 1 + (chance >> 33) % USERS).as_bytes()).await?;
        answer.clear();
        while !is_whole(&answer)? {
            if stream.read_buf(&mut answer).await? == 0 {
                return Err("the server closed a connection".into());
            }
        }
        answered += 1;
    }
    Ok(answered)
}

fn request(load: Load, number: u64) -> String {
    let body = match load {
        Load::Get => format!(
            r#"{{"query":"query($id: ID!) {{ getUserById(id: $id) {{ id name email }} }}","variables":{{"id":"{number}"}}}}"#
        ),
        Load::Create => format!(
            r#"{{"query":"mutation($name: String!, $email: String!) {{ createUser(name: $name, email: $email) {{ id }} }}","variables":{{"name":"{number}","email":"someone@example.com"}}}}"#
        ),
    };
    format!(
        "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Whether all of an answer is there.
fn is_whole(answer: &[u8]) -> Result<bool, Failed> {
    let text = std::str::from_utf8(answer)?;
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Ok(false) };
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let length = lines.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length.ok_or("an answer without its length")?.1.parse()?;
    let whole = body.len() >= length;
    if whole && !body.contains(r#"{"id":""#) {
        return Err(format!("not a user: {body}").into());
    }
    Ok(whole)
}
