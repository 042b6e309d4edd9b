//! The rate limit per client with its `RateLimit` headers, in bounded memory.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, StatusCode};
use xxhash_rust::xxh3::xxh3_128;

use trefoil_config::RateLimit;
use trefoil_engine::ActorIdentity;

use crate::client_info::ClientInfo;
use crate::errors::problem::Problem;

pub const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
pub const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// With more clients than this at once, neighbouring addresses share a bucket.
const MAX_SEPARATE_CLIENTS: usize = 100_000;
/// Number of requests between removals of idle clients.
const PRUNE_EVERY: u32 = 4096;

type RateBuckets =
    RateLimiter<RateClient, DefaultKeyedStateStore<RateClient>, DefaultClock, StateInformationMiddleware>;

/// Whose requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateClient {
    /// Who showed no credential.
    Address(IpAddr),
    /// A hash of the actor's name, from wherever they ask.
    Actor(u128),
}

impl RateClient {
    pub fn of(client: &ClientInfo) -> Option<RateClient> {
        match &client.identity {
            Some(identity) => Some(RateClient::of_actor(identity)),
            None => client.address.map(RateClient::Address),
        }
    }

    fn of_actor(identity: &ActorIdentity) -> RateClient {
        RateClient::Actor(xxh3_128(identity.name.as_bytes()))
    }
}

pub struct ClientRateLimiter {
    buckets: RateBuckets,
    limit: RateLimit,
    policy: HeaderValue,
    clock: DefaultClock,
    check_count: AtomicU32,
}

/// The allowance of one client for messages inside a WebSocket; an extension of every request.
#[derive(Clone)]
pub struct ClientMeter {
    limiter: Arc<ClientRateLimiter>,
    client: RateClient,
}

impl ClientMeter {
    pub fn new(limiter: &Arc<ClientRateLimiter>, client: RateClient) -> ClientMeter {
        ClientMeter { limiter: limiter.clone(), client }
    }

    /// The same for an actor whose credential came later than the request.
    pub fn for_actor(&self, identity: &ActorIdentity) -> ClientMeter {
        ClientMeter { limiter: self.limiter.clone(), client: RateClient::of_actor(identity) }
    }

    pub fn take_request(&self) -> Result<(), Problem> {
        self.limiter.take_request(self.client).1
    }
}

/// The remaining allowance of a client, as response headers.
#[derive(Debug, Clone)]
pub struct RateAllowance {
    policy: HeaderValue,
    state: HeaderValue,
}

/// What the rate limit says of one request.
pub struct RequestCount {
    allowance: Option<RateAllowance>,
    refused: Option<Problem>,
}

impl RequestCount {
    /// Counts a request for its actor or its address; without a limiter all may pass.
    pub fn of(
        limiter: Option<&Arc<ClientRateLimiter>>,
        request: &mut Request,
        client: &ClientInfo,
    ) -> RequestCount {
        let client = limiter.and_then(|limiter| Some((limiter, RateClient::of(client)?)));
        if let Some((limiter, client)) = client {
            request.extensions_mut().insert(ClientMeter::new(limiter, client));
        }
        RequestCount::taken(client)
    }

    /// Counts one for its address, whatever credential it shows.
    pub fn of_address(limiter: Option<&Arc<ClientRateLimiter>>, client: &ClientInfo) -> RequestCount {
        RequestCount::taken(limiter.zip(client.address.map(RateClient::Address)))
    }

    fn taken(client: Option<(&Arc<ClientRateLimiter>, RateClient)>) -> RequestCount {
        let (allowance, verdict) = client.map(|(limiter, client)| limiter.take_request(client)).unzip();
        RequestCount { allowance, refused: verdict.and_then(Result::err) }
    }

    /// The answer to a request that is one too many.
    pub fn refusal(&self) -> Option<Response> {
        self.refused.clone().map(IntoResponse::into_response)
    }

    /// The answer with headers that tell what is left.
    pub fn told_in(self, mut response: Response) -> Response {
        if let Some(allowance) = self.allowance {
            allowance.write_headers(response.headers_mut());
        }
        response
    }
}

impl ClientRateLimiter {
    /// `None` if the limit is off or zero.
    pub fn new(limit: RateLimit) -> Option<Self> {
        let requests = NonZeroU32::new(limit.requests)?;
        let quota = Quota::with_period(limit.period / limit.requests)?.allow_burst(requests);
        let policy = format!("\"default\";q={};w={}", limit.requests, whole_seconds(limit.period));
        Some(ClientRateLimiter {
            buckets: RateLimiter::keyed(quota).with_middleware::<StateInformationMiddleware>(),
            limit,
            policy: HeaderValue::try_from(policy).expect("digits and ASCII signs"),
            clock: DefaultClock::default(),
            check_count: AtomicU32::new(0),
        })
    }

    /// Takes one request from the client's allowance; the error says when to retry.
    pub fn take_request(&self, client: RateClient) -> (RateAllowance, Result<(), Problem>) {
        self.prune();
        let key = match client {
            RateClient::Actor(_) => client,
            RateClient::Address(address) if self.buckets.len() < MAX_SEPARATE_CLIENTS => {
                RateClient::Address(client_bucket(address))
            }
            RateClient::Address(address) => RateClient::Address(shared_bucket(address)),
        };
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
        let detail = format!("more than {requests} requests in {} s (rate-limit)", whole_seconds(period));
        Problem::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", detail).with_retry_after(wait)
    }

    fn allowance(&self, remaining: u32) -> RateAllowance {
        let spent = self.limit.requests.saturating_sub(remaining);
        let refill = self.limit.period.mul_f64(f64::from(spent) / f64::from(self.limit.requests));
        let state = format!("\"default\";r={remaining};t={}", whole_seconds(refill));
        let state = HeaderValue::try_from(state).expect("digits and ASCII signs");
        RateAllowance { policy: self.policy.clone(), state }
    }

    /// Forgets every client whose allowance is full again.
    fn prune(&self) {
        if self.check_count.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            self.buckets.retain_recent();
            self.buckets.shrink_to_fit();
        }
    }
}

impl RateAllowance {
    pub fn write_headers(self, headers: &mut HeaderMap) {
        headers.insert(RATE_LIMIT_POLICY, self.policy);
        headers.insert(RATE_LIMIT, self.state);
    }
}

fn whole_seconds(span: Duration) -> u128 {
    span.as_millis().div_ceil(1000)
}

/// A household or machine usually has a whole /64 of IPv6 addresses.
fn client_bucket(client: IpAddr) -> IpAddr {
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
    use trefoil_model::Value;

    use super::*;

    fn ipv4(address: Ipv4Addr) -> RateClient {
        RateClient::Address(IpAddr::V4(address))
    }

    #[test]
    fn actors_are_counted_wherever_they_are() {
        let rate = rate(1, Duration::from_secs(60));
        let take = |name: Option<&str>, address: [u8; 4]| {
            let identity = name.map(|name| {
                Arc::new(ActorIdentity {
                    name: name.to_owned(),
                    roles: Vec::new(),
                    account: None,
                    claims: Value::Null,
                    expires: None,
                })
            });
            let mut client = ClientInfo::default();
            (client.address, client.identity) = (Some(IpAddr::from(address)), identity);
            rate.take_request(RateClient::of(&client).expect("a client")).1.is_ok()
        };
        assert!(take(Some("key:ci"), [192, 0, 2, 1]));
        assert!(!take(Some("key:ci"), [192, 0, 2, 2]));
        assert!(take(Some("key:cd"), [192, 0, 2, 1]));
        assert!(take(None, [192, 0, 2, 1]));
        assert!(!take(None, [192, 0, 2, 1]));
    }

    fn rate(requests: u32, period: Duration) -> ClientRateLimiter {
        ClientRateLimiter::new(RateLimit { requests, period }).expect("a limit")
    }

    #[test]
    fn ipv6_clients_share_allowance_per_64() {
        let rate = rate(1, Duration::from_secs(60));
        let take =
            |client: &str| rate.take_request(RateClient::Address(client.parse().expect("address"))).1.is_ok();
        assert!(take("2001:db8::1"));
        assert!(!take("2001:db8::2"));
        assert!(take("2001:db8:0:1::1"));
        assert!(take("192.0.2.1"));
        assert!(take("192.0.2.2"));
        assert!(!take("192.0.2.1"));
    }

    #[test]
    fn idle_clients_are_forgotten() {
        let rate = rate(1000, Duration::from_millis(1));
        for n in 0..20 * PRUNE_EVERY {
            let _ = rate.take_request(ipv4(Ipv4Addr::from_bits(n)));
        }
        assert!(rate.buckets.len() <= PRUNE_EVERY as usize * 2, "{}", rate.buckets.len());
    }

    #[test]
    fn headers_show_remaining_and_reset() {
        let rate = rate(4, Duration::from_secs(60));
        let mut headers = HeaderMap::new();
        rate.take_request(ipv4(Ipv4Addr::LOCALHOST)).0.write_headers(&mut headers);
        assert_eq!(headers[RATE_LIMIT_POLICY], "\"default\";q=4;w=60");
        assert_eq!(headers[RATE_LIMIT], "\"default\";r=3;t=15");
    }
}
