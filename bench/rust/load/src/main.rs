//! The load of bench/run: one thread that keeps connections busy, or subscribes and counts what arrives.
//!
//!     load requests PORT CONNECTIONS SECONDS SCRIPT      each connection asks again as soon as it is answered
//!     load waves PORT CONNECTIONS SECONDS SCRIPT         one write, then one read on every connection at once, and again
//!     load subscribers PORT COUNT SECONDS ws|sse WINDOW  COUNT subscribers, WINDOW events on their way at any time
//!
//! Each prints one line of JSON. `subscribers` first prints `subscribed` and waits for a line.

mod answer;
mod connection;
mod requests;
mod script;
mod subscribers;
mod subscription;

use std::time::{Duration, Instant};

use mio::{Events, Poll};

pub type Failed = Box<dyn std::error::Error>;

const USAGE: &str = "usage: load requests|waves PORT CONNECTIONS SECONDS SCRIPT | load subscribers PORT COUNT SECONDS ws|sse WINDOW";

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [what, port, count, seconds, rest @ ..] = arguments.as_slice() else { return Err(USAGE.into()) };
    let (port, count) = (port.parse()?, count.parse()?);
    let lasting = Duration::from_secs_f64(seconds.parse()?);
    let said = match (*what, rest) {
        ("requests", [script]) => requests::closed_loop(port, count, lasting, &script::read(script)?)?,
        ("waves", [script]) => requests::waves(port, count, lasting, &script::read(script)?)?,
        ("subscribers", ["ws", window]) => {
            subscribers::run(port, count, lasting, subscription::Transport::WebSocket, window.parse()?)?
        }
        ("subscribers", ["sse", window]) => {
            subscribers::run(port, count, lasting, subscription::Transport::Sse, window.parse()?)?
        }
        _ => return Err(USAGE.into()),
    };
    println!("{said}");
    Ok(())
}

/// What has arrived, asked for again and again until the patience is over: a load that slept would have to be woken, and the
/// kernel charges whoever sends to a sleeper for it. The floors answer so fast that theirs never slept.
pub fn arrivals(poll: &mut Poll, events: &mut Events, patience: Duration) -> std::io::Result<()> {
    let began = Instant::now();
    loop {
        poll.poll(events, Some(Duration::ZERO))?;
        if !events.is_empty() || began.elapsed() > patience {
            return Ok(());
        }
    }
}

/// The value below which that share of the sorted ones lies.
pub fn percentile(sorted: &[u32], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0).into()
}

pub fn micros_since(then: Instant) -> u32 {
    u32::try_from(then.elapsed().as_micros()).unwrap_or(u32::MAX)
}
