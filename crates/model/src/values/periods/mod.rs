//! Parts of dates and times by which records are grouped: `2026`, `2026-Q4`, `2026-W47`, weekday 1 to 7, hour 0 to 23.

mod local_times;
mod period_bounds;
mod zone_offsets;

use jiff::civil;

use crate::values::date_times;
use crate::{Scalar, StoredValue};

pub use self::local_times::{LocalTime, ShownTime};
pub use self::period_bounds::PeriodBounds;
pub use self::zone_offsets::ZoneOffsets;

/// A part of a date or a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimePeriod {
    Year,
    Quarter,
    Month,
    /// The week of ISO 8601, which begins on Monday.
    Week,
    Day,
    /// 1 (Monday) to 7.
    Weekday,
    /// 0 to 23.
    Hour,
}

impl TimePeriod {
    pub const ALL: [TimePeriod; 7] = [
        TimePeriod::Year,
        TimePeriod::Quarter,
        TimePeriod::Month,
        TimePeriod::Week,
        TimePeriod::Day,
        TimePeriod::Weekday,
        TimePeriod::Hour,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            TimePeriod::Year => "year",
            TimePeriod::Quarter => "quarter",
            TimePeriod::Month => "month",
            TimePeriod::Week => "week",
            TimePeriod::Day => "day",
            TimePeriod::Weekday => "weekday",
            TimePeriod::Hour => "hour",
        }
    }

    pub fn from_name(name: &str) -> Option<TimePeriod> {
        TimePeriod::ALL.into_iter().find(|period| period.name() == name)
    }

    /// The type of its values: a number for what repeats, else text.
    pub const fn scalar(self) -> Scalar {
        match self {
            TimePeriod::Weekday | TimePeriod::Hour => Scalar::Int,
            TimePeriod::Year
            | TimePeriod::Quarter
            | TimePeriod::Month
            | TimePeriod::Week
            | TimePeriod::Day => Scalar::String,
        }
    }

    /// The period of a stored date or time, local in the zone; null for what is neither.
    pub fn of_stored(self, zone: &ZoneOffsets, text: &str) -> StoredValue {
        if let Some(date) = date_times::parse_date(text) {
            return self.of_local(date.to_datetime(civil::Time::midnight()));
        }
        match date_times::parse_date_time(text) {
            Some(utc) => self.of_local(zone.local_time(utc)),
            None => StoredValue::Null,
        }
    }

    /// The period in which a stored date is.
    pub fn of_date(self, text: &str) -> StoredValue {
        match date_times::parse_date(text) {
            Some(date) => self.of_local(date.to_datetime(civil::Time::midnight())),
            None => StoredValue::Null,
        }
    }

    fn of_local(self, local: civil::DateTime) -> StoredValue {
        let (year, month) = (local.year(), local.month());
        StoredValue::Text(match self {
            TimePeriod::Year => format!("{year:04}"),
            TimePeriod::Quarter => format!("{year:04}-Q{}", (month + 2) / 3),
            TimePeriod::Month => format!("{year:04}-{month:02}"),
            TimePeriod::Week => {
                let week = local.date().iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            TimePeriod::Day => format!("{year:04}-{month:02}-{:02}", local.day()),
            TimePeriod::Weekday => return StoredValue::Int(local.weekday().to_monday_one_offset().into()),
            TimePeriod::Hour => return StoredValue::Int(local.hour().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_the_texts_of_iso_8601() {
        let zone = ZoneOffsets::load("Europe/Berlin").expect("a zone");
        let text = |period: &str, value: &str| match TimePeriod::from_name(period)
            .expect("a period")
            .of_stored(&zone, value)
        {
            StoredValue::Text(text) => text,
            StoredValue::Int(number) => number.to_string(),
            StoredValue::Null | StoredValue::Real(_) => "null".to_owned(),
        };
        for (period, value, expected) in [
            ("year", "2026-12-31T23:00:00.000000Z", "2027"),
            ("year", "2026-12-31", "2026"),
            ("quarter", "2026-10-01", "2026-Q4"),
            ("month", "2026-10-31T22:59:59.999999Z", "2026-10"),
            ("month", "2026-10-31T23:00:00.000000Z", "2026-11"),
            ("week", "2026-11-17", "2026-W47"),
            ("week", "2027-01-03", "2026-W53"),
            ("week", "2024-12-30", "2025-W01"),
            ("day", "2026-11-17", "2026-11-17"),
            ("weekday", "2026-11-15", "7"),
            ("weekday", "2026-11-16", "1"),
            ("hour", "2026-03-29T01:00:00.000000Z", "3"),
            ("hour", "2026-10-25T00:30:00.000000Z", "2"),
            ("hour", "2026-10-25T01:30:00.000000Z", "2"),
            ("day", "yesterday", "null"),
        ] {
            assert_eq!(text(period, value), expected, "{period} {value}");
        }
    }
}
