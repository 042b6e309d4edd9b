//! A crowd of subscribers against a running server: each must get every event once and in order, and it tells what they cost.
//!
//!     crowd URL PID [--sockets N] [--streams N] [--events N] [--rate N] [--writers N] [--stuck N] [--stuck-for SECONDS]
//!                   [--joiners N] [--wanderers N] [--writers-port PORT]
//!
//! Sockets and streams subscribe before the first event over WebSocket and SSE. The stuck never read, and must be cut.
//! Writers write at the same address unless another node's port is given.
//! Joiners come at random moments; wanderers come, break off and come back with their last id until the end. The server
//! is another process, so that its memory and its time, read from /proc, are its own.

mod events;
mod options;
mod people;
mod process;
mod tally;
mod wire;
mod writers;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use events::Events;
use options::Options;
use people::{Crowd, Report};
use process::Process;
use tally::Sequence;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Files a process needs beside its connections.
const SPARE: usize = 300;

/// Time in which nobody gets any further, after which the rest is taken for lost.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let options = Arc::new(Options::read(std::env::args().skip(1))?);
    let server = Process(options.pid);
    server.allows(options.connections() + SPARE)?;
    Process::own().allows(options.connections() + SPARE)?;

    let alone = writing_alone(&options, server).await?;
    let before = server.resident()?;
    let events = Arc::new(Events::new(options.events));
    let mut crowd = Crowd::gather(&options, &events).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = server.resident()?.saturating_sub(before);

    let spent = server.time()?;
    let began = std::time::Instant::now();
    crowd.come_and_go(&options, &events);
    writers::write_all(&options, &events).await?;
    let wrote = began.elapsed();
    crowd.wait(PATIENCE).await;
    let spent = server.time()?.saturating_sub(spent);
    let busy = server.resident()?.saturating_sub(before);

    let stuck = crowd.stuck_are_cut(&options).await;
    let report = crowd.finish().await;
    let figures = Figures { options: &options, idle, busy, spent, alone, wrote };
    figures.tell(&events, &report)?;
    verdict(&options, &events, &report, stuck)
}

/// What the server spends on an event that nobody follows.
async fn writing_alone(options: &Arc<Options>, server: Process) -> Result<Duration, Failed> {
    let events = Arc::new(Events::new(options.events.min(200)));
    let spent = server.time()?;
    writers::write_all(options, &events).await?;
    Ok(server.time()?.saturating_sub(spent) / u32::try_from(events.len())?)
}

struct Figures<'a> {
    options: &'a Options,
    idle: u64,
    busy: u64,
    spent: Duration,
    alone: Duration,
    wrote: Duration,
}

impl Figures<'_> {
    fn tell(&self, events: &Events, report: &Report) -> Result<(), Failed> {
        let Options { sockets, streams, joiners, wanderers, .. } = *self.options;
        let subscribers = (sockets + streams).max(1) as u64;
        let rate = events.len() as f64 / self.wrote.as_secs_f64();
        let each = |bytes: u64| bytes as f64 / subscribers as f64 / 1024.0;
        let count = u32::try_from(events.len())?;
        let deliveries = report.deliveries().max(1);
        let delivering =
            self.spent.saturating_sub(self.alone * count).as_secs_f64() * 1e6 / deliveries as f64;
        let [half, most, worst] = [0.5, 0.99, 1.0].map(|part| report.delays.quantile(part));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{sockets} sockets, {streams} streams, {joiners} joiners, {wanderers} wanderers")?;
        writeln!(out, "{count} events at {rate:.0}/s, {deliveries} deliveries")?;
        writeln!(
            out,
            "memory per subscriber: {:.1} KiB idle, {:.1} KiB after",
            each(self.idle),
            each(self.busy)
        )?;
        writeln!(
            out,
            "server time per delivery: {delivering:.2} µs (per event without subscribers: {:?})",
            self.alone
        )?;
        writeln!(
            out,
            "delay after the write was acknowledged: p50 {half:?}, p99 {most:?}, longest {worst:?}"
        )?;
        Ok(())
    }
}

/// Fails with everything that was not as it must be.
fn verdict(options: &Options, events: &Events, report: &Report, stuck: Vec<String>) -> Result<(), Failed> {
    let mut wrong = stuck;
    let Some(whole) = report.whole() else { return Err("nobody saw the whole log".into()) };
    wrong.extend(events.compare(whole));
    for (name, sequence) in report.sequences() {
        if let Err(why) = Sequence::check(sequence, whole) {
            wrong.push(format!("{name}: {why}"));
        }
    }
    wrong.extend(report.broken.iter().cloned());
    if options.wanderers > 0 && report.returns < options.wanderers {
        wrong.push(format!("the wanderers came back only {} times", report.returns));
    }
    if wrong.is_empty() {
        writeln!(
            std::io::stdout(),
            "every subscriber got every event once and in order; {} returns",
            report.returns
        )?;
        return Ok(());
    }
    let shown = wrong.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    Err(format!("{} things are wrong:\n{shown}", wrong.len()).into())
}
