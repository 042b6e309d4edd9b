//! The networks that an account signs in from, where it may go on trying while others guess its password.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use trefoil_engine::{KnownNetwork, StoredPassword};

use crate::accounts::sign_in_throttle::ClientNetwork;

/// The most networks that are kept of an account.
const MAX_NETWORKS: usize = 20;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// How long a network is known after the account signed in from it.
const NETWORK_KNOWN: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What an unknown network is told to wait while others try a login too often.
pub const UNKNOWN_NETWORK_RETRY: Duration = Duration::from_secs(60);

pub fn is_known(stored: &StoredPassword, network: ClientNetwork) -> bool {
    let since = Timestamp::now().checked_sub(NETWORK_KNOWN).unwrap_or(Timestamp::MIN);
    stored.networks.iter().any(|known| known.network == network.text() && known.last > since)
}

/// The networks with one that was used now, without those that are not known any more; `None` if it was known today already.
pub fn with_network(
    known: &[KnownNetwork],
    network: ClientNetwork,
    now: Timestamp,
) -> Option<Vec<KnownNetwork>> {
    let network = network.text();
    let ago = |time: SignedDuration| now.checked_sub(time).unwrap_or(Timestamp::MIN);
    let (today, since) = (ago(DAY), ago(NETWORK_KNOWN));
    if network.is_empty() || known.iter().any(|known| known.network == network && known.last > today) {
        return None;
    }
    let others = known.iter().filter(|known| known.network != network && known.last > since).cloned();
    let mut networks: Vec<KnownNetwork> = others.take(MAX_NETWORKS - 1).collect();
    networks.insert(0, KnownNetwork { network, last: now });
    Some(networks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_known_once_and_the_last_ones() {
        let at = |day: i64| Timestamp::from_second(1_800_000_000 + day * 86_400).unwrap();
        let network = |text: &str| ClientNetwork::of(text.parse().ok());
        let first = with_network(&[], network("192.0.2.1"), at(0)).expect("new");
        assert_eq!(with_network(&first, network("192.0.2.1"), at(0)), None);
        let again = with_network(&first, network("192.0.2.1"), at(2)).expect("another day");
        assert_eq!(again, [KnownNetwork { network: "192.0.2.1".to_owned(), last: at(2) }]);
        let many = (0..30).fold(again, |known, number| {
            with_network(&known, network(&format!("198.51.100.{number}")), at(3)).expect("new")
        });
        assert_eq!((many.len(), many[0].network.as_str()), (MAX_NETWORKS, "198.51.100.29"));
        // Where nobody signed in from for a month is forgotten.
        let later = with_network(&many, network("203.0.113.1"), at(33)).expect("new");
        assert_eq!(later, [KnownNetwork { network: "203.0.113.1".to_owned(), last: at(33) }]);
    }
}
