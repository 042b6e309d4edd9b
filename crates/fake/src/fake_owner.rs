//! What the values of one record have in common: the person that it is about, and the day on which things begin.

use crate::seeded_random::SeededRandom;

/// Parts of the names of types whose records are persons.
const PERSON_WORDS: [&str; 19] = [
    "user",
    "customer",
    "person",
    "author",
    "member",
    "employee",
    "student",
    "teacher",
    "contact",
    "guest",
    "doctor",
    "nurse",
    "patient",
    "physician",
    "owner",
    "driver",
    "artist",
    "writer",
    "player",
];

const BEGIN_WORDS: [&str; 7] = ["issued", "start", "begin", "from", "ordered", "opened", "departure"];
const END_WORDS: [&str; 11] = [
    "due",
    "end",
    "until",
    "expire",
    "finish",
    "closed",
    "returned",
    "delivered",
    "shipped",
    "paid",
    "arrival",
];

/// Days from 2020 to 2025.
const DAYS: u64 = 2_192;
/// The longest time from a beginning to an end, in days.
const MAX_DURATION: u64 = 60;

/// The type to which a value belongs, and the random numbers of its record.
#[derive(Debug, Clone, Copy)]
pub struct FakeOwner<'a> {
    pub type_name: &'a str,
    /// `None` for a value on its own, which shares nothing with others.
    pub record_random: Option<SeededRandom>,
}

impl FakeOwner<'_> {
    pub fn is_person(self) -> bool {
        let name = self.type_name.to_lowercase();
        PERSON_WORDS.iter().any(|word| name.contains(word))
    }

    /// Decides on the person of a value: in the record of a person always the same one.
    pub fn person_random(self, own: SeededRandom) -> SeededRandom {
        self.record_random.filter(|_| self.is_person()).unwrap_or(own)
    }

    /// The day of a date, counted from the first possible one. Within a record, an end is after the beginning.
    pub fn day(self, field: &str, own: SeededRandom) -> i64 {
        let name = field.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let begin = self.record_random.map(|random| random.derive("begin").below(DAYS - MAX_DURATION));
        let day = match begin {
            Some(begin) if has(&END_WORDS) => begin + 1 + own.derive("duration").below(MAX_DURATION - 1),
            Some(begin) if has(&BEGIN_WORDS) => begin,
            Some(_) | None => own.derive("day").below(DAYS),
        };
        day as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn end_is_after_the_beginning() {
        for number in 0..200 {
            let owner = FakeOwner { type_name: "Invoice", record_random: Some(SeededRandom(number)) };
            let day = |field: &str| owner.day(field, SeededRandom(number).derive(field));
            assert!(day("issuedOn") < day("dueOn"));
            assert!((0..2_192).contains(&day("dueOn")) && (0..2_192).contains(&day("birthday")));
        }
    }

    #[test]
    fn record_of_a_person_is_about_one_person() {
        let own = SeededRandom(1);
        let of =
            |type_name| FakeOwner { type_name, record_random: Some(SeededRandom(2)) }.person_random(own).0;
        assert_eq!((of("Doctor"), of("Book")), (2, 1));
    }
}
