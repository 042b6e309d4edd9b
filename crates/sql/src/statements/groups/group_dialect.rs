//! The expressions of groups that SQLite and PostgreSQL write differently: sums, means and periods.

use trefoil_model::{Scalar, TimePeriod, ZoneOffsets};

use crate::statements::dialect::Dialect;

/// 2^1024 - 2^970, the first number that is rounded to infinity.
const FLOAT_RANGE_END: &str = "17976931348623158079372897140530341507993413271003782693617377898044496829276475094664\
    90179775872070963302864166928879109465555478519404026306574886715058206819089020007083836762738548458177115317644757\
    30270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904174497792";

impl Dialect {
    /// The smaller of two parameters.
    pub(super) fn least(self, left: &str, right: &str) -> String {
        match self {
            Dialect::Sqlite => format!("min({left}, {right})"),
            Dialect::Postgres => format!("least(CAST({left} AS bigint), CAST({right} AS bigint))"),
        }
    }

    /// An exact sum. Integers of 32 bits do not overflow a sum of 64 bits.
    pub(super) fn exact_sum(self, value: &str, is_short: bool) -> String {
        match self {
            Dialect::Sqlite if is_short => format!("sum({value})"),
            Dialect::Sqlite => format!("trefoil_decimal_sum({value})"),
            Dialect::Postgres => format!("CAST(sum({value}) AS numeric)"),
        }
    }

    /// The sum of floats as their shortest decimals say, rounded once: in any order the same. Null beyond the range of a
    /// float.
    pub(super) fn real_sum(self, value: &str) -> String {
        match self {
            Dialect::Sqlite => format!("trefoil_real_sum({value})"),
            Dialect::Postgres => {
                let sum = format!("sum(CAST(CAST({value} AS text) AS numeric))");
                format!("CASE WHEN abs({sum}) < {FLOAT_RANGE_END} THEN CAST({sum} AS double precision) END")
            }
        }
    }

    /// The expression that selects an exact number.
    pub(super) fn read_number(self, column: String) -> String {
        match self {
            Dialect::Sqlite => column,
            Dialect::Postgres => format!("{column}::text"),
        }
    }

    /// The mean with more digits than are shown, to be compared like a decimal.
    pub(super) fn mean(self, is_real: bool, sum: &str, count: &str) -> String {
        match self {
            _ if is_real => format!("{sum} / {count}"),
            Dialect::Sqlite => format!("trefoil_mean({sum}, {count})"),
            // The quotient has at least as many decimal places.
            Dialect::Postgres => format!("round({sum}, 60) / nullif({count}, 0)"),
        }
    }

    /// The period of a value. PostgreSQL gives the first day of those that do not repeat.
    pub(super) fn period(
        self,
        period: TimePeriod,
        value: &str,
        scalar: Option<Scalar>,
        zone: &ZoneOffsets,
    ) -> String {
        match self {
            Dialect::Sqlite => {
                format!("trefoil_period('{}', '{}', {value})", period.name(), zone.name().replace('\'', "''"))
            }
            Dialect::Postgres => {
                let local = match scalar {
                    Some(Scalar::Date) => format!("CAST({value} AS timestamp)"),
                    _ => local_time(value, zone),
                };
                match period {
                    TimePeriod::Weekday => format!("CAST(extract(isodow FROM {local}) AS integer)"),
                    TimePeriod::Hour => format!("CAST(extract(hour FROM {local}) AS integer)"),
                    TimePeriod::Year
                    | TimePeriod::Quarter
                    | TimePeriod::Month
                    | TimePeriod::Week
                    | TimePeriod::Day => {
                        format!("date_trunc('{}', {local})", period.name())
                    }
                }
            }
        }
    }

    pub(super) fn read_period(self, period: TimePeriod, column: String) -> String {
        match (self, period.scalar()) {
            (Dialect::Postgres, Scalar::String) => format!("to_char({column}, 'YYYY-MM-DD')"),
            _ => column,
        }
    }
}

/// PostgreSQL: the local time, by the offsets of the zone. Its position among their starts says which one holds.
fn local_time(value: &str, zone: &ZoneOffsets) -> String {
    let utc = format!("({value} AT TIME ZONE 'UTC')");
    if zone.is_utc() {
        return utc;
    }
    let starts: Vec<String> = zone.starts().map(|start| start.to_string()).collect();
    let offsets: Vec<String> = zone.offsets().iter().map(|offset| format!("{offset} seconds")).collect();
    format!(
        "({utc} + (CAST('{{{}}}' AS interval[]))[width_bucket({value}, CAST('{{{}}}' AS timestamptz[])) + 1])",
        offsets.join(","),
        starts.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_offset_has_a_start() {
        let zone = ZoneOffsets::load("Europe/Berlin").expect("a zone");
        assert_eq!(zone.starts().count() + 1, zone.offsets().len());
        let sql = local_time("t.at", &zone);
        assert!(sql.contains("3600 seconds,7200 seconds") && sql.contains("2026-03-29T01:00:00Z"), "{sql}");
        assert_eq!(local_time("t.at", &ZoneOffsets::utc()), "(t.at AT TIME ZONE 'UTC')");
    }
}
