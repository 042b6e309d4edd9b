//! Those who follow: from the start, from some moment on, in pieces, or without ever reading.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Failed;
use crate::events::Events;
use crate::options::Options;
use crate::tally::{Delays, Event, Sequence};
use crate::wire::{EVENTS, Kind, Link, number};

/// Connections that are being opened at once.
const OPENING: usize = 100;

/// Time in which a cut connection shows that it is one.
const CUT: Duration = Duration::from_secs(10);

/// Shared by all of them.
struct Shared {
    address: SocketAddr,
    events: Arc<Events>,
    delays: Delays,
    deliveries: AtomicU64,
    returns: AtomicUsize,
    /// How many have got all there is.
    whole: AtomicUsize,
    stop: CancellationToken,
}

/// Someone's events, and all of them if they were kept.
struct Followed {
    name: String,
    sequence: Sequence,
    kept: Option<Vec<Event>>,
}

pub struct Crowd {
    shared: Arc<Shared>,
    people: JoinSet<Result<Followed, String>>,
    from_start: usize,
    stuck: Vec<(String, TcpStream)>,
}

pub struct Report {
    followed: Vec<Followed>,
    pub broken: Vec<String>,
    pub delays: Delays,
    deliveries: u64,
    pub returns: usize,
}

impl Crowd {
    /// Opens all who are there from the start and returns when each knows its place.
    pub async fn gather(options: &Options, events: &Arc<Events>) -> Result<Crowd, Failed> {
        let shared = Arc::new(Shared {
            address: options.address,
            events: events.clone(),
            delays: Delays::new(),
            deliveries: AtomicU64::new(0),
            returns: AtomicUsize::new(0),
            whole: AtomicUsize::new(0),
            stop: CancellationToken::new(),
        });
        let links = open_all(options).await?;
        let from_start = links.len();
        let mut people = JoinSet::new();
        for (index, kind, link) in links {
            let shared = shared.clone();
            let kept = (index == 0).then(Vec::new);
            people.spawn(async move { shared.follow(format!("{kind:?} {index}"), link, kept).await });
        }
        let mut stuck = Vec::new();
        for index in 0..2 * options.stuck {
            let kind = if index % 2 == 0 { Kind::Socket } else { Kind::Stream };
            let stream = Link::stuck(options.address, index, kind, &large()).await?;
            stuck.push((format!("stuck {kind:?} {index}"), stream));
        }
        Ok(Crowd { shared, people, from_start, stuck })
    }

    /// Sends those on their way who come later, and those who come and go.
    pub fn come_and_go(&mut self, options: &Options, events: &Arc<Events>) {
        let length = Duration::from_secs(1) * events.len() as u32 / options.rate as u32;
        for index in 0..options.joiners {
            let (shared, mut random) = (self.shared.clone(), Random::new(index));
            let wait = random.below(length * 9 / 10);
            self.people.spawn(async move {
                tokio::time::sleep(wait).await;
                let (name, kind) = (format!("joiner {index}"), random.kind());
                let link = Link::open(shared.address, index, kind, EVENTS, None).await;
                shared.follow(name.clone(), link.map_err(|error| format!("{name}: {error}"))?, None).await
            });
        }
        for index in 0..options.wanderers {
            let (shared, random) = (self.shared.clone(), Random::new(1_000_000 + index));
            self.people.spawn(async move { shared.wander(index, random).await });
        }
    }

    /// Waits until all who were there from the start have every event, for as long as there is any progress.
    pub async fn wait(&self, patience: Duration) {
        let mut progress = (0, Instant::now());
        while self.shared.whole.load(Ordering::Relaxed) < self.from_start && progress.1.elapsed() < patience {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let deliveries = self.shared.deliveries.load(Ordering::Relaxed);
            if deliveries != progress.0 {
                progress = (deliveries, Instant::now());
            }
        }
    }

    /// Complaints about the stuck ones that the server still serves.
    pub async fn stuck_are_cut(&mut self, options: &Options) -> Vec<String> {
        if self.stuck.is_empty() {
            return Vec::new();
        }
        tokio::time::sleep(options.stuck_for).await;
        let mut wrong = Vec::new();
        for (name, mut stream) in self.stuck.drain(..) {
            let mut sink = vec![0; 65536];
            let ended = async { while matches!(stream.read(&mut sink).await, Ok(1..)) {} };
            if tokio::time::timeout(CUT, ended).await.is_err() {
                wrong.push(format!("{name} was not cut"));
            }
        }
        wrong
    }

    /// Lets everyone go who is still following, a moment later: what comes twice has had time to come.
    pub async fn finish(self) -> Report {
        tokio::time::sleep(Duration::from_secs(2)).await;
        self.shared.stop.cancel();
        let (mut followed, mut broken) = (Vec::new(), Vec::new());
        for ended in self.people.join_all().await {
            match ended {
                Ok(one) => followed.push(one),
                Err(why) => broken.push(why),
            }
        }
        let deliveries = self.shared.deliveries.load(Ordering::Relaxed);
        let returns = self.shared.returns.load(Ordering::Relaxed);
        let delays = Arc::into_inner(self.shared).map_or_else(Delays::new, |shared| shared.delays);
        Report { followed, broken, delays, deliveries, returns }
    }
}

impl Shared {
    async fn follow(
        &self,
        name: String,
        mut link: Link,
        mut kept: Option<Vec<Event>>,
    ) -> Result<Followed, String> {
        let mut sequence = Sequence::from(number(&link.place).ok_or("an id without a number")?);
        loop {
            let next = tokio::select! {
                next = link.next() => next,
                () = self.stop.cancelled() => return Ok(Followed { name, sequence, kept }),
            };
            let event = next.map_err(|error| format!("{name} after {} events: {error}", sequence.count))?;
            self.received(&mut sequence, event);
            if let Some(kept) = &mut kept {
                kept.push(event);
            }
            if sequence.count == self.events.len() as u64 {
                self.whole.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Breaks off at random moments and comes back, over either transport, with the last id it was told.
    async fn wander(&self, index: usize, mut random: Random) -> Result<Followed, String> {
        let name = format!("wanderer {index}");
        let open = async |kind, last: Option<&str>| {
            let link = Link::open(self.address, index, kind, EVENTS, last).await;
            link.map_err(|error: io::Error| format!("wanderer {index}: {error}"))
        };
        let mut link = open(random.kind(), None).await?;
        let mut sequence = Sequence::from(number(&link.place).ok_or("an id without a number")?);
        loop {
            let until = tokio::time::sleep(random.below(Duration::from_millis(400)));
            tokio::pin!(until);
            loop {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return Ok(Followed { name, sequence, kept: None }),
                    () = &mut until => break,
                    next = link.next() => {
                        self.received(&mut sequence, next.map_err(|error| format!("{name}: {error}"))?);
                    }
                }
            }
            let place = std::mem::take(&mut link.place);
            drop(link);
            link = open(random.kind(), Some(&place)).await?;
            self.returns.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn received(&self, sequence: &mut Sequence, event: Event) {
        sequence.add(event);
        self.delays.add(self.events.delay(event));
        self.deliveries.fetch_add(1, Ordering::Relaxed);
    }
}

impl Report {
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// The log as the one saw it who kept everything.
    pub fn whole(&self) -> Option<&[Event]> {
        self.followed.iter().find_map(|one| one.kept.as_deref())
    }

    pub fn sequences(&self) -> impl Iterator<Item = (&str, &Sequence)> {
        self.followed.iter().map(|one| (one.name.as_str(), &one.sequence))
    }
}

async fn open_all(options: &Options) -> Result<Vec<(usize, Kind, Link)>, Failed> {
    let places = Arc::new(Semaphore::new(OPENING));
    let mut opening = JoinSet::new();
    let kinds = std::iter::repeat_n(Kind::Socket, options.sockets)
        .chain(std::iter::repeat_n(Kind::Stream, options.streams));
    for (index, kind) in kinds.enumerate() {
        let (places, address) = (places.clone(), options.address);
        opening.spawn(async move {
            let _place = places.acquire().await;
            let link = Link::open(address, index, kind, EVENTS, None).await;
            link.map(|link| (index, kind, link)).map_err(|error| format!("{kind:?} {index}: {error}"))
        });
    }
    let mut links = Vec::with_capacity(opening.len());
    while let Some(opened) = opening.join_next().await {
        links.push(opened??);
    }
    Ok(links)
}

/// Large events: each has the user's padding many times over.
fn large() -> String {
    let fields: String = (0..45).map(|copy| format!(" f{copy}: email")).collect();
    format!("subscription {{ userCreated {{ id{fields} }} }}")
}

/// Enough chance for moments; the same in every run.
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Random {
        Random((seed as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.next() % (most.as_micros() as u64).max(1))
    }

    fn kind(&mut self) -> Kind {
        if self.next().is_multiple_of(2) { Kind::Socket } else { Kind::Stream }
    }
}
