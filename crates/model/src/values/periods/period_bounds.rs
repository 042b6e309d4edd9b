//! `PeriodBounds`: the days of a period, read from its text: `2026-W47` begins on 16 November 2026.

use jiff::civil::{self, ISOWeekDate, Weekday};
use jiff::{Span, ToSpan};

use crate::values::date_times;
use crate::values::periods::{TimePeriod, ZoneOffsets};

/// The first day of a period and the day after its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodBounds {
    start: civil::Date,
    end: civil::Date,
}

impl PeriodBounds {
    /// `None` for a period that repeats, such as a weekday, and for a text that is no such period.
    pub fn from_text(period: TimePeriod, text: &str) -> Option<PeriodBounds> {
        let (year, rest) = text.split_at_checked(4)?;
        let year: i16 = year.parse().ok()?;
        let number = |prefix: &str| rest.strip_prefix(prefix)?.parse::<i8>().ok();
        let (start, length): (Option<civil::Date>, Span) = match period {
            TimePeriod::Year if rest.is_empty() => (civil::Date::new(year, 1, 1).ok(), 1.year()),
            TimePeriod::Quarter => {
                let month = number("-Q")?.checked_mul(3)?.checked_sub(2)?;
                (civil::Date::new(year, month, 1).ok(), 3.months())
            }
            TimePeriod::Month => (civil::Date::new(year, number("-")?, 1).ok(), 1.month()),
            TimePeriod::Week => {
                let week = ISOWeekDate::new(year, number("-W")?, Weekday::Monday);
                (week.ok().map(ISOWeekDate::date), 1.week())
            }
            TimePeriod::Day => (date_times::parse_date(text), 1.day()),
            TimePeriod::Year | TimePeriod::Weekday | TimePeriod::Hour => return None,
        };
        let start = start?;
        Some(PeriodBounds { start, end: start.checked_add(length).ok()? })
    }

    /// The days from 1970 to its first day.
    pub fn day_number(self) -> i64 {
        self.start.duration_since(civil::date(1970, 1, 1)).as_hours() / 24
    }

    /// The dates from which and before which it is.
    pub fn dates(self) -> [String; 2] {
        [self.start.to_string(), self.end.to_string()]
    }

    /// The times in UTC from which and before which it is in a zone; `None` if its times are not one range there.
    pub fn times(self, zone: &ZoneOffsets) -> Option<[String; 2]> {
        let time = |date: civil::Date| {
            Some(format!("{}Z", zone.utc_time(date.to_datetime(civil::Time::midnight()))?))
        };
        Some([time(self.start)?, time(self.end)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(period: &str, text: &str) -> Option<PeriodBounds> {
        PeriodBounds::from_text(TimePeriod::from_name(period).expect("a period"), text)
    }

    #[test]
    fn periods_have_a_first_day_and_an_end() {
        for (period, text, start, end) in [
            ("year", "2026", "2026-01-01", "2027-01-01"),
            ("quarter", "2026-Q4", "2026-10-01", "2027-01-01"),
            ("month", "2028-02", "2028-02-01", "2028-03-01"),
            ("week", "2026-W53", "2026-12-28", "2027-01-04"),
            ("day", "2026-12-31", "2026-12-31", "2027-01-01"),
        ] {
            let found = bounds(period, text).expect("bounds");
            assert_eq!(found.dates(), [start, end], "{period} {text}");
        }
        assert_eq!(bounds("day", "1970-01-03").map(PeriodBounds::day_number), Some(2));
        assert_eq!(bounds("day", "1969-12-31").map(PeriodBounds::day_number), Some(-1));
        for (period, text) in [
            ("weekday", "1"),
            ("hour", "23"),
            ("year", "20260"),
            ("year", "9999"),
            ("quarter", "2026-Q5"),
            ("quarter", "2026-Q99"),
            ("month", "2026-13"),
            ("week", "2025-W53"),
            ("day", "2026-02-29"),
            ("day", ""),
            ("month", "ÄÄÄÄ"),
        ] {
            assert_eq!(bounds(period, text), None, "{period} {text}");
        }
    }

    #[test]
    fn times_of_a_day_follow_the_zone() {
        let times = |zone: &str, day: &str| {
            let zone = ZoneOffsets::load(zone).expect("a zone");
            bounds("day", day).expect("a day").times(&zone)
        };
        for (zone, day, start, end) in [
            ("UTC", "2026-11-17", "2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z"),
            ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"),
            ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"),
            ("Asia/Kolkata", "2026-01-01", "2025-12-31T18:30:00Z", "2026-01-01T18:30:00Z"),
            // There midnight was skipped.
            ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"),
            // And here it came twice.
            ("America/Havana", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        ] {
            assert_eq!(times(zone, day), Some([start.to_owned(), end.to_owned()]), "{zone} {day}");
        }
        // One minute of this day was before the last hour of the day before.
        assert_eq!(times("America/St_Johns", "2010-11-07"), None);
        assert_eq!(times("America/St_Johns", "2010-11-06"), None);
    }
}
