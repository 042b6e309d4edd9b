//! The words that the names of operations are made of: each verb with its synonyms, before or after the noun.

use heck::ToSnakeCase;

use crate::RootKind;

/// What the name of an operation says it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedVerb {
    List,
    Get,
    Create,
    Update,
    Delete,
    /// Updates if it is given the key of a record, else creates.
    Save,
    Created,
    Updated,
    Deleted,
}

/// One verb and its spellings. Words are in lower case, separated by spaces.
pub struct VerbRow {
    pub verb: NamedVerb,
    pub root: RootKind,
    pub before_noun: &'static [&'static str],
    pub after_noun: &'static [&'static str],
}

/// The table of verbs. Where a name has several readings, the declared type decides.
pub const VERB_TABLE: &[VerbRow] = &[
    VerbRow {
        verb: NamedVerb::List,
        root: RootKind::Query,
        before_noun: &[
            "",
            "all",
            "get all",
            "find all",
            "list all",
            "fetch all",
            "get",
            "find",
            "list",
            "fetch",
            "view all",
            "get list of",
        ],
        after_noun: &["", "list", "all"],
    },
    VerbRow {
        verb: NamedVerb::Get,
        root: RootKind::Query,
        before_noun: &[
            "",
            "get",
            "get one",
            "get single",
            "find",
            "find one",
            "fetch",
            "fetch one",
            "one",
            "single",
            "view",
        ],
        after_noun: &[""],
    },
    VerbRow {
        verb: NamedVerb::Create,
        root: RootKind::Mutation,
        before_noun: &["create", "add", "insert", "new", "create new", "add new"],
        after_noun: &["", "one"],
    },
    VerbRow {
        verb: NamedVerb::Create,
        root: RootKind::Mutation,
        before_noun: &[""],
        after_noun: &["create", "add"],
    },
    VerbRow {
        verb: NamedVerb::Update,
        root: RootKind::Mutation,
        before_noun: &["update", "edit", "modify", "change"],
        after_noun: &["", "one"],
    },
    VerbRow {
        verb: NamedVerb::Update,
        root: RootKind::Mutation,
        before_noun: &[""],
        after_noun: &["update", "edit"],
    },
    VerbRow {
        verb: NamedVerb::Delete,
        root: RootKind::Mutation,
        before_noun: &["delete", "remove"],
        after_noun: &["", "one"],
    },
    VerbRow {
        verb: NamedVerb::Delete,
        root: RootKind::Mutation,
        before_noun: &[""],
        after_noun: &["delete", "remove"],
    },
    VerbRow {
        verb: NamedVerb::Save,
        root: RootKind::Mutation,
        before_noun: &["save", "upsert", "create or update", "add or update"],
        after_noun: &[""],
    },
    VerbRow {
        verb: NamedVerb::Created,
        root: RootKind::Subscription,
        before_noun: &["new", "on new", "on create", "subscribe to new"],
        after_noun: &[""],
    },
    VerbRow {
        verb: NamedVerb::Created,
        root: RootKind::Subscription,
        before_noun: &["", "on"],
        after_noun: &["created", "added"],
    },
    VerbRow {
        verb: NamedVerb::Updated,
        root: RootKind::Subscription,
        before_noun: &["on update"],
        after_noun: &[""],
    },
    VerbRow {
        verb: NamedVerb::Updated,
        root: RootKind::Subscription,
        before_noun: &["", "on"],
        after_noun: &["updated", "edited", "modified"],
    },
    VerbRow {
        verb: NamedVerb::Deleted,
        root: RootKind::Subscription,
        before_noun: &["on delete"],
        after_noun: &[""],
    },
    VerbRow {
        verb: NamedVerb::Deleted,
        root: RootKind::Subscription,
        before_noun: &["", "on"],
        after_noun: &["deleted", "removed"],
    },
];

/// One way to read the name of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameReading {
    pub verb: NamedVerb,
    /// The words of the noun, joined by `_`; empty in `findAll`.
    pub noun: String,
    /// The words after `by`, joined by `_`: `title` in `booksByTitle`.
    pub by: Option<String>,
    /// The name has words besides the noun that say what it does.
    pub has_verb: bool,
}

/// All ways to read a name.
pub fn read_operation_name(root: RootKind, name: &str) -> Vec<NameReading> {
    let snake = name.to_snake_case();
    let words: Vec<&str> = snake.split('_').filter(|word| !word.is_empty()).collect();
    let mut readings: Vec<NameReading> = Vec::new();
    for (words, by) in split_by(&words) {
        for row in VERB_TABLE.iter().filter(|row| row.root == root) {
            for before in row.before_noun {
                for after in row.after_noun {
                    let Some(noun) = strip_words(&words, before, after) else { continue };
                    let reading = NameReading {
                        verb: row.verb,
                        noun: noun.join("_"),
                        by: by.clone(),
                        has_verb: !before.is_empty() || !after.is_empty(),
                    };
                    if !readings.contains(&reading) {
                        readings.push(reading);
                    }
                }
            }
        }
    }
    readings
}

/// The words as they are, and without a final `by …`.
fn split_by(words: &[&str]) -> Vec<(Vec<String>, Option<String>)> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    match words.iter().rposition(|word| *word == "by") {
        Some(at) if at + 1 < words.len() => {
            vec![(owned(&words[..at]), Some(words[at + 1..].join("_")))]
        }
        _ => vec![(owned(words), None)],
    }
}

/// The words between `before` and `after`.
fn strip_words<'w>(words: &'w [String], before: &str, after: &str) -> Option<&'w [String]> {
    let before: Vec<&str> = before.split(' ').filter(|word| !word.is_empty()).collect();
    let after: Vec<&str> = after.split(' ').filter(|word| !word.is_empty()).collect();
    let is_long_enough = words.len() >= before.len() + after.len();
    let starts = words.iter().zip(&before).all(|(word, wanted)| word == wanted);
    let ends = words.iter().rev().zip(after.iter().rev()).all(|(word, wanted)| word == wanted);
    (is_long_enough && starts && ends).then(|| &words[before.len()..words.len() - after.len()])
}

/// How the noun of an operation relates to the name of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NounFit {
    /// The name of the type, singular or plural.
    Exact,
    /// The name of the type without an ending like `Dto`.
    Stripped,
    Empty,
    /// Some words of the type's name: `accounts` for `BankAccount`.
    Part,
}

/// Endings of type names that do not belong to the noun.
const TYPE_ENDINGS: [&str; 7] = ["dto", "type", "entity", "model", "output", "view", "record"];

/// How a noun names a type, or `None` if it is another word.
pub fn noun_fit(noun: &str, type_name: &str) -> Option<NounFit> {
    if noun.is_empty() {
        return Some(NounFit::Empty);
    }
    let noun = singular_words(noun);
    let whole = singular_words(&type_name.to_snake_case());
    let stripped = TYPE_ENDINGS.iter().find_map(|ending| whole.strip_suffix(&format!("_{ending}")));
    if noun == whole {
        return Some(NounFit::Exact);
    }
    if stripped.is_some_and(|stripped| stripped == noun) {
        return Some(NounFit::Stripped);
    }
    let part = format!("_{noun}_");
    format!("_{}_", stripped.unwrap_or(&whole)).contains(&part).then_some(NounFit::Part)
}

/// The words with the last one in the singular.
pub fn singular_words(snake: &str) -> String {
    match snake.rsplit_once('_') {
        Some((before, last)) => format!("{before}_{}", crate::naming::inflection::singular(last)),
        None => crate::naming::inflection::singular(snake),
    }
}

/// True if the last word is a plural.
pub fn is_plural(snake: &str) -> bool {
    let last = snake.rsplit('_').next().unwrap_or(snake);
    crate::naming::inflection::singular(last) != last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_reading(root: RootKind, name: &str, verb: NamedVerb, noun: &str, by: Option<&str>) -> bool {
        read_operation_name(root, name)
            .iter()
            .any(|reading| reading.verb == verb && reading.noun == noun && reading.by.as_deref() == by)
    }

    #[test]
    fn names_of_real_schemas_are_read() {
        for (name, verb, noun, by) in [
            ("books", NamedVerb::List, "books", None),
            ("allBooks", NamedVerb::List, "books", None),
            ("getAllBooks", NamedVerb::List, "books", None),
            ("findAll", NamedVerb::List, "", None),
            ("bookList", NamedVerb::List, "book", None),
            ("book", NamedVerb::Get, "book", None),
            ("getBook", NamedVerb::Get, "book", None),
            ("bookById", NamedVerb::Get, "book", Some("id")),
            ("book_by_pk", NamedVerb::Get, "book", Some("pk")),
            ("getOneBankAccount", NamedVerb::Get, "bank_account", None),
            ("booksByTitle", NamedVerb::List, "books", Some("title")),
        ] {
            assert!(has_reading(RootKind::Query, name, verb, noun, by), "{name}");
        }
        for (name, verb, noun, by) in [
            ("createBook", NamedVerb::Create, "book", None),
            ("addBook", NamedVerb::Create, "book", None),
            ("insert_book_one", NamedVerb::Create, "book", None),
            ("bookCreate", NamedVerb::Create, "book", None),
            ("UpdateBook", NamedVerb::Update, "book", None),
            ("update_book_by_pk", NamedVerb::Update, "book", Some("pk")),
            ("removeBook", NamedVerb::Delete, "book", None),
            ("bookDelete", NamedVerb::Delete, "book", None),
            ("saveBook", NamedVerb::Save, "book", None),
            ("addBookToAuthor", NamedVerb::Create, "book_to_author", None),
        ] {
            assert!(has_reading(RootKind::Mutation, name, verb, noun, by), "{name}");
        }
        for (name, verb) in [
            ("bookAdded", NamedVerb::Created),
            ("newBook", NamedVerb::Created),
            ("onBookCreated", NamedVerb::Created),
            ("onCreateBook", NamedVerb::Created),
            ("bookRemoved", NamedVerb::Deleted),
        ] {
            assert!(has_reading(RootKind::Subscription, name, verb, "book", None), "{name}");
        }
    }

    #[test]
    fn nouns_fit_types() {
        for (noun, ty, expected) in [
            ("books", "Book", Some(NounFit::Exact)),
            ("order_lines", "OrderLine", Some(NounFit::Exact)),
            ("people", "Person", Some(NounFit::Exact)),
            ("events", "EventDTO", Some(NounFit::Stripped)),
            ("account", "BankAccount", Some(NounFit::Part)),
            ("jobs", "JobListing", Some(NounFit::Part)),
            ("", "Book", Some(NounFit::Empty)),
            ("my_books", "Book", None),
            ("ook", "Book", None),
        ] {
            assert_eq!(noun_fit(noun, ty), expected, "{noun} of {ty}");
        }
    }
}
