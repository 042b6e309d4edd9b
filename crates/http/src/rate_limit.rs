//! So many requests in a period for each client, told in `RateLimit` headers, in bounded memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::errors::problem::Problem;
use trefoil_config::RateLimit;

pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Above so many clients at once, neighbours share a bucket.
const MANY: usize = 100_000;
/// How often forgotten clients are looked for, in requests.
const PRUNE_EVERY: u32 = 4096;

type Buckets = RateLimiter<IpAddr, DefaultKeyedStateStore<IpAddr>, DefaultClock, StateInformationMiddleware>;

pub struct Rate {
    buckets: Buckets,
    limit: RateLimit,
    policy: HeaderValue,
    clock: DefaultClock,
    checks: AtomicU32,
}

/// The allowance of one client, for what it asks outside of HTTP requests: an extension of every request.
#[derive(Clone)]
pub struct Meter {
    rate: Arc<Rate>,
    client: IpAddr,
}

impl Meter {
    pub fn new(rate: &Arc<Rate>, client: IpAddr) -> Meter {
        Meter { rate: rate.clone(), client }
    }

    pub fn take(&self) -> Result<(), Problem> {
        self.rate.take(self.client).1
    }
}

/// What a client has left, for the headers of its answer.
#[derive(Debug, Clone)]
pub struct Allowance {
    policy: HeaderValue,
    state: HeaderValue,
}

impl Rate {
    /// None where the limit is off, or says nothing.
    pub fn new(limit: RateLimit) -> Option<Self> {
        let requests = NonZeroU32::new(limit.requests)?;
        let quota = Quota::with_period(limit.period / limit.requests)?.allow_burst(requests);
        let policy = format!("\"default\";q={};w={}", limit.requests, seconds(limit.period));
        Some(Rate {
            buckets: RateLimiter::keyed(quota).with_middleware::<StateInformationMiddleware>(),
            limit,
            policy: HeaderValue::try_from(policy).expect("digits and ASCII signs"),
            clock: DefaultClock::default(),
            checks: AtomicU32::new(0),
        })
    }

    /// Takes one request from the client's allowance, or says when the next one will be there.
    pub fn take(&self, client: IpAddr) -> (Allowance, Result<(), Problem>) {
        self.prune();
        let key = if self.buckets.len() < MANY { bucket(client) } else { shared_bucket(client) };
        match self.buckets.check_key(&key) {
            Ok(state) => (self.allowance(state.remaining_burst_capacity()), Ok(())),
            Err(until) => {
                let wait = until.wait_time_from(self.clock.now());
                (self.allowance(0), Err(self.refusal(wait)))
            }
        }
    }

    fn refusal(&self, wait: Duration) -> Problem {
        let RateLimit { requests, period } = self.limit;
        let detail = format!("more than {requests} requests in {} s (rate-limit)", seconds(period));
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail).retry_after(wait)
    }

    fn allowance(&self, left: u32) -> Allowance {
        let spent = self.limit.requests.saturating_sub(left);
        let refill = self.limit.period.mul_f64(f64::from(spent) / f64::from(self.limit.requests));
        let state = format!("\"default\";r={left};t={}", seconds(refill));
        let state = HeaderValue::try_from(state).expect("digits and ASCII signs");
        Allowance { policy: self.policy.clone(), state }
    }

    /// Forgets every client whose allowance is full again.
    fn prune(&self) {
        if self.checks.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
        }
    }
}

impl Allowance {
    pub fn tell(self, headers: &mut HeaderMap) {
        headers.insert(RATE_LIMIT_POLICY, self.policy);
        headers.insert(RATE_LIMIT, self.state);
    }
}

fn seconds(span: Duration) -> u128 {
    span.as_millis().div_ceil(1000)
}

/// One household or one machine has a whole /64 of IPv6 addresses.
fn bucket(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !(u128::MAX >> 64))),
    }
}

fn shared_bucket(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & 0xffff_0000)),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !(u128::MAX >> 32))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(requests: u32, period: Duration) -> Rate {
        Rate::new(RateLimit { requests, period }).expect("a limit")
    }

    #[test]
    fn neighbours_in_one_ipv6_network_share_an_allowance_and_others_do_not() {
        let rate = rate(1, Duration::from_secs(60));
        let take = |client: &str| rate.take(client.parse().expect("address")).1.is_ok();
        assert!(take("2001:db8::1"));
        assert!(!take("2001:db8::2"));
        assert!(take("2001:db8:0:1::1"));
        assert!(take("192.0.2.1"));
        assert!(take("192.0.2.2"));
        assert!(!take("192.0.2.1"));
    }

    #[test]
    fn clients_that_are_done_are_forgotten() {
        let rate = rate(1000, Duration::from_millis(1));
        for n in 0..20 * PRUNE_EVERY {
            let _ = rate.take(IpAddr::V4(Ipv4Addr::from_bits(n)));
        }
        assert!(rate.buckets.len() <= PRUNE_EVERY as usize * 2, "{}", rate.buckets.len());
    }

    #[test]
    fn the_headers_say_what_is_left_and_when_it_is_whole_again() {
        let rate = rate(4, Duration::from_secs(60));
        let mut headers = HeaderMap::new();
        rate.take(IpAddr::V4(Ipv4Addr::LOCALHOST)).0.tell(&mut headers);
        assert_eq!(headers[RATE_LIMIT_POLICY], "\"default\";q=4;w=60");
        assert_eq!(headers[RATE_LIMIT], "\"default\";r=3;t=15");
    }
}
