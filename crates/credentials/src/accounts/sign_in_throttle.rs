//! [`SignInThrottle`]: how often passwords and links may be guessed.

use std::convert::Infallible;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quick_cache::sync::Cache;

use crate::digest::sha256;

const MINUTE: u64 = 60;
const QUARTER: u64 = 15 * MINUTE;
const HOUR: u64 = 60 * MINUTE;

/// For one login from one network in a quarter of an hour; then one a minute.
const MAX_OF_PAIR: usize = 5;
/// From one network in a quarter of an hour.
const MAX_OF_NETWORK: usize = 50;
/// For one login in an hour; then only where it signs in from.
const MAX_OF_LOGIN: usize = 100;

/// The most logins and networks that are remembered.
const MAX_REMEMBERED: usize = 50_000;

/// What was tried lately, on this node. Times are seconds of a clock that never jumps.
pub struct SignInThrottle {
    pairs: Tries<([u8; 32], ClientNetwork)>,
    networks: Tries<ClientNetwork>,
    logins: Tries<[u8; 32]>,
    sign_ups: Tries<ClientNetwork>,
}

/// The network that limits count: an IPv4 address, or the /64 of an IPv6 address, which one client has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientNetwork(pub Option<IpAddr>);

/// Whether a try may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryVerdict {
    Allowed,
    /// Only if the account signed in from this network before: others try its login too often.
    OnlyKnownNetworks,
    Refused {
        retry_after: Duration,
    },
}

/// The times of the last tries of each key, the earliest first.
struct Tries<K>(Cache<K, Arc<Mutex<Vec<u64>>>>);

impl<K: Hash + Eq + Clone> Tries<K> {
    fn new() -> Tries<K> {
        Tries(Cache::new(MAX_REMEMBERED))
    }

    fn of(&self, key: &K) -> Arc<Mutex<Vec<u64>>> {
        let made = self.0.get_or_insert_with(key, || Ok::<_, Infallible>(Arc::default()));
        match made {
            Ok(times) => times,
            Err(never) => match never {},
        }
    }

    fn forget_last(&self, key: &K, time: u64) {
        if let Some(times) = self.0.get(key) {
            let mut times = times.lock();
            if let Some(position) = times.iter().rposition(|known| *known == time) {
                times.remove(position);
            }
        }
    }
}

impl ClientNetwork {
    pub fn of(address: Option<IpAddr>) -> ClientNetwork {
        ClientNetwork(address.map(|address| match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            IpAddr::V4(address) => IpAddr::V4(address),
        }))
    }

    /// As it is kept with the account.
    pub fn text(self) -> String {
        self.0.map(|address| address.to_string()).unwrap_or_default()
    }
}

impl Default for SignInThrottle {
    fn default() -> SignInThrottle {
        SignInThrottle {
            pairs: Tries::new(),
            networks: Tries::new(),
            logins: Tries::new(),
            sign_ups: Tries::new(),
        }
    }
}

impl SignInThrottle {
    /// Counts a try for a login before it is decided, so that many at once count, too. [`SignInThrottle::forgive`] takes
    /// back one that was right.
    pub fn count_try(&self, login: &str, network: ClientNetwork, now: u64) -> TryVerdict {
        let login = login_key(login);
        let of_pair = self.pairs.of(&(login, network));
        let mut of_pair = of_pair.lock();
        of_pair.retain(|time| time + QUARTER > now);
        if of_pair.len() >= MAX_OF_PAIR
            && let Some(wait) =
                of_pair.last().map(|last| (last + MINUTE).saturating_sub(now)).filter(|wait| *wait > 0)
        {
            return refused(wait);
        }
        if let Some(refused) = count_network(&self.networks, network, now) {
            return refused;
        }
        of_pair.push(now);
        drop(of_pair);
        let of_login = self.logins.of(&login);
        let mut of_login = of_login.lock();
        of_login.retain(|time| time + HOUR > now);
        if of_login.len() >= MAX_OF_LOGIN {
            return TryVerdict::OnlyKnownNetworks;
        }
        of_login.push(now);
        TryVerdict::Allowed
    }

    /// The same for a link.
    pub fn count_link(&self, network: ClientNetwork, now: u64) -> TryVerdict {
        count_network(&self.networks, network, now).unwrap_or(TryVerdict::Allowed)
    }

    /// Counts a new account. They are no guesses, and do not keep anybody from signing in.
    pub fn count_sign_up(&self, network: ClientNetwork, now: u64) -> TryVerdict {
        count_network(&self.sign_ups, network, now).unwrap_or(TryVerdict::Allowed)
    }

    /// Takes back a try that was right, or that was not decided. `tried` is how it was counted.
    pub fn forgive(&self, login: &str, network: ClientNetwork, time: u64, tried: TryVerdict) {
        let login = login_key(login);
        self.pairs.forget_last(&(login, network), time);
        self.networks.forget_last(&network, time);
        // From a known network it was not counted for the login: that would be the try of somebody else.
        if tried == TryVerdict::Allowed {
            self.logins.forget_last(&login, time);
        }
    }

    pub fn forgive_link(&self, network: ClientNetwork, time: u64) {
        self.networks.forget_last(&network, time);
    }
}

fn count_network(tries: &Tries<ClientNetwork>, network: ClientNetwork, now: u64) -> Option<TryVerdict> {
    let times = tries.of(&network);
    let mut times = times.lock();
    times.retain(|time| time + QUARTER > now);
    if times.len() >= MAX_OF_NETWORK {
        let first = times.first().copied().unwrap_or(now);
        return Some(refused((first + QUARTER).saturating_sub(now).max(1)));
    }
    times.push(now);
    None
}

/// No login is in memory for longer than its request.
fn login_key(login: &str) -> [u8; 32] {
    sha256(&login.to_ascii_lowercase())
}

fn refused(seconds: u64) -> TryVerdict {
    TryVerdict::Refused { retry_after: Duration::from_secs(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> ClientNetwork {
        ClientNetwork::of(text.parse().ok())
    }

    #[test]
    fn a_login_is_tried_five_times_and_then_once_a_minute() {
        let throttle = SignInThrottle::default();
        let (here, there) = (network("192.0.2.1"), network("192.0.2.2"));
        for second in 0..5 {
            assert_eq!(throttle.count_try("ada", here, second), TryVerdict::Allowed);
        }
        assert_eq!(throttle.count_try("ADA", here, 5), refused(59));
        assert_eq!(throttle.count_try("ada", here, 63), refused(1));
        // Who lives elsewhere is not locked out, nor are others here.
        assert_eq!(throttle.count_try("ada", there, 5), TryVerdict::Allowed);
        assert_eq!(throttle.count_try("bob", here, 5), TryVerdict::Allowed);
        assert_eq!(throttle.count_try("ada", here, 64), TryVerdict::Allowed);
        assert_eq!(throttle.count_try("ada", here, 65), refused(59));
        assert_eq!(throttle.count_try("ada", here, 64 + QUARTER), TryVerdict::Allowed);
        assert_eq!(throttle.count_try("ada", here, 65 + QUARTER), TryVerdict::Allowed);
    }

    #[test]
    fn right_passwords_count_for_nothing() {
        let throttle = SignInThrottle::default();
        let here = network("192.0.2.1");
        for second in 0..500 {
            assert_eq!(throttle.count_try("ada", here, second), TryVerdict::Allowed);
            throttle.forgive("ada", here, second, TryVerdict::Allowed);
        }
    }

    #[test]
    fn a_network_has_fifty_tries() {
        let throttle = SignInThrottle::default();
        for number in 0..50u64 {
            // All of one /64.
            let here = network(&format!("2001:db8::{number:x}"));
            let verdict = match number % 2 {
                0 => throttle.count_try(&format!("login{number}"), here, number),
                _ => throttle.count_link(here, number),
            };
            assert_eq!(verdict, TryVerdict::Allowed);
        }
        let here = network("2001:db8::ffff");
        assert_eq!(throttle.count_try("other", here, 60), refused(QUARTER - 60));
        assert_eq!(throttle.count_link(here, 60), refused(QUARTER - 60));
        assert_eq!(throttle.count_try("other", network("2001:db8:0:1::"), 60), TryVerdict::Allowed);
        assert_eq!(throttle.count_link(here, QUARTER), TryVerdict::Allowed);
    }

    #[test]
    fn a_login_that_many_networks_try_is_for_known_ones() {
        let throttle = SignInThrottle::default();
        let from = |number: u64| network(&format!("10.0.{}.{}", number / 250, number % 250));
        for number in 0..100 {
            assert_eq!(throttle.count_try("ada", from(number), number), TryVerdict::Allowed);
        }
        let known = throttle.count_try("ada", from(200), 99);
        assert_eq!(known, TryVerdict::OnlyKnownNetworks);
        // One who is right there takes back nobody else's try of the same second.
        throttle.forgive("ada", from(200), 99, known);
        assert_eq!(throttle.count_try("ada", from(202), 100), TryVerdict::OnlyKnownNetworks);
        assert_eq!(throttle.count_try("bob", from(200), 100), TryVerdict::Allowed);
        assert_eq!(throttle.count_try("ada", from(201), HOUR), TryVerdict::Allowed);
    }
}
