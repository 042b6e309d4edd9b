//! Plausible names, places, sentences, dates and numbers, chosen by the name of a field.

use crate::fake_owner::FakeOwner;
use crate::seeded_random::SeededRandom;

const FIRST_NAMES: [&str; 24] = [
    "Ada",
    "Björn",
    "Carmen",
    "Dmitri",
    "Elif",
    "Farid",
    "Grace",
    "Hiro",
    "Ingrid",
    "João",
    "Katarína",
    "Liam",
    "Mei",
    "Nadia",
    "Olu",
    "Priya",
    "Quinn",
    "Rosa",
    "Søren",
    "Tariq",
    "Uma",
    "Viktor",
    "Wanda",
    "Zoë",
];
const LAST_NAMES: [&str; 24] = [
    "Adeyemi",
    "Bauer",
    "Cohen",
    "Dubois",
    "Eriksen",
    "Ferrari",
    "García",
    "Haddad",
    "Ivanova",
    "Jansen",
    "Kowalski",
    "Lindqvist",
    "Müller",
    "Nguyen",
    "O'Brien",
    "Park",
    "Quispe",
    "Rossi",
    "Silva",
    "Tanaka",
    "Ueda",
    "Varga",
    "Wójcik",
    "Zhang",
];
const CITIES: [&str; 16] = [
    "Accra", "Bergen", "Cusco", "Dublin", "Essen", "Fez", "Gdańsk", "Hanoi", "Izmir", "Jaipur", "Kyoto",
    "Lyon", "Malmö", "Nairobi", "Porto", "Zürich",
];
const COUNTRIES: [&str; 12] = [
    "Brazil", "Canada", "Ghana", "India", "Ireland", "Japan", "Kenya", "Norway", "Peru", "Poland",
    "Portugal", "Türkiye",
];
const STREETS: [&str; 8] = [
    "Harbour Road",
    "Mill Lane",
    "Station Street",
    "Church Hill",
    "Orchard Way",
    "Market Square",
    "River Walk",
    "Park Avenue",
];
const ADJECTIVES: [&str; 16] = [
    "Small", "Quiet", "Red", "Wooden", "Folding", "Round", "Blue", "Light", "Sturdy", "Warm", "Plain",
    "Green", "Long", "Soft", "Bright", "Old",
];
const THINGS: [&str; 20] = [
    "Lamp", "Chair", "Teapot", "Notebook", "Bicycle", "Blanket", "Clock", "Kettle", "Ladder", "Mirror",
    "Table", "Basket", "Radio", "Umbrella", "Hammer", "Vase", "Backpack", "Candle", "Shelf", "Whistle",
];
const CATEGORIES: [&str; 8] = ["kitchen", "garden", "office", "travel", "toys", "books", "lighting", "tools"];
const COLOURS: [&str; 8] = ["red", "green", "blue", "yellow", "black", "white", "grey", "orange"];
const WORDS: [&str; 40] = [
    "morning", "river", "letter", "window", "bread", "garden", "light", "paper", "stone", "winter", "music",
    "road", "silver", "market", "summer", "bridge", "forest", "water", "evening", "train", "island",
    "coffee", "story", "cloud", "harbour", "number", "picture", "season", "village", "weather", "answer",
    "corner", "kitchen", "moment", "people", "question", "shadow", "travel", "valley", "wonder",
];
const COMPANY_SUFFIXES: [&str; 6] = ["& Sons", "Works", "Trading", "Group", "Studio", "Partners"];

pub fn word(random: SeededRandom) -> &'static str {
    random.derive("word").pick::<&str>(&WORDS)
}

pub fn sentence(random: SeededRandom) -> String {
    let count = 5 + random.derive("count").below(8);
    let words: Vec<&str> = (0..count).map(|position| word(random.derive_number(position))).collect();
    let joined = words.join(" ");
    format!("{}{}.", joined[..1].to_uppercase(), &joined[1..])
}

fn person_name(random: SeededRandom) -> (&'static str, &'static str) {
    (random.derive("first").pick::<&str>(&FIRST_NAMES), random.derive("last").pick::<&str>(&LAST_NAMES))
}

fn product_name(random: SeededRandom) -> String {
    format!("{} {}", random.derive("adjective").pick(&ADJECTIVES), random.derive("thing").pick(&THINGS))
}

/// The letters of a name that are valid in every email address.
fn ascii_name(name: &str) -> String {
    let letter = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() => Some(c),
        'ö' | 'ø' | 'ó' => Some('o'),
        'ë' => Some('e'),
        'ã' | 'á' => Some('a'),
        'í' => Some('i'),
        'ü' => Some('u'),
        _ => None,
    };
    name.chars().filter_map(letter).collect()
}

pub fn email(person: SeededRandom, random: SeededRandom, id: i64, unique: bool) -> String {
    let (first, last) = person_name(person);
    let number = if unique { id.to_string() } else { (random.derive("number").below(90) + 10).to_string() };
    format!(
        "{}.{}{number}@example.{}",
        ascii_name(first),
        ascii_name(last),
        random.derive("end").pick(&["com", "org", "net"])
    )
}

pub fn url(random: SeededRandom, id: i64) -> String {
    format!("https://example.{}/{}-{id}", random.derive("end").pick(&["com", "org", "net"]), word(random))
}

/// The day with this number from 2020 on; unique days run on from there.
pub fn date(day: i64, id: i64, unique: bool) -> String {
    let day = if unique { id.rem_euclid(2_900_000) } else { day };
    let begin = jiff::civil::date(2020, 1, 1);
    let span = jiff::Span::new().try_days(day).unwrap_or_default();
    begin.checked_add(span).unwrap_or(begin).to_string()
}

pub fn date_time(day: i64, random: SeededRandom, id: i64, unique: bool) -> String {
    let second = if unique { id.rem_euclid(86_400) as u64 } else { random.derive("second").below(86_400) };
    let day = date(day, if unique { id / 86_400 } else { id }, unique);
    format!("{day}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

/// The usual range of numbers in a field of this name.
pub fn typical_range(name: &str) -> (i64, i64) {
    let name = name.to_lowercase();
    let ranges: [(&[&str], (i64, i64)); 9] = [
        (&["year"], (1970, 2025)),
        (&["age"], (18, 90)),
        (&["rating", "stars", "score"], (1, 5)),
        (&["percent", "discount", "ratio"], (0, 100)),
        (&["price", "amount", "cost", "total", "salary", "fee"], (1, 500)),
        (&["quantity", "count", "stock", "seats"], (1, 20)),
        (&["latitude", "lat"], (-60, 60)),
        (&["longitude", "lng", "lon"], (-170, 170)),
        (&["weight", "height", "width", "length", "size"], (1, 200)),
    ];
    let matching = ranges.iter().find(|(names, _)| names.iter().any(|part| name.contains(part)));
    matching.map_or((1, 1_000), |(_, range)| *range)
}

/// A plausible text for a field of this name in a record of this type.
pub fn text_for_field(
    owner: FakeOwner<'_>,
    name: &str,
    random: SeededRandom,
    id: i64,
    unique: bool,
) -> String {
    let text = text_by_name(owner, &name.to_lowercase(), random, id, unique);
    // An email address contains its number already.
    if unique && !text.contains('@') { format!("{text} {id}") } else { text }
}

fn text_by_name(owner: FakeOwner<'_>, name: &str, random: SeededRandom, id: i64, unique: bool) -> String {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let (first, last) = person_name(owner.person_random(random));
    match () {
        () if has(&["email", "mail"]) => email(owner.person_random(random), random, id, unique),
        () if has(&["phone", "mobile", "fax"]) => {
            format!(
                "+1 555 {:03} {:04}",
                random.derive("area").below(1_000),
                random.derive("line").below(10_000)
            )
        }
        () if has(&["firstname", "first_name", "givenname"]) => first.to_owned(),
        () if has(&["lastname", "last_name", "surname", "familyname"]) => last.to_owned(),
        () if has(&["username", "login", "handle", "nick"]) => format!("{}{id}", ascii_name(first)),
        () if has(&["company", "organisation", "organization", "employer"]) => {
            format!("{last} {}", random.derive("company").pick(&COMPANY_SUFFIXES))
        }
        () if has(&["city", "town", "place"]) => (*random.derive("city").pick(&CITIES)).to_owned(),
        () if has(&["country", "nation"]) => (*random.derive("country").pick(&COUNTRIES)).to_owned(),
        () if has(&["street", "address"]) => {
            format!("{} {}", 1 + random.derive("house").below(200), random.derive("street").pick(&STREETS))
        }
        () if has(&["zip", "postal", "postcode"]) => format!("{:05}", random.derive("zip").below(100_000)),
        () if has(&["url", "website", "link", "homepage"]) => url(random, id),
        () if has(&["colour", "color"]) => (*random.derive("colour").pick(&COLOURS)).to_owned(),
        () if has(&["category", "kind", "group", "tag", "genre"]) => {
            (*random.derive("category").pick(&CATEGORIES)).to_owned()
        }
        () if has(&["sku", "code", "isbn", "number", "slug"]) => {
            format!("{}-{:05}", word(random), random.derive("code").below(100_000))
        }
        () if has(&["title", "subject", "headline"]) => {
            let words = sentence(random);
            words.split_whitespace().take(4).collect::<Vec<_>>().join(" ").trim_end_matches('.').to_owned()
        }
        () if has(&[
            "description",
            "body",
            "text",
            "content",
            "comment",
            "note",
            "summary",
            "bio",
            "message",
        ]) =>
        {
            let count = 1 + random.derive("sentences").below(3);
            (0..count)
                .map(|position| sentence(random.derive_number(position + 100)))
                .collect::<Vec<_>>()
                .join(" ")
        }
        () if has(&["author", "owner", "person"]) || (owner.is_person() && has(&["name"])) => {
            format!("{first} {last}")
        }
        () if has(&["name", "item", "product", "label"]) => product_name(random),
        () => format!("{} {}", word(random), word(random.derive("second"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_the_field_name() {
        let text = |type_name: &str, name: &str| {
            text_for_field(FakeOwner { type_name, record_random: None }, name, SeededRandom(7), 3, false)
        };
        assert!(text("User", "email").contains("@example."));
        assert!(text("Customer", "phone").starts_with("+1 555 "));
        assert!(CITIES.contains(&text("Shop", "city").as_str()));
        assert_eq!(text("User", "name").split(' ').count(), 2);
        assert!(THINGS.iter().any(|thing| text("Product", "name").ends_with(thing)));
        assert!(text("Article", "body").ends_with('.'));
    }

    #[test]
    fn same_seed_gives_same_values() {
        for number in 0..100 {
            let random = SeededRandom(number);
            assert_eq!(email(random, random, 1, false), email(random, random, 1, false));
            assert_ne!(email(random, random, 1, true), email(random, random, 2, true));
            let day = date(0, number as i64, true);
            assert!(day.parse::<jiff::civil::Date>().is_ok(), "{day}");
        }
    }
}
