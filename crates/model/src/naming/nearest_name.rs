//! Finds the name that a misspelt one most likely means.

use heck::ToSnakeCase;

/// The candidate that a misspelt `name` most likely means, if one is close enough.
pub fn nearest_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = MisspeltWord::new(name)?;
    let max_distance = |candidate: &str| (word.byte_length.max(candidate.len()) / 3).max(1);
    candidates
        .into_iter()
        // Each letter of length difference is an edit: most candidates are dropped before the costly comparison.
        .filter(|candidate| {
            *candidate != name && word.byte_length.abs_diff(candidate.len()) <= max_distance(candidate)
        })
        .map(|candidate| (word.distance_to(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= max_distance(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// True if one of the words of a name is misspelt, or the words are run together. `undelete` is not a misspelt
/// `delete`.
pub fn is_misspelling(one: &str, other: &str) -> bool {
    let (one_words, other_words) = (one.to_snake_case(), other.to_snake_case());
    let letters = |words: &str| words.replace('_', "");
    if letters(&one_words) == letters(&other_words) {
        return true;
    }
    let [one_words, other_words]: [Vec<&str>; 2] =
        [&one_words, &other_words].map(|words| words.split('_').collect());
    let mut differing = one_words.iter().zip(&other_words).filter(|(one, other)| one != other);
    let is_misspelt = |(one, other): (&&str, &&str)| {
        let is_longer = one.ends_with(other) || other.ends_with(one);
        let distance = MisspeltWord::new(one).map_or(usize::MAX, |word| word.distance_to(other));
        !is_longer && distance <= (one.len().max(other.len()) / 3).max(1)
    };
    one_words.len() == other_words.len()
        && differing.next().is_some_and(is_misspelt)
        && differing.next().is_none()
}

/// True if the names differ by case or one typing mistake.
pub fn differ_by_one_edit(one: &str, other: &str) -> bool {
    let is_near = |word: MisspeltWord| word.distance_to(other) <= 1;
    one.len().abs_diff(other.len()) <= 1 && MisspeltWord::new(one).is_some_and(is_near)
}

/// A word in lower case, prepared to be compared with many others.
struct MisspeltWord {
    byte_length: usize,
    length: usize,
    /// The positions where each letter occurs, one bit each; letters beyond ASCII are in a list.
    ascii_positions: [u64; 128],
    other_positions: Vec<(char, u64)>,
}

impl MisspeltWord {
    /// `None` for longer texts: they are not misspelt names, and their positions do not fit into a number.
    fn new(word: &str) -> Option<MisspeltWord> {
        let lower = word.to_lowercase();
        if word.len() > 64 || lower.is_empty() || lower.chars().count() > 64 {
            return None;
        }
        let (mut ascii_positions, mut other_positions) = ([0; 128], Vec::new());
        for (position, letter) in lower.chars().enumerate() {
            match ascii_positions.get_mut(letter as usize) {
                Some(bits) => *bits |= 1 << position,
                None => other_positions.push((letter, 1 << position)),
            }
        }
        let length = lower.chars().count();
        Some(MisspeltWord { byte_length: lower.len(), length, ascii_positions, other_positions })
    }

    fn positions_of(&self, letter: char) -> u64 {
        match self.ascii_positions.get(letter as usize) {
            Some(bits) => *bits,
            None => {
                let same = self.other_positions.iter().filter(|(known, _)| *known == letter);
                same.fold(0, |positions, (_, bit)| positions | bit)
            }
        }
    }

    /// Number of insertions, deletions, replacements and swaps of neighbours that turn the word into the other.
    ///
    /// A schema with hundreds of types and unknown operations needs a million distances, so a column of the table of
    /// distances is kept as bits: Hyyrö, "A bit-vector algorithm for computing Levenshtein and Damerau edit distances"
    /// (2003). `rises` and `falls` are the places of the column where the distance grows or shrinks by one from one
    /// letter of the word to the next.
    fn distance_to(&self, other: &str) -> usize {
        let last = 1_u64 << (self.length - 1);
        let (mut rises, mut falls) = (u64::MAX, 0_u64);
        let (mut diagonal, mut previous_matches) = (0_u64, 0_u64);
        let mut distance = self.length;
        for letter in other.to_lowercase().chars() {
            let matches = self.positions_of(letter);
            let swaps = ((!diagonal & matches) << 1) & previous_matches;
            diagonal = ((matches & rises).wrapping_add(rises) ^ rises) | matches | falls | swaps;
            let row_rises = falls | !(diagonal | rises);
            let row_falls = diagonal & rises;
            distance += usize::from(row_rises & last != 0);
            distance -= usize::from(row_falls & last != 0);
            let row_rises = (row_rises << 1) | 1;
            rises = (row_falls << 1) | !(diagonal | row_rises);
            falls = row_rises & diagonal;
            previous_matches = matches;
        }
        distance
    }
}

/// The end of a message about an unknown name: the known one that was meant, if there is one.
pub fn name_suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nearest_name_needs_a_close_match() {
        let known = ["Order", "OrderLine", "User", "String"];
        for (name, expected) in [
            ("Oder", Some("Order")),
            ("Ordre", Some("Order")),
            ("order", Some("Order")),
            ("Usre", Some("User")),
            ("Strng", Some("String")),
            ("Strings", Some("String")),
            ("Invoice", None),
            ("Ur", None),
            ("", None),
        ] {
            assert_eq!(nearest_name(name, known), expected, "{name}");
        }
        assert_eq!(nearest_name("LogFormat", ["log-file", "log-format"]), Some("log-format"));
        assert_eq!(nearest_name("max_page_size", ["page-size", "max-page-size"]), Some("max-page-size"));
    }

    /// The distance by the whole table, as in textbooks.
    fn table_distance(a: &str, b: &str) -> usize {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
        for i in 1..=a.len() {
            let mut row = vec![i];
            for j in 1..=b.len() {
                let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut distance = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    distance = distance.min(rows[i - 2][j - 2] + 1);
                }
                row.push(distance);
            }
            rows.push(row);
        }
        rows[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn distances_are_those_of_the_table(one in "[abcé]{1,32}|[a-d]{60,64}", other in "[abcdé]{0,70}") {
            let word = MisspeltWord::new(&one).expect("short enough");
            prop_assert_eq!(word.distance_to(&other), table_distance(&one, &other));
        }
    }
}
