//! [`FailedSignIns`]: how many failed, by address, until the audit notes it. Who guesses does not make it grow.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

use trefoil_engine::{AuditAction, AuditAuthor, AuditNote, AuditOrigin};

/// The most addresses that are told apart.
const MAX_ADDRESSES: usize = 1_000;

/// Sign-ins that failed since they were last taken.
#[derive(Debug, Default)]
pub struct FailedSignIns(Mutex<HashMap<Option<IpAddr>, i64>>);

impl FailedSignIns {
    pub fn count(&self, address: Option<IpAddr>) {
        let mut counts = self.0.lock();
        let address = address.map(|address| address.to_canonical());
        let is_told = counts.contains_key(&address) || counts.len() < MAX_ADDRESSES;
        *counts.entry(address.filter(|_| is_told)).or_default() += 1;
    }

    /// An entry for each address, without the logins.
    pub fn take_notes(&self) -> Vec<AuditNote> {
        let counts = std::mem::take(&mut *self.0.lock());
        let note = |(address, count)| {
            let origin = AuditOrigin { author: AuditAuthor::Anonymous, address, request: None };
            AuditNote { count: Some(count), ..AuditNote::new(AuditAction::FailedSignIns, &origin) }
        };
        counts.into_iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn failures_are_counted_by_address_up_to_a_limit() {
        let failed = FailedSignIns::default();
        let address = |number: u32| Some(IpAddr::V4(Ipv4Addr::from(number)));
        failed.count("::ffff:0.0.0.1".parse().ok());
        (1..=MAX_ADDRESSES as u32 + 5).for_each(|number| failed.count(address(number)));
        let notes = failed.take_notes();
        let count = |wanted: Option<&str>| {
            notes.iter().find(|note| note.address.as_deref() == wanted).and_then(|note| note.count)
        };
        assert_eq!((notes.len(), count(Some("0.0.0.1")), count(None)), (MAX_ADDRESSES + 1, Some(2), Some(5)));
        assert!(notes.iter().all(|note| note.actor.is_none()));
        assert_eq!(failed.take_notes(), []);
    }
}
