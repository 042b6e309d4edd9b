//! [`FailedSignIns`]: how many failed, by address, until the audit notes it. Who guesses does not make it grow.

use std::collections::HashMap;
use std::net::IpAddr;

use parking_lot::Mutex;

use trefoil_engine::{AuditAction, AuditAuthor, AuditNote, AuditOrigin};

/// The most addresses that are told apart.
const MAX_ADDRESSES: usize = 1_000;

/// Sign-ins that failed since they were last taken.
#[derive(Debug, Default)]
pub struct FailedSignIns(Mutex<FailureCounts>);

/// How many failed, by address.
#[derive(Debug, Default)]
pub struct FailureCounts(HashMap<Option<IpAddr>, i64>);

impl FailedSignIns {
    pub fn count(&self, address: Option<IpAddr>) {
        self.0.lock().add(address.map(|address| address.to_canonical()), 1);
    }

    pub fn take(&self) -> FailureCounts {
        std::mem::take(&mut *self.0.lock())
    }

    /// Adds what was taken and could not be noted.
    pub fn put_back(&self, failures: FailureCounts) {
        let mut counts = self.0.lock();
        failures.0.into_iter().for_each(|(address, count)| counts.add(address, count));
    }
}

impl FailureCounts {
    fn add(&mut self, address: Option<IpAddr>, count: i64) {
        // Those that are not told apart are none of them.
        let limit = MAX_ADDRESSES + usize::from(self.0.contains_key(&None));
        let is_told = self.0.contains_key(&address) || self.0.len() < limit;
        *self.0.entry(address.filter(|_| is_told)).or_default() += count;
    }

    /// An entry for each address, without the logins.
    pub fn notes(&self) -> Vec<AuditNote> {
        let note = |(address, count): (&Option<IpAddr>, &i64)| {
            let origin = AuditOrigin { author: AuditAuthor::Anonymous, address: *address, request: None };
            AuditNote { count: Some(*count), ..AuditNote::new(AuditAction::FailedSignIns, &origin) }
        };
        self.0.iter().map(note).collect()
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
        let taken = failed.take();
        let notes = taken.notes();
        let count = |wanted: Option<&str>| {
            notes.iter().find(|note| note.address.as_deref() == wanted).and_then(|note| note.count)
        };
        assert_eq!((notes.len(), count(Some("0.0.0.1")), count(None)), (MAX_ADDRESSES + 1, Some(2), Some(5)));
        assert!(notes.iter().all(|note| note.actor.is_none()));
        assert_eq!(failed.take().notes(), []);
        // What could not be noted is there the next time, with what failed meanwhile.
        failed.count(address(1));
        failed.put_back(taken);
        let again = failed.take().notes();
        let first = again.iter().find(|note| note.address.as_deref() == Some("0.0.0.1"));
        assert_eq!((again.len(), first.and_then(|note| note.count)), (MAX_ADDRESSES + 1, Some(3)));
    }
}
