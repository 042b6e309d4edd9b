//! Sends the script's requests, either each connection for itself or in waves of one write and many reads.

use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::connection::{Answered, Connection};
use crate::script::{Asked, Kind};
use crate::{Failed, arrivals, micros_since, percentile};

/// Longer than any right answer takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

struct Load<'a> {
    script: &'a [Asked],
    poll: Poll,
    connections: Vec<Connection>,
    buffer: Vec<u8>,
    delays: Vec<u32>,
    reads: u64,
    writes: u64,
    wrong: u64,
    first_wrong: Option<String>,
    began: Instant,
    chance: u64,
    /// The last write of waves, which fresh reads must show.
    written: Option<usize>,
}

pub fn closed_loop(
    port: u16,
    connections: usize,
    lasting: Duration,
    script: &[Asked],
) -> Result<String, Failed> {
    let mut load = Load::open(port, connections, script)?;
    let until = load.began + lasting;
    for connection in 0..connections {
        let index = load.any();
        load.connections[connection].send(script, index)?;
    }
    let mut waiting = connections;
    while waiting > 0 {
        for connection in load.answered()? {
            if Instant::now() < until {
                let index = load.any();
                load.connections[connection].send(script, index)?;
            } else {
                waiting -= 1;
            }
        }
    }
    Ok(load.told())
}

/// No two reads of a wave are the same request, so that none can be answered with what another was.
pub fn waves(port: u16, connections: usize, lasting: Duration, script: &[Asked]) -> Result<String, Failed> {
    let writes: Vec<usize> = (0..script.len()).filter(|index| script[*index].kind == Kind::Write).collect();
    let reads: Vec<usize> = (0..script.len()).filter(|index| script[*index].kind != Kind::Write).collect();
    let mut load = Load::open(port, connections, script)?;
    let until = load.began + lasting;
    for write in writes.iter().cycle() {
        if Instant::now() >= until {
            break;
        }
        load.written = Some(*write);
        load.connections[0].send(script, *write)?;
        load.all_of(1)?;
        for (connection, read) in reads.iter().enumerate().take(connections) {
            load.connections[connection].send(script, *read)?;
        }
        load.all_of(reads.len().min(connections))?;
    }
    Ok(load.told())
}

impl<'a> Load<'a> {
    fn open(port: u16, connections: usize, script: &'a [Asked]) -> Result<Load<'a>, Failed> {
        let poll = Poll::new()?;
        let connections = (0..connections)
            .map(|index| Connection::open(port, poll.registry(), Token(index)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Load {
            script,
            poll,
            connections,
            buffer: vec![0; 1 << 20],
            delays: Vec::with_capacity(1 << 20),
            reads: 0,
            writes: 0,
            wrong: 0,
            first_wrong: None,
            began: Instant::now(),
            written: None,
            chance: u64::from(std::process::id()).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        })
    }

    fn any(&mut self) -> usize {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance % self.script.len() as u64) as usize
    }

    /// Waits until some have their answer.
    fn answered(&mut self) -> Result<Vec<usize>, Failed> {
        let mut events = Events::with_capacity(1024);
        arrivals(&mut self.poll, &mut events, PATIENCE)?;
        if events.is_empty() {
            return Err("no answer for a minute".into());
        }
        let fresh = self.written.map(|write| &self.script[write].expected);
        let mut done = Vec::new();
        for event in events.iter() {
            let index = event.token().0;
            let connection = &mut self.connections[index];
            let writes = connection.asked.is_some_and(|asked| self.script[asked].kind == Kind::Write);
            let Some(verdict) = connection.receive(&mut self.buffer, self.script, fresh)? else { continue };
            match verdict {
                Answered::Right if writes => self.writes += 1,
                Answered::Right => self.reads += 1,
                Answered::Wrong(answer) => {
                    self.wrong += 1;
                    self.first_wrong.get_or_insert(answer);
                }
            }
            // The writes of waves are there for the reads' sake: their delays would hide those of the reads.
            if !(writes && self.written.is_some()) {
                self.delays.push(micros_since(connection.sent));
            }
            done.push(index);
        }
        Ok(done)
    }

    fn all_of(&mut self, mut waiting: usize) -> Result<(), Failed> {
        while waiting > 0 {
            waiting -= self.answered()?.len();
        }
        Ok(())
    }

    fn told(mut self) -> String {
        let seconds = self.began.elapsed().as_secs_f64();
        if let Some(wrong) = &self.first_wrong {
            eprintln!("{wrong}");
        }
        self.delays.sort_unstable();
        format!(
            r#"{{"reads":{},"writes":{},"wrong":{},"seconds":{seconds:.6},"p50":{},"p99":{}}}"#,
            self.reads,
            self.writes,
            self.wrong,
            percentile(&self.delays, 0.5),
            percentile(&self.delays, 0.99),
        )
    }
}
