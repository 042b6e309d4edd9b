//! Times as people write and read them: in a time zone, without its offset.

use jiff::tz::Offset;
use jiff::{SignedDuration, civil};

use crate::values::date_times;
use crate::values::periods::ZoneOffsets;

/// What a local time stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LocalTime {
    /// One time, as APIs write it.
    Exact(String),
    /// Clocks are set forward over it, from one local time to the other.
    Missing { from: String, to: String },
    /// Clocks are set back over it: it is twice, and so it is written with offsets.
    Double { first: String, second: String },
}

/// A time in a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTime {
    /// `2026-10-25T02:30:00.5`
    pub local: String,
    /// `+01:00`
    pub offset: String,
    /// `CET`
    pub zone: String,
    /// The local time is one of two.
    pub is_double: bool,
}

impl LocalTime {
    /// Why this is no time that can be stored, as a sentence about `subject`; `None` if it is one.
    pub fn mistake(&self, subject: &str) -> Option<String> {
        match self {
            LocalTime::Exact(_) => None,
            LocalTime::Missing { from, to } => Some(format!(
                "{subject} does not exist: clocks are set forward from {from} to {to} on that day"
            )),
            LocalTime::Double { first, second } => Some(format!(
                "{subject} is there twice, as clocks are set back on that day: write {first} or {second}"
            )),
        }
    }
}

impl ZoneOffsets {
    /// What a text such as `2026-10-25T02:30` stands for; `None` if it is no local time.
    pub fn read_local(&self, text: &str) -> Option<LocalTime> {
        let local: civil::DateTime = text.parse().ok()?;
        let exact = self.exact_times(local);
        let with_offset = |utc: civil::DateTime| format!("{text}{}", offset_text(utc, local));
        Some(match exact.as_slice() {
            [first, second, ..] => {
                LocalTime::Double { first: with_offset(*first), second: with_offset(*second) }
            }
            [utc] => LocalTime::Exact(format!("{utc}Z")),
            [] => {
                let change = self.utc_time(local)?;
                let before = change.checked_sub(SignedDuration::from_secs(1)).ok()?;
                let from = self.local_time(before).checked_add(SignedDuration::from_secs(1)).ok()?;
                LocalTime::Missing { from: clock(from), to: clock(self.local_time(change)) }
            }
        })
    }

    /// A time as APIs write it, `2026-10-25T00:30:00Z`, in this zone.
    pub fn show(&self, text: &str) -> Option<ShownTime> {
        let utc: civil::DateTime = text.strip_suffix('Z')?.parse().ok()?;
        let local = self.local_time(utc);
        Some(ShownTime {
            local: local.to_string(),
            offset: offset_text(utc, local),
            zone: self.abbreviation(utc).to_owned(),
            is_double: self.exact_times(local).len() > 1,
        })
    }

    /// The first time of a local day, or the last microsecond, as APIs write it; `None` if the text is no day.
    pub fn day_bound(&self, day: &str, is_end: bool) -> Option<String> {
        let day = date_times::parse_date(day)?;
        let start = |day: civil::Date| {
            let midnight = day.to_datetime(civil::Time::midnight());
            self.exact_times(midnight).first().copied().or_else(|| self.utc_time(midnight))
        };
        let bound = match is_end {
            true => start(day.tomorrow().ok()?)?.checked_sub(SignedDuration::from_micros(1)).ok()?,
            false => start(day)?,
        };
        Some(format!("{bound}Z"))
    }
}

/// `+02:00`, the local time less the one in UTC.
fn offset_text(utc: civil::DateTime, local: civil::DateTime) -> String {
    let second = |time| Offset::UTC.to_timestamp(time).map(|time| time.as_second()).unwrap_or_default();
    let minutes = (second(local) - second(utc)) / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
}

fn clock(time: civil::DateTime) -> String {
    time.strftime("%H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_are_missing_or_double_where_clocks_change() {
        let zone = ZoneOffsets::load("Europe/Berlin").expect("a zone");
        let exact = |text: &str| LocalTime::Exact(text.to_owned());
        for (text, expected) in [
            ("2026-07-01T09:00", exact("2026-07-01T07:00:00Z")),
            ("2026-11-20 09:00:30.25", exact("2026-11-20T08:00:30.25Z")),
            ("2026-03-29T01:59", exact("2026-03-29T00:59:00Z")),
            ("2026-03-29T03:00", exact("2026-03-29T01:00:00Z")),
            ("2026-03-29T02:30", LocalTime::Missing { from: "02:00".into(), to: "03:00".into() }),
            (
                "2026-10-25T02:30",
                LocalTime::Double {
                    first: "2026-10-25T02:30+02:00".into(),
                    second: "2026-10-25T02:30+01:00".into(),
                },
            ),
        ] {
            assert_eq!(zone.read_local(text), Some(expected), "{text}");
        }
        assert_eq!(zone.read_local("tomorrow"), None);
        assert_eq!(ZoneOffsets::utc().read_local("2026-03-29T02:30"), Some(exact("2026-03-29T02:30:00Z")));
    }

    #[test]
    fn times_are_shown_with_their_zone() {
        let zone = ZoneOffsets::load("Europe/Berlin").expect("a zone");
        let shown = |text: &str| {
            let ShownTime { local, offset, zone, is_double } = zone.show(text).expect("a time");
            format!("{local} {offset} {zone} {is_double}")
        };
        assert_eq!(shown("2026-07-01T07:00:00Z"), "2026-07-01T09:00:00 +02:00 CEST false");
        assert_eq!(shown("2026-11-20T08:00:00.5Z"), "2026-11-20T09:00:00.5 +01:00 CET false");
        assert_eq!(shown("2026-10-25T00:30:00Z"), "2026-10-25T02:30:00 +02:00 CEST true");
        assert_eq!(shown("2026-10-25T01:30:00Z"), "2026-10-25T02:30:00 +01:00 CET true");
        assert_eq!(zone.show("2026-10-25"), None);
        let bounds = |zone: &ZoneOffsets, day: &str| {
            [false, true].map(|is_end| zone.day_bound(day, is_end).unwrap_or_default())
        };
        assert_eq!(bounds(&zone, "2026-10-25"), ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59.999999Z"]);
        assert_eq!(
            bounds(&ZoneOffsets::utc(), "2026-10-25"),
            ["2026-10-25T00:00:00Z", "2026-10-25T23:59:59.999999Z"]
        );
        assert_eq!(bounds(&zone, "2026-02-30"), ["", ""]);
        let utc = ZoneOffsets::utc().show("2026-07-01T07:00:00Z").expect("a time");
        assert_eq!((utc.zone.as_str(), utc.is_double), ("UTC", false));
    }
}
