//! Event ids: `3f9a1c07-42` is change 42 of the epoch `3f9a1c07`.

use trefoil_model::error::{Error, Result};

use crate::changes::ChangeLog;

impl ChangeLog {
    /// The event id of a change number.
    pub fn event_id(&self, number: i64) -> Result<String> {
        let containing = self.epochs.iter().rev().find(|epoch| epoch.after < number);
        let epoch = containing.or(self.epochs.first());
        let epoch = epoch.ok_or_else(|| Error::internal("the change log has no epoch"))?;
        Ok(format!("{}-{number}", epoch.tag))
    }

    /// The change number of an event id, if the changes after it are still kept.
    pub fn number_of_event(&self, event_id: &str) -> Result<i64> {
        let (tag, number) =
            split_event_id(event_id).ok_or_else(|| unknown_event_id(event_id, "is not a valid event id"))?;
        let position = self.epochs.iter().position(|epoch| epoch.tag == tag);
        let position = position.ok_or_else(|| unknown_event_id(event_id, "is from another store"))?;
        let end = self.epochs.get(position + 1).map_or(self.last_number, |next| next.after);
        let begin = if position == 0 { 0 } else { self.epochs[position].after };
        if number > end || number < begin {
            return Err(unknown_event_id(
                event_id,
                "does not exist; the store may have been restored from an older backup",
            ));
        }
        if number < self.pruned_until { Err(self.expired_error(event_id)) } else { Ok(number) }
    }

    /// The error for an event id whose following changes are no longer kept.
    pub fn expired_error(&self, event_id: &str) -> Error {
        let message = format!(
            "changes after the event id `{event_id}` are no longer available (settings keep-changes and keep-changes-for): read the current state and subscribe without an id"
        );
        Error::EventId { code: "EVENT_ID_EXPIRED", message }
    }
}

fn unknown_event_id(event_id: &str, reason: &str) -> Error {
    // Bounds the length of client input in the message.
    let shown: String = event_id.chars().take(64).collect();
    Error::EventId { code: "EVENT_ID_UNKNOWN", message: format!("the event id `{shown}` {reason}") }
}

/// Splits an event id in exactly the form of [`ChangeLog::event_id`].
fn split_event_id(event_id: &str) -> Option<(&str, i64)> {
    let (tag, digits) = event_id.rsplit_once('-')?;
    let number: i64 = digits.parse().ok()?;
    (number.to_string() == digits).then_some((tag, number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::LogEpoch;

    fn log() -> ChangeLog {
        let epoch = |tag: &str, after| LogEpoch { tag: tag.to_owned(), after };
        ChangeLog {
            epochs: vec![epoch("aaaaaaaa", 0), epoch("bbbbbbbb", 100)],
            pruned_until: 40,
            last_number: 130,
        }
    }

    #[test]
    fn event_ids_round_trip() {
        for number in 40..=130 {
            let name = log().event_id(number).expect("a name");
            assert_eq!(log().number_of_event(&name).ok(), Some(number), "{name}");
            assert_eq!(name.starts_with("aaaaaaaa"), number <= 100);
        }
        let empty = ChangeLog { epochs: log().epochs[..1].to_vec(), ..ChangeLog::default() };
        assert_eq!(empty.number_of_event(&empty.event_id(0).expect("a name")).ok(), Some(0));
    }

    #[test]
    fn invalid_event_ids_have_error_codes() {
        let code = |name: &str| log().number_of_event(name).err().map(|error| error.code().to_owned());
        for name in ["aaaaaaaa-0", "aaaaaaaa-39"] {
            assert_eq!(code(name).as_deref(), Some("EVENT_ID_EXPIRED"), "{name}");
        }
        let odd = [
            "",
            "-",
            "7",
            "aaaaaaaa",
            "aaaaaaaa-",
            "aaaaaaaa-+50",
            "aaaaaaaa-050",
            "aaaaaaaa-1e2",
            "aaaaaaaa--50",
        ];
        let beyond =
            ["aaaaaaaa-101", "bbbbbbbb-99", "bbbbbbbb-131", "cccccccc-50", "aaaaaaaa-99999999999999999999"];
        for name in odd.into_iter().chain(beyond) {
            assert_eq!(code(name).as_deref(), Some("EVENT_ID_UNKNOWN"), "{name}");
        }
        assert!(log().number_of_event(&"x".repeat(10_000)).is_err_and(|error| error.to_string().len() < 300));
        assert!(log().number_of_event("bbbbbbbb-100").is_ok(), "where the second epoch begins");
    }
}
