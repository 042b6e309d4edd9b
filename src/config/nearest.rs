//! The known name that a mistyped one was most likely meant to be.

/// The candidate closest to `typed`, or nothing when none is close enough to be worth offering.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = plain(typed);
    let tolerated = typed.chars().count() / 3 + 1;
    known
        .into_iter()
        .map(|name| (distance(&typed, &plain(name)), name))
        .filter(|(distance, _)| *distance <= tolerated)
        .min()
        .map(|(_, name)| name)
}

/// `max_page_size`, `MAX-PAGE-SIZE` and `maxPageSize` are slips of habit, not of spelling: they cost nothing.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from one text to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    let mut last = None;
    for (i, c) in from.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, d) in to.iter().enumerate() {
            let replaced = row[j] + usize::from(c != *d);
            let swapped = match j.checked_sub(1) {
                Some(k) if last == Some(*d) && to[k] == c => before[k] + 1,
                Some(_) | None => usize::MAX,
            };
            next.push(replaced.min(row[j + 1] + 1).min(next[j] + 1).min(swapped));
        }
        last = Some(c);
        before = std::mem::replace(&mut row, next);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_its_name_and_a_stranger_finds_none() {
        let known = ["host", "port", "max-page-size", "log-format"];
        let check = |typed: &str, expect: Option<&str>| assert_eq!(nearest(typed, known), expect, "{typed}");
        check("prot", Some("port"));
        check("max_page_size", Some("max-page-size"));
        check("LogFormat", Some("log-format"));
        check("hots", Some("host"));
        check("colour", None);
        check("", None);
    }
}
