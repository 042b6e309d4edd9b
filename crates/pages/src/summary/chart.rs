//! The chart of a summary: horizontal bars, or lines where groups are periods of time.

use std::collections::BTreeMap;

use trefoil_model::{PeriodBounds, TimePeriod};

use crate::phrases::cut_text;
use crate::summary::groups::ShownGroup;
use crate::summary::view::{ChartBar, ChartPoint, ChartRule, ChartSeries, ChartTick, ChartView};

const MAX_BARS: usize = 30;
/// The last periods of a line.
const MAX_PERIODS: usize = 100;
/// As many as there are colours.
const MAX_SERIES: usize = 6;

/// Pixels of a bar with its label.
const BAR_HEIGHT: usize = 44;
const LINE_HEIGHT: usize = 260;
/// Characters of a label or a number. A label fits beside a usual number on the narrowest screen.
const MAX_LABEL: usize = 28;

/// The part of the width between the first and the last point, in percent.
const LEFT: f64 = 2.0;
const RIGHT: f64 = 98.0;
/// The part of the height between the greatest and the least value.
const TOP: f64 = 10.0;
const BOTTOM: f64 = 88.0;
/// A value that is not zero is seen.
const LEAST_WIDTH: f64 = 0.5;

/// The chart with this label; `None` if there is nothing to draw. `period` is that of the first key.
pub fn draw_chart(label: String, period: Option<TimePeriod>, groups: &[ShownGroup]) -> Option<ChartView> {
    let timed = period.map(|period| {
        let day = |group: &ShownGroup| {
            let bounds = PeriodBounds::from_text(period, group.first_text.as_deref()?)?;
            group.number.map(|_| bounds.day_number())
        };
        groups.iter().filter_map(|group| Some((day(group)?, group))).collect::<Vec<_>>()
    });
    let chart = match timed.filter(|timed| !timed.is_empty()) {
        Some(timed) => draw_lines(groups, timed),
        None => draw_bars(groups)?,
    };
    Some(ChartView { label, ..chart })
}

/// The values between which zero is, too, as parts of the greatest distance from zero.
struct ValueScale {
    largest: f64,
    low: f64,
    high: f64,
}

impl ValueScale {
    fn new(numbers: impl Iterator<Item = f64> + Clone) -> ValueScale {
        // So that the difference of two numbers is never too large.
        let largest = numbers.clone().fold(0.0, |largest: f64, number| largest.max(number.abs()));
        let parts = numbers.map(|number| if largest > 0.0 { number / largest } else { 0.0 });
        let low = parts.clone().fold(0.0, f64::min);
        ValueScale { largest, low, high: parts.fold(0.0, f64::max) }
    }

    /// From 0 for the lowest to 1 for the highest.
    fn place(&self, number: f64) -> f64 {
        if self.largest > 0.0 { (number / self.largest - self.low) / (self.high - self.low) } else { 0.0 }
    }
}

/// Two digits after the point.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn draw_bars(groups: &[ShownGroup]) -> Option<ChartView> {
    let drawn = groups.iter().filter_map(|group| Some((group, group.number?)));
    let drawn: Vec<(&ShownGroup, f64)> = drawn.take(MAX_BARS).collect();
    if drawn.is_empty() {
        return None;
    }
    let scale = ValueScale::new(drawn.iter().map(|(_, number)| *number));
    let zero = scale.place(0.0) * 100.0;
    let bars = drawn.iter().enumerate().map(|(position, (group, number))| {
        let end = scale.place(*number) * 100.0;
        let least = if *number == 0.0 { 0.0 } else { LEAST_WIDTH };
        let width = (end - zero).abs().max(least);
        let left = if end < zero { (zero - width).max(0.0) } else { zero.min(100.0 - width) };
        ChartBar {
            label: short_label(&group.keys),
            value: first_value(group),
            href: group.href.clone(),
            top: position * BAR_HEIGHT,
            left: rounded(left),
            width: rounded(width),
        }
    });
    let is_part = drawn.len() < groups.len();
    let note =
        || format!("The chart has {} of the groups. The table has all {} groups.", drawn.len(), groups.len());
    let zero_rule = (scale.low < 0.0).then(|| ChartRule { at: rounded(zero), label: String::new() });
    Some(ChartView {
        height: drawn.len() * BAR_HEIGHT,
        bars: bars.collect(),
        rules: zero_rule.into_iter().collect(),
        notes: is_part.then(note).into_iter().collect(),
        ..ChartView::default()
    })
}

fn short_label(keys: &[String]) -> String {
    shortened(keys.join(", "))
}

fn first_value(group: &ShownGroup) -> String {
    shortened(group.values.first().cloned().unwrap_or_default())
}

fn shortened(text: String) -> String {
    cut_text(&text, MAX_LABEL).map(|part| format!("{part}…")).unwrap_or(text)
}

/// Lines through the groups, each with the number of its first day.
fn draw_lines(groups: &[ShownGroup], mut timed: Vec<(i64, &ShownGroup)>) -> ChartView {
    let mut notes = Vec::new();
    if timed.len() < groups.len() {
        notes.push("Groups without a time or a value are only in the table.".to_owned());
    }
    timed.sort_by_key(|(day, _)| *day);
    let mut days: Vec<i64> = timed.iter().map(|(day, _)| *day).collect();
    days.dedup();
    if days.len() > MAX_PERIODS {
        let first = days[days.len() - MAX_PERIODS];
        timed.retain(|(day, _)| *day >= first);
        notes.push(format!(
            "The chart has the last {MAX_PERIODS} of {} periods. The table has all {} groups.",
            days.len(),
            groups.len()
        ));
        days.drain(..days.len() - MAX_PERIODS);
    }
    let mut series = split_series(&timed);
    if series.len() > MAX_SERIES {
        notes.push(format!(
            "The chart has the {MAX_SERIES} greatest of {} lines. The table has all {} groups.",
            series.len(),
            groups.len()
        ));
        series.truncate(MAX_SERIES);
    }
    let drawn = || series.iter().flat_map(|(_, points)| points.iter().copied());
    let scale = ValueScale::new(drawn().filter_map(|(_, group)| group.number));
    let place = LinePlace { first: days[0], last: days[days.len() - 1], scale: &scale };
    ChartView {
        height: LINE_HEIGHT,
        series: series
            .iter()
            .enumerate()
            .map(|(tone, (label, points))| place.series(label, tone, points))
            .collect(),
        rules: place.rules(drawn().map(|(_, group)| group)),
        ticks: place.ticks(&timed, &days),
        notes,
        ..ChartView::default()
    }
}

type TimedGroups<'g> = Vec<(i64, &'g ShownGroup)>;

/// The groups of each line by the keys after the first; the greatest first.
fn split_series<'g>(timed: &[(i64, &'g ShownGroup)]) -> Vec<(String, TimedGroups<'g>)> {
    let mut series: BTreeMap<String, TimedGroups<'g>> = BTreeMap::new();
    for (day, group) in timed {
        series.entry(group.keys[1..].join(", ")).or_default().push((*day, *group));
    }
    let scale = ValueScale::new(timed.iter().filter_map(|(_, group)| group.number));
    let size = |points: &TimedGroups<'_>| -> f64 {
        let parts = points.iter().filter_map(|(_, group)| group.number);
        if scale.largest > 0.0 { parts.map(|number| (number / scale.largest).abs()).sum() } else { 0.0 }
    };
    let mut series: Vec<(String, TimedGroups<'g>)> = series.into_iter().collect();
    series.sort_by(|(_, left), (_, right)| size(right).total_cmp(&size(left)));
    series
}

/// Places points by their days and values.
struct LinePlace<'s> {
    first: i64,
    last: i64,
    scale: &'s ValueScale,
}

impl LinePlace<'_> {
    fn x(&self, day: i64) -> f64 {
        if self.first == self.last {
            return 50.0;
        }
        let part = (day - self.first) as f64 / (self.last - self.first) as f64;
        rounded(LEFT + part * (RIGHT - LEFT))
    }

    fn y(&self, number: f64) -> f64 {
        rounded(BOTTOM - self.scale.place(number) * (BOTTOM - TOP))
    }

    fn series(&self, label: &str, tone: usize, groups: &[(i64, &ShownGroup)]) -> ChartSeries {
        let point = |(day, group): &(i64, &ShownGroup)| ChartPoint {
            x: self.x(*day),
            y: self.y(group.number.unwrap_or_default()),
            label: format!("{}: {}", group.keys.join(", "), first_value(group)),
            href: group.href.clone(),
        };
        let points: Vec<ChartPoint> = groups.iter().map(point).collect();
        let segments = points.windows(2).map(|ends| [ends[0].x, ends[0].y, ends[1].x, ends[1].y]).collect();
        ChartSeries { label: label.to_owned(), tone, segments, points }
    }

    /// Lines at the greatest value, at zero, and at the least if that is negative.
    fn rules<'g>(&self, groups: impl Iterator<Item = &'g ShownGroup> + Clone) -> Vec<ChartRule> {
        let compare = |left: &&ShownGroup, right: &&ShownGroup| {
            left.number.unwrap_or_default().total_cmp(&right.number.unwrap_or_default())
        };
        let ends = [groups.clone().max_by(compare), groups.min_by(compare)];
        let is_beyond = [self.scale.high > 0.0, self.scale.low < 0.0];
        let ends = ends.into_iter().zip(is_beyond).filter(|(_, is_beyond)| *is_beyond);
        let rule = |(group, _): (Option<&ShownGroup>, bool)| {
            let group = group?;
            Some(ChartRule { at: self.y(group.number?), label: first_value(group) })
        };
        let zero = ChartRule { at: self.y(0.0), label: "0".to_owned() };
        ends.filter_map(rule).chain([zero]).collect()
    }

    /// The first time, the last, and one in the middle.
    fn ticks(&self, timed: &[(i64, &ShownGroup)], days: &[i64]) -> Vec<ChartTick> {
        let tick = |day: i64, anchor: &'static str| {
            let group = timed.iter().find(|(known, _)| *known == day).map(|(_, group)| group);
            let label = group.and_then(|group| group.keys.first().cloned()).unwrap_or_default();
            ChartTick { x: self.x(day), anchor, label }
        };
        let distance = |day: &i64| (self.x(*day) - 50.0).abs();
        let middle = days.iter().copied().min_by(|left, right| distance(left).total_cmp(&distance(right)));
        // Elsewhere it could cover the others.
        let middle =
            middle.filter(|day| days.len() > 2 && distance(day) < 12.0).map(|day| tick(day, "middle"));
        match days {
            [day] => vec![tick(*day, "middle")],
            _ => [tick(self.first, "start")]
                .into_iter()
                .chain(middle)
                .chain([tick(self.last, "end")])
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(keys: &[&str], number: Option<f64>) -> ShownGroup {
        ShownGroup {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            first_text: keys.first().filter(|key| **key != "Not set").map(|key| (*key).to_owned()),
            values: vec![number.map(|number| number.to_string()).unwrap_or_default()],
            number,
            href: Some("/orders".to_owned()),
        }
    }

    fn bars(numbers: &[f64]) -> Vec<(f64, f64)> {
        let groups: Vec<ShownGroup> = numbers.iter().map(|number| group(&["x"], Some(*number))).collect();
        let chart = draw_chart(String::new(), None, &groups).expect("a chart");
        assert!(chart.bars.iter().all(|bar| bar.left >= 0.0 && bar.left + bar.width <= 100.01), "{chart:?}");
        chart.bars.iter().map(|bar| (bar.left, bar.width)).collect()
    }

    #[test]
    fn bars_begin_at_zero() {
        assert_eq!(bars(&[4.0, 1.0, 0.0]), [(0.0, 100.0), (0.0, 25.0), (0.0, 0.0)]);
        assert_eq!(bars(&[3.0, -1.0]), [(25.0, 75.0), (0.0, 25.0)]);
        assert_eq!(bars(&[-2.0, -4.0]), [(50.0, 50.0), (0.0, 100.0)]);
        assert_eq!(bars(&[7.0]), [(0.0, 100.0)]);
        assert_eq!(bars(&[0.0, 0.0]), [(0.0, 0.0), (0.0, 0.0)]);
        assert_eq!(bars(&[1e300, 1.0]), [(0.0, 100.0), (0.0, 0.5)]);
        assert_eq!(bars(&[f64::MAX, -f64::MAX]), [(50.0, 50.0), (0.0, 50.0)]);
        assert_eq!(bars(&[-1.0, 1e300]), [(0.0, 0.5), (0.0, 100.0)]);
    }

    #[test]
    fn zero_is_marked_between_negative_and_positive() {
        let groups = [group(&["a"], Some(3.0)), group(&["b"], Some(-1.0))];
        let chart = draw_chart(String::new(), None, &groups).expect("a chart");
        assert_eq!(chart.rules, [ChartRule { at: 25.0, label: String::new() }]);
        assert_eq!(chart.height, 2 * BAR_HEIGHT);
    }

    #[test]
    fn what_is_left_out_is_told() {
        let many: Vec<ShownGroup> =
            (0..120).map(|number| group(&[&format!("g{number}")], Some(1.0))).collect();
        let chart = draw_chart(String::new(), None, &many).expect("a chart");
        assert_eq!(chart.bars.len(), MAX_BARS);
        assert_eq!(chart.notes, ["The chart has 30 of the groups. The table has all 120 groups."]);
        assert_eq!(draw_chart(String::new(), None, &[]), None);
        assert_eq!(draw_chart(String::new(), None, &[group(&["a"], None)]), None);
    }

    #[test]
    fn lines_follow_time_and_not_the_order_of_groups() {
        let groups = [
            group(&["2026-12"], Some(-5.0)),
            group(&["2026-01"], Some(10.0)),
            group(&["Not set"], Some(1.0)),
            group(&["2026-02"], Some(0.0)),
            group(&["2026-03"], None),
        ];
        let chart = draw_chart(String::new(), Some(TimePeriod::Month), &groups).expect("a chart");
        assert!(chart.bars.is_empty() && chart.series.len() == 1);
        let points: Vec<(f64, f64)> = chart.series[0].points.iter().map(|point| (point.x, point.y)).collect();
        // 31 of 334 days are between the first two.
        assert_eq!(points, [(2.0, 10.0), (10.91, 62.0), (98.0, 88.0)]);
        assert_eq!(chart.series[0].segments, [[2.0, 10.0, 10.91, 62.0], [10.91, 62.0, 98.0, 88.0]]);
        let rules: Vec<(f64, &str)> = chart.rules.iter().map(|rule| (rule.at, rule.label.as_str())).collect();
        assert_eq!(rules, [(10.0, "10"), (88.0, "-5"), (62.0, "0")]);
        let ticks: Vec<&str> = chart.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(ticks, ["2026-01", "2026-12"]);
        assert_eq!(chart.notes, ["Groups without a time or a value are only in the table."]);
    }

    #[test]
    fn one_time_is_a_point_and_no_time_is_a_bar() {
        let chart = draw_chart(String::new(), Some(TimePeriod::Year), &[group(&["2026"], Some(0.0))])
            .expect("a chart");
        assert_eq!((chart.series[0].points[0].x, chart.series[0].points[0].y), (50.0, 88.0));
        assert!(chart.series[0].segments.is_empty() && chart.ticks.len() == 1 && chart.rules.len() == 1);
        for period in [TimePeriod::Weekday, TimePeriod::Hour] {
            let chart =
                draw_chart(String::new(), Some(period), &[group(&["1"], Some(2.0))]).expect("a chart");
            assert!(chart.series.is_empty() && chart.bars.len() == 1);
        }
    }

    #[test]
    fn second_key_makes_several_lines() {
        let number = |number: usize| format!("s{number}");
        let groups: Vec<ShownGroup> = (0..9)
            .flat_map(|line| ["2025", "2026"].map(|year| group(&[year, &number(line)], Some(line as f64))))
            .collect();
        let chart = draw_chart(String::new(), Some(TimePeriod::Year), &groups).expect("a chart");
        let labels: Vec<&str> = chart.series.iter().map(|series| series.label.as_str()).collect();
        assert_eq!(labels, ["s8", "s7", "s6", "s5", "s4", "s3"]);
        assert_eq!(chart.notes, ["The chart has the 6 greatest of 9 lines. The table has all 18 groups."]);
        assert_eq!(chart.series[0].points[1].label, "2026, s8: 8");
    }

    #[test]
    fn long_times_end_with_the_last() {
        let days: Vec<ShownGroup> =
            (0..150).map(|day| group(&[&format!("{:04}", 1800 + day)], Some(1.0))).collect();
        let chart = draw_chart(String::new(), Some(TimePeriod::Year), &days).expect("a chart");
        assert_eq!(chart.series[0].points.len(), MAX_PERIODS);
        assert_eq!(chart.ticks.last().map(|tick| tick.label.as_str()), Some("1949"));
        assert_eq!(chart.notes, ["The chart has the last 100 of 150 periods. The table has all 150 groups."]);
    }
}
