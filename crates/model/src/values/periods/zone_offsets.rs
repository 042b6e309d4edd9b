//! A time zone as a table of offsets, with the rules that are part of the program: the same on every store.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use jiff::tz::{Offset, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, civil};

use crate::naming::names::nearest_name;
use crate::values::date_times;

/// Summer time is known until then; later times have the last offset before.
const RULES_UNTIL: civil::Date = civil::date(2500, 1, 1);

/// Within two days of these, times are not shifted: a local time stays in the years 0001 to 9999.
const FIRST_DAY: civil::Date = civil::date(1, 1, 3);
const LAST_DAY: civil::Date = civil::date(9999, 12, 29);

/// In seconds; no zone is further from UTC.
const LARGEST_OFFSET: i64 = 2 * 24 * 60 * 60;

/// The offsets of a time zone from UTC.
#[derive(Debug, PartialEq, Eq)]
pub struct ZoneOffsets {
    name: String,
    /// The seconds since 1970 at which an offset begins, ascending; the first offset has no beginning.
    starts: Vec<i64>,
    /// In seconds, one more than `starts`.
    offsets: Vec<i32>,
    /// What people call each of the offsets: `CET`, `CEST`.
    abbreviations: Vec<String>,
}

/// Zones that were loaded. A process uses one or two.
static LOADED: Mutex<Vec<Arc<ZoneOffsets>>> = Mutex::new(Vec::new());

static UTC: LazyLock<Arc<ZoneOffsets>> = LazyLock::new(|| {
    Arc::new(ZoneOffsets {
        name: "UTC".to_owned(),
        starts: Vec::new(),
        offsets: vec![0],
        abbreviations: vec!["UTC".to_owned()],
    })
});

impl ZoneOffsets {
    /// The zone with this IANA name; the message says what is wrong with another.
    pub fn load(name: &str) -> Result<Arc<ZoneOffsets>, String> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = loaded.iter().find(|zone| zone.name == name) {
            return Ok(known.clone());
        }
        let zone = Arc::new(ZoneOffsets::read(name)?);
        loaded.push(zone.clone());
        Ok(zone)
    }

    pub fn utc() -> Arc<ZoneOffsets> {
        UTC.clone()
    }

    fn read(name: &str) -> Result<ZoneOffsets, String> {
        let database = TimeZoneDatabase::bundled();
        let known: Vec<String> = database.available().map(|name| name.to_string()).collect();
        // Other spellings of a name would be zones of their own in caches and messages.
        if !known.iter().any(|known| known == name) {
            let same = known.iter().find(|known| known.eq_ignore_ascii_case(name)).map(String::as_str);
            let near = same.or_else(|| nearest_name(name, known.iter().map(String::as_str)));
            let hint = match near {
                Some(near) => format!("; did you mean {near:?}?"),
                None => "; use an IANA name such as \"Europe/Berlin\"".to_owned(),
            };
            return Err(format!("{name:?} is not a time zone{hint}"));
        }
        let zone = database.get(name).map_err(|error| error.to_string())?;
        let [first, last, until] = [FIRST_DAY, LAST_DAY, RULES_UNTIL].map(start_of_day);
        let mut starts = vec![first.as_second()];
        let mut offsets = vec![0, zone.to_offset(first).seconds()];
        let abbreviation = |time| zone.to_offset_info(time).abbreviation().to_owned();
        let mut abbreviations = vec!["UTC".to_owned(), abbreviation(first)];
        for change in zone.following(first).take_while(|change| change.timestamp() < until) {
            if offsets.last() != Some(&change.offset().seconds()) {
                starts.push(change.timestamp().as_second());
                offsets.push(change.offset().seconds());
                abbreviations.push(abbreviation(change.timestamp()));
            }
        }
        starts.push(last.as_second());
        offsets.push(0);
        abbreviations.push("UTC".to_owned());
        if offsets.iter().all(|offset| *offset == 0) {
            (starts, offsets, abbreviations) = (Vec::new(), vec![0], vec!["UTC".to_owned()]);
        }
        Ok(ZoneOffsets { name: name.to_owned(), starts, offsets, abbreviations })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if no time is shifted.
    pub fn is_utc(&self) -> bool {
        self.starts.is_empty()
    }

    /// The times at which an offset begins, in the form of stored times.
    pub fn starts(&self) -> impl Iterator<Item = Timestamp> {
        self.starts.iter().filter_map(|start| Timestamp::from_second(*start).ok())
    }

    /// The offset before the first start, then the one that begins at each.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// The day at a time, in the form of stored dates.
    pub fn day(&self, now: Timestamp) -> String {
        self.local_time(Offset::UTC.to_datetime(now)).strftime("%Y-%m-%d").to_string()
    }

    /// What clocks show at a time, in the form of stored times without a zone.
    pub fn clock_time(&self, now: Timestamp) -> String {
        date_times::format_date_time(self.local_time(Offset::UTC.to_datetime(now)))
    }

    /// The local time at a time in UTC.
    pub fn local_time(&self, utc: civil::DateTime) -> civil::DateTime {
        let Some(position) = self.position(utc) else { return utc };
        let offset = SignedDuration::from_secs(self.offsets[position].into());
        utc.checked_add(offset).unwrap_or(utc)
    }

    /// What people call the zone at a time in UTC: `CET`, `CEST`.
    pub(super) fn abbreviation(&self, utc: civil::DateTime) -> &str {
        self.position(utc).map_or("UTC", |position| &self.abbreviations[position])
    }

    /// The position of the offset at a time in UTC.
    fn position(&self, utc: civil::DateTime) -> Option<usize> {
        let timestamp = Offset::UTC.to_timestamp(utc).ok()?;
        Some(self.starts.partition_point(|start| *start <= timestamp.as_second()))
    }

    /// The times in UTC at which the local time is exactly this: one, none if clocks are set forward over it, two if
    /// they are set back.
    pub(super) fn exact_times(&self, local: civil::DateTime) -> Vec<civil::DateTime> {
        let Ok(timestamp) = Offset::UTC.to_timestamp(local) else { return Vec::new() };
        let near = self.near(timestamp.as_second());
        let exact = self.offsets[near.start..=near.end].iter().filter_map(|offset| {
            let utc = local.checked_sub(SignedDuration::from_secs((*offset).into())).ok()?;
            (self.local_time(utc) == local).then_some(utc)
        });
        let mut exact: Vec<civil::DateTime> = exact.collect();
        exact.sort();
        exact.dedup();
        exact
    }

    /// The positions of the starts that may concern a local time.
    fn near(&self, second: i64) -> Range<usize> {
        let position = |second: i64| self.starts.partition_point(|start| *start <= second);
        position(second - LARGEST_OFFSET)..position(second + LARGEST_OFFSET)
    }

    /// The first time in UTC at which the local time is this or later. `None` if clocks are set back over it, so that
    /// earlier local times follow, and outside of the years that have offsets.
    pub fn utc_time(&self, local: civil::DateTime) -> Option<civil::DateTime> {
        let second = Offset::UTC.to_timestamp(local).ok()?.as_second();
        let exact = self.exact_times(local);
        let (first, last) = match (exact.first(), exact.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => return self.end_of_gap(&self.starts[self.near(second)], local),
        };
        let before = last.checked_sub(SignedDuration::from_micros(1)).ok()?;
        (first == last || self.local_time(before) >= local).then_some(first)
    }

    /// The time at which clocks are set forward over a local time.
    fn end_of_gap(&self, starts: &[i64], local: civil::DateTime) -> Option<civil::DateTime> {
        let starts = starts.iter().filter_map(|start| Timestamp::from_second(*start).ok());
        starts.map(|start| Offset::UTC.to_datetime(start)).find(|utc| self.local_time(*utc) > local)
    }
}

fn start_of_day(date: civil::Date) -> Timestamp {
    Offset::UTC.to_timestamp(date.to_datetime(civil::Time::midnight())).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl fmt::Display for ZoneOffsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_change_with_summer_time() {
        let local = |zone: &str, utc: &str| {
            let utc: civil::DateTime = utc.parse().expect("a time");
            ZoneOffsets::load(zone).expect("a zone").local_time(utc).to_string()
        };
        for (zone, utc, expected) in [
            ("Europe/Berlin", "2026-03-29T00:59:59", "2026-03-29T01:59:59"),
            ("Europe/Berlin", "2026-03-29T01:00:00", "2026-03-29T03:00:00"),
            ("Europe/Berlin", "2026-10-25T00:59:59", "2026-10-25T02:59:59"),
            ("Europe/Berlin", "2026-10-25T01:00:00", "2026-10-25T02:00:00"),
            ("Europe/Berlin", "2400-07-01T12:00:00", "2400-07-01T14:00:00"),
            ("Asia/Kolkata", "2026-01-01T00:00:00", "2026-01-01T05:30:00"),
            ("UTC", "2026-01-01T00:00:00", "2026-01-01T00:00:00"),
            ("Europe/Berlin", "9999-12-31T23:59:59", "9999-12-31T23:59:59"),
            ("America/New_York", "0001-01-01T00:00:00", "0001-01-01T00:00:00"),
        ] {
            assert_eq!(local(zone, utc), expected, "{zone} {utc}");
        }
    }

    #[test]
    fn unknown_zones_are_refused_with_the_nearest() {
        let message = |name: &str| ZoneOffsets::load(name).expect_err("no zone");
        assert!(message("Europe/Berln").contains("did you mean \"Europe/Berlin\"?"));
        assert!(message("europe/berlin").contains("did you mean \"Europe/Berlin\"?"));
        assert!(message("").contains("is not a time zone"));
        assert!(ZoneOffsets::load("Etc/UTC").expect("a zone").is_utc());
    }
}
