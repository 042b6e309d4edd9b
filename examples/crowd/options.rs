//! What a crowd is told on its command line.

use std::net::SocketAddr;
use std::time::Duration;

use crate::Failed;

#[derive(Debug, Clone)]
pub struct Options {
    pub address: SocketAddr,
    pub pid: u32,
    pub sockets: usize,
    pub streams: usize,
    pub events: usize,
    /// Events in a second.
    pub rate: usize,
    pub writers: usize,
    /// Where they write: another node than the subscribers', if it is to be one.
    pub writers_at: SocketAddr,
    /// Readers that never read, of each kind.
    pub stuck: usize,
    /// Time after which a reader that does not read must have been cut.
    pub stuck_for: Duration,
    pub joiners: usize,
    pub wanderers: usize,
}

impl Options {
    pub fn read(mut arguments: impl Iterator<Item = String>) -> Result<Options, Failed> {
        let url = arguments.next().ok_or("usage: crowd URL PID [--sockets N] …")?;
        let address: SocketAddr = url.trim_start_matches("http://").trim_end_matches('/').parse()?;
        let pid = arguments.next().ok_or("the server's process id is missing")?.parse()?;
        let mut options = Options {
            address,
            pid,
            sockets: 0,
            streams: 0,
            events: 100,
            rate: 50,
            writers: 4,
            writers_at: address,
            stuck: 0,
            stuck_for: Duration::from_secs(30),
            joiners: 0,
            wanderers: 0,
        };
        while let Some(name) = arguments.next() {
            let value: usize = arguments.next().ok_or("a number is missing")?.parse()?;
            options.set(&name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: usize) -> Result<(), Failed> {
        match name {
            "--sockets" => self.sockets = value,
            "--streams" => self.streams = value,
            "--events" => self.events = value,
            "--rate" => self.rate = value.max(1),
            "--writers" => self.writers = value.max(1),
            "--writers-port" => self.writers_at.set_port(u16::try_from(value)?),
            "--stuck" => self.stuck = value,
            "--stuck-for" => self.stuck_for = Duration::from_secs(value as u64),
            "--joiners" => self.joiners = value,
            "--wanderers" => self.wanderers = value,
            other => return Err(format!("no option {other}").into()),
        }
        Ok(())
    }

    /// How many are open at once on either side.
    pub fn connections(&self) -> usize {
        self.sockets + self.streams + 2 * self.stuck + self.joiners + self.wanderers + self.writers
    }
}
