//! Names, places and sentences, and which of them the name of a field asks for.

use crate::SeededRandom;

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

pub fn word(chance: SeededRandom) -> &'static str {
    chance.derive("word").pick::<&str>(&WORDS)
}

pub fn sentence(chance: SeededRandom) -> String {
    let count = 5 + chance.derive("count").below(8);
    let words: Vec<&str> = (0..count).map(|at| word(chance.derive_number(at))).collect();
    let joined = words.join(" ");
    format!("{}{}.", joined[..1].to_uppercase(), &joined[1..])
}

fn person_name(chance: SeededRandom) -> (&'static str, &'static str) {
    (chance.derive("first").pick::<&str>(&FIRST_NAMES), chance.derive("last").pick::<&str>(&LAST_NAMES))
}

fn product_name(chance: SeededRandom) -> String {
    format!("{} {}", chance.derive("adjective").pick(&ADJECTIVES), chance.derive("thing").pick(&THINGS))
}

/// Letters that every address takes.
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

pub fn email(chance: SeededRandom, id: i64, unique: bool) -> String {
    let (first, last) = person_name(chance);
    let number = if unique { id.to_string() } else { (chance.derive("number").below(90) + 10).to_string() };
    format!(
        "{}.{}{number}@example.{}",
        ascii_name(first),
        ascii_name(last),
        chance.derive("end").pick(&["com", "org", "net"])
    )
}

pub fn url(chance: SeededRandom, id: i64) -> String {
    format!("https://example.{}/{}-{id}", chance.derive("end").pick(&["com", "org", "net"]), word(chance))
}

/// A day of the years 2020 to 2025; where no two may be the same, each its own.
pub fn date(chance: SeededRandom, id: i64, unique: bool) -> String {
    let day = if unique { id.rem_euclid(2_900_000) } else { chance.derive("day").below(2_192) as i64 };
    let begin = jiff::civil::date(2020, 1, 1);
    let span = jiff::Span::new().try_days(day).unwrap_or_default();
    begin.checked_add(span).unwrap_or(begin).to_string()
}

pub fn date_time(chance: SeededRandom, id: i64, unique: bool) -> String {
    let second = if unique { id.rem_euclid(86_400) as u64 } else { chance.derive("second").below(86_400) };
    let day = date(chance, if unique { id / 86_400 } else { id }, unique);
    format!("{day}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

/// From where to where numbers of this name usually go.
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
    let found = ranges.iter().find(|(names, _)| names.iter().any(|one| name.contains(one)));
    found.map_or((1, 1_000), |(_, range)| *range)
}

/// What a text of this name in a record of this type may be.
pub fn text_for_field(owner: &str, name: &str, chance: SeededRandom, id: i64, unique: bool) -> String {
    let text = text_by_name(owner, &name.to_lowercase(), chance, id, unique);
    // An address of mail has its number inside.
    if unique && !text.contains('@') { format!("{text} {id}") } else { text }
}

fn text_by_name(owner: &str, name: &str, chance: SeededRandom, id: i64, unique: bool) -> String {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let (first, last) = person_name(chance);
    let is_person = [
        "user", "customer", "person", "author", "member", "employee", "student", "teacher", "contact",
        "guest",
    ]
    .iter()
    .any(|word| owner.to_lowercase().contains(word));
    match () {
        () if has(&["email", "mail"]) => email(chance, id, unique),
        () if has(&["phone", "mobile", "fax"]) => {
            format!(
                "+1 555 {:03} {:04}",
                chance.derive("area").below(1_000),
                chance.derive("line").below(10_000)
            )
        }
        () if has(&["firstname", "first_name", "givenname"]) => first.to_owned(),
        () if has(&["lastname", "last_name", "surname", "familyname"]) => last.to_owned(),
        () if has(&["username", "login", "handle", "nick"]) => format!("{}{id}", ascii_name(first)),
        () if has(&["company", "organisation", "organization", "employer"]) => {
            format!("{last} {}", chance.derive("company").pick(&COMPANY_SUFFIXES))
        }
        () if has(&["city", "town", "place"]) => (*chance.derive("city").pick(&CITIES)).to_owned(),
        () if has(&["country", "nation"]) => (*chance.derive("country").pick(&COUNTRIES)).to_owned(),
        () if has(&["street", "address"]) => {
            format!("{} {}", 1 + chance.derive("house").below(200), chance.derive("street").pick(&STREETS))
        }
        () if has(&["zip", "postal", "postcode"]) => format!("{:05}", chance.derive("zip").below(100_000)),
        () if has(&["url", "website", "link", "homepage"]) => url(chance, id),
        () if has(&["colour", "color"]) => (*chance.derive("colour").pick(&COLOURS)).to_owned(),
        () if has(&["category", "kind", "group", "tag", "genre"]) => {
            (*chance.derive("category").pick(&CATEGORIES)).to_owned()
        }
        () if has(&["sku", "code", "isbn", "number", "slug"]) => {
            format!("{}-{:05}", word(chance), chance.derive("code").below(100_000))
        }
        () if has(&["title", "subject", "headline"]) => {
            let words = sentence(chance);
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
            let count = 1 + chance.derive("sentences").below(3);
            (0..count).map(|at| sentence(chance.derive_number(at + 100))).collect::<Vec<_>>().join(" ")
        }
        () if has(&["author", "owner", "person"]) || (is_person && has(&["name"])) => {
            format!("{first} {last}")
        }
        () if has(&["name", "item", "product", "label"]) => product_name(chance),
        () => format!("{} {}", word(chance), word(chance.derive("second"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_suggest_what_a_text_is() {
        let text = |owner: &str, name: &str| text_for_field(owner, name, SeededRandom(7), 3, false);
        assert!(text("User", "email").contains("@example."));
        assert!(text("Customer", "phone").starts_with("+1 555 "));
        assert!(CITIES.contains(&text("Shop", "city").as_str()));
        assert_eq!(text("User", "name").split(' ').count(), 2);
        assert!(THINGS.iter().any(|thing| text("Product", "name").ends_with(thing)));
        assert!(text("Article", "body").ends_with('.'));
    }

    #[test]
    fn the_same_seed_gives_the_same() {
        for number in 0..100 {
            assert_eq!(email(SeededRandom(number), 1, false), email(SeededRandom(number), 1, false));
            assert_ne!(email(SeededRandom(number), 1, true), email(SeededRandom(number), 2, true));
            let day = date(SeededRandom(number), number as i64, true);
            assert!(day.parse::<jiff::civil::Date>().is_ok(), "{day}");
        }
    }
}
