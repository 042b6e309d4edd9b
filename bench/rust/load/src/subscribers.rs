//! Many subscribers, and events published as fast as all of them have got the ones before.

use std::io::BufRead;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::connection::{Answered, Connection};
use crate::script::{Asked, Kind};
use crate::subscription::{MARK, Subscription, Transport};
use crate::{Failed, arrivals, micros_since, percentile};

/// How long all subscribers may take to get an event.
const PATIENCE: Duration = Duration::from_secs(30);
/// A subscriber that was not yet listening gets the next one of these.
const AGAIN: Duration = Duration::from_secs(1);

struct Crowd {
    poll: Poll,
    subscriptions: Vec<Subscription>,
    publishers: Vec<Connection>,
    script: Vec<Asked>,
    /// When each event was published, and how many have it.
    published: Vec<(Instant, usize)>,
    delays: Vec<u32>,
    buffer: Vec<u8>,
}

pub fn run(
    port: u16,
    count: usize,
    lasting: Duration,
    transport: Transport,
    window: usize,
) -> Result<String, Failed> {
    let mut crowd = Crowd::open(port, count, transport, window)?;
    let warm = crowd.until_all_listen()?;
    println!("subscribed");
    std::io::stdin().lock().read_line(&mut String::new())?;
    crowd.delays.clear();
    let began = Instant::now();
    let first = warm + 1;
    while began.elapsed() < lasting || crowd.on_their_way(first) > 0 {
        while began.elapsed() < lasting && crowd.on_their_way(first) < window {
            crowd.publish()?;
        }
        crowd.step(PATIENCE)?;
    }
    while crowd.publishers.iter().any(|publisher| publisher.asked.is_some()) {
        crowd.step(PATIENCE)?;
    }
    let seconds = began.elapsed().as_secs_f64();
    crowd.delays.sort_unstable();
    Ok(format!(
        r#"{{"events":{},"deliveries":{},"seconds":{seconds:.6},"p50":{},"p99":{}}}"#,
        crowd.published.len() - first,
        crowd.delays.len(),
        percentile(&crowd.delays, 0.5),
        percentile(&crowd.delays, 0.99),
    ))
}

impl Crowd {
    fn open(port: u16, count: usize, transport: Transport, window: usize) -> Result<Crowd, Failed> {
        let poll = Poll::new()?;
        let registry = poll.registry();
        let subscriptions = (0..count)
            .map(|index| Subscription::open(port, transport, registry, Token(index)))
            .collect::<Result<Vec<_>, _>>()?;
        let publishers = (0..window)
            .map(|index| Connection::open(port, registry, Token(count + index)))
            .collect::<Result<Vec<_>, _>>()?;
        let (script, published, delays) = (Vec::new(), Vec::new(), Vec::with_capacity(1 << 20));
        Ok(Crowd { poll, subscriptions, publishers, script, published, delays, buffer: vec![0; 1 << 18] })
    }

    /// The number of the first event that all have got.
    fn until_all_listen(&mut self) -> Result<usize, Failed> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            while self.publishers.iter().all(|publisher| publisher.asked.is_some()) {
                self.step(PATIENCE)?;
            }
            self.publish()?;
            let number = self.published.len() - 1;
            let asked = Instant::now();
            while asked.elapsed() < AGAIN {
                self.step(AGAIN)?;
                if self.published[number].1 == self.subscriptions.len() {
                    return Ok(number);
                }
            }
        }
        Err("not every subscriber gets events".into())
    }

    /// Events since that number which some have not got, or that are not acknowledged.
    fn on_their_way(&self, first: usize) -> usize {
        let behind = self.published[first..].iter().rev().take(2 * self.publishers.len());
        let undelivered = behind.filter(|(_, got)| *got < self.subscriptions.len()).count();
        undelivered.max(self.publishers.iter().filter(|publisher| publisher.asked.is_some()).count())
    }

    fn publish(&mut self) -> Result<(), Failed> {
        let number = self.published.len();
        let body = format!(
            r#"{{"query":"mutation($name:String!,$email:String!){{createUser(name:$name,email:$email){{id}}}}","variables":{{"name":"{MARK}{number}.","email":"event@example.com"}}}}"#
        );
        let request = format!(
            "POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let expected = memchr::memmem::Finder::new(b"\"id\"").into_owned();
        self.script.push(Asked { request: request.into_bytes(), expected, kind: Kind::Write });
        let publisher = self.publishers.iter_mut().find(|publisher| publisher.asked.is_none());
        publisher.ok_or("no publisher is free")?.send(&self.script, number)?;
        self.published.push((Instant::now(), 0));
        Ok(())
    }

    fn step(&mut self, patience: Duration) -> Result<(), Failed> {
        let mut events = Events::with_capacity(1024);
        arrivals(&mut self.poll, &mut events, patience)?;
        if events.is_empty() && patience == PATIENCE {
            return Err("an event did not reach every subscriber".into());
        }
        for event in events.iter() {
            let index = event.token().0;
            if let Some(subscription) = self.subscriptions.get_mut(index) {
                let (published, delays) = (&mut self.published, &mut self.delays);
                subscription.receive(&mut self.buffer, |number| {
                    published[number].1 += 1;
                    delays.push(micros_since(published[number].0));
                })?;
                continue;
            }
            let publisher = &mut self.publishers[index - self.subscriptions.len()];
            if let Some(Answered::Wrong(answer)) = publisher.receive(&mut self.buffer, &self.script, None)? {
                return Err(answer.into());
            }
        }
        Ok(())
    }
}
