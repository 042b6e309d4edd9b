//! The words that the names of operations are made of: each verb with its synonyms, before or after the noun.

use std::sync::LazyLock;

use heck::ToSnakeCase;

use crate::RootType;

/// What the name of an operation says it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedVerb {
    List,
    /// Lists what contains a text.
    Search,
    Get,
    Count,
    Exists,
    Create,
    Update,
    /// Updates the field that the name names: `setOrderStatus`.
    Set,
    Delete,
    /// Updates if it is given the key of a record, else creates.
    Save,
    Created,
    Updated,
    Deleted,
}

/// One verb and its spellings, separated by spaces.
pub struct VerbRow {
    pub verb: NamedVerb,
    pub root: RootType,
    /// What stands before the noun: `getAll` in `getAllBooks`.
    pub before: &'static str,
    /// What stands after it: `List` in `bookList`.
    pub after: &'static str,
    /// The noun alone is enough, and may have words on both sides. Other verbs need a word on one side.
    pub is_optional: bool,
}

/// The table of verbs, in English and, as many schemas have them, in Spanish, Portuguese, French and Indonesian. Where a name has several readings, the
/// declared type decides.
///
/// `insert_book_one` is read like `insert_book`, `onBookCreated` like `bookCreated`, `getBookCount` like `bookCount`.
pub const VERB_TABLE: &[VerbRow] = &[
    VerbRow {
        verb: NamedVerb::List,
        root: RootType::Query,
        before: "all getAll findAll listAll fetchAll viewAll loadAll showAll readAll retrieveAll \
                 getListOf getList get find list fetch load retrieve listar listarTodos obtener obtenerTodos buscar",
        after: "List All Page Paged Paginated",
        is_optional: true,
    },
    VerbRow {
        verb: NamedVerb::Get,
        root: RootType::Query,
        before: "get getOne getSingle find findOne fetch fetchOne load show read retrieve one single view \
                 obtener buscar",
        after: "Details Detail Info",
        is_optional: true,
    },
    query_row(NamedVerb::Search, "search searchAll searchFor", "Search"),
    query_row(NamedVerb::Count, "count countAll numberOf", "Count"),
    query_row(NamedVerb::Exists, "exists", "Exists"),
    mutation_row(
        NamedVerb::Create,
        "create add insert new createNew addNew post store crear agregar insertar \
         criar adicionar creer ajouter buat tambah",
        "Create Add",
    ),
    mutation_row(
        NamedVerb::Update,
        "update edit modify change patch actualizar editar modificar atualizar ubah",
        "Update Edit",
    ),
    mutation_row(NamedVerb::Set, "set", ""),
    mutation_row(NamedVerb::Save, "save upsert createOrUpdate addOrUpdate saveOrUpdate put guardar", ""),
    mutation_row(
        NamedVerb::Delete,
        "delete del remove destroy eliminar borrar deletar excluir remover supprimer hapus",
        "Delete Remove",
    ),
    subscription_row(
        NamedVerb::Created,
        "new onNew onCreate subscribeToNew notifyNew",
        "Created Added Posted",
    ),
    subscription_row(NamedVerb::Updated, "onUpdate", "Updated Edited Modified"),
    subscription_row(NamedVerb::Deleted, "onDelete", "Deleted Removed"),
];

const fn query_row(verb: NamedVerb, before: &'static str, after: &'static str) -> VerbRow {
    VerbRow { verb, root: RootType::Query, before, after, is_optional: false }
}

const fn mutation_row(verb: NamedVerb, before: &'static str, after: &'static str) -> VerbRow {
    VerbRow { verb, root: RootType::Mutation, before, after, is_optional: false }
}

const fn subscription_row(verb: NamedVerb, before: &'static str, after: &'static str) -> VerbRow {
    VerbRow { verb, root: RootType::Subscription, before, after, is_optional: false }
}

/// A word before the noun and one after it that together say a verb. Either may be missing.
struct VerbSpelling {
    verb: NamedVerb,
    root: RootType,
    before: Vec<String>,
    after: Vec<String>,
}

static VERB_SPELLINGS: LazyLock<Vec<VerbSpelling>> =
    LazyLock::new(|| VERB_TABLE.iter().flat_map(row_spellings).collect());

fn row_spellings(row: &VerbRow) -> Vec<VerbSpelling> {
    let before: Vec<&str> = row.before.split_whitespace().collect();
    let after: Vec<&str> = row.after.split_whitespace().collect();
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    if row.is_optional {
        let either = |words: &[&'static str]| [&[""], words].concat();
        for before in either(&before) {
            pairs.extend(either(&after).into_iter().map(|after| (before, after)));
        }
    } else {
        pairs.extend(before.into_iter().map(|before| (before, "")));
        pairs.extend(after.into_iter().map(|after| ("", after)));
    }
    let with_before = |word: &'static str| -> Vec<(&str, &str)> {
        let only_after = pairs.iter().filter(|(before, after)| before.is_empty() && !after.is_empty());
        only_after.map(|(_, after)| (word, *after)).collect()
    };
    let more = match row.root {
        RootType::Query => with_before("get"),
        RootType::Mutation => {
            let only_before = pairs.iter().filter(|(before, _)| !before.is_empty());
            only_before.map(|(before, _)| (*before, "one")).collect()
        }
        RootType::Subscription => with_before("on"),
    };
    let spelling = |(before, after): (&str, &str)| VerbSpelling {
        verb: row.verb,
        root: row.root,
        before: split_words(before),
        after: split_words(after),
    };
    pairs.into_iter().chain(more).map(spelling).collect()
}

/// One way to read the name of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameReading {
    pub verb: NamedVerb,
    /// The words of the noun, joined by `_`, the last one in the singular; empty in `findAll`.
    pub noun: String,
    /// The words after `by`, joined by `_`: `title` in `booksByTitle`.
    pub by: Option<String>,
    /// The name has words besides the noun that say what it does.
    pub has_verb: bool,
}

/// All ways to read a name.
pub fn read_operation_name(root: RootType, name: &str) -> Vec<NameReading> {
    let words = split_words(name);
    let (words, by) = split_by(&words);
    let mut readings: Vec<NameReading> = Vec::new();
    for spelling in VERB_SPELLINGS.iter().filter(|spelling| spelling.root == root) {
        let Some(noun) = words.strip_prefix(spelling.before.as_slice()) else { continue };
        let Some(noun) = noun.strip_suffix(spelling.after.as_slice()) else { continue };
        let reading = NameReading {
            verb: spelling.verb,
            noun: singular_words(&noun.join("_")),
            by: by.clone(),
            has_verb: !spelling.before.is_empty() || !spelling.after.is_empty(),
        };
        if !readings.contains(&reading) {
            readings.push(reading);
        }
    }
    readings
}

/// The ways to read a name whose verb is written together with the noun: `getproducts`, `deletebook`. The noun must be
/// one that is known, so that `address` adds nothing.
pub fn read_joined_name(
    root: RootType,
    name: &str,
    is_known: impl Fn(&str) -> bool,
) -> impl Iterator<Item = NameReading> {
    let words = split_words(name);
    let (words, by) = split_by(&words);
    let first = words.first().cloned().unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default().to_vec();
    let spellings = VERB_SPELLINGS.iter().filter(move |spelling| spelling.root == root);
    let joined = spellings.filter_map(move |spelling| {
        let ([verb], []) = (spelling.before.as_slice(), spelling.after.as_slice()) else { return None };
        let noun = first.strip_prefix(verb.as_str()).filter(|noun| !noun.is_empty())?;
        let noun = [noun].into_iter().chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join("_");
        Some((spelling.verb, singular_words(&noun)))
    });
    let known = joined.filter(move |(_, noun)| is_known(noun));
    known.map(move |(verb, noun)| NameReading { verb, noun, by: by.clone(), has_verb: true })
}

fn split_words(name: &str) -> Vec<String> {
    name.to_snake_case().split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The words without a final `by …`, and the words after `by`. Names in Spanish have `por`.
fn split_by(words: &[String]) -> (&[String], Option<String>) {
    match words.iter().rposition(|word| word == "by" || word == "por") {
        Some(at) if at + 1 < words.len() => (&words[..at], Some(words[at + 1..].join("_"))),
        // `updateBookWithId` is `updateBookById`.
        _ => match words.strip_suffix(&["with".to_owned(), "id".to_owned()]) {
            Some(rest) => (rest, Some("id".to_owned())),
            None => (words, None),
        },
    }
}

/// How the noun of an operation relates to the name of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NounFit {
    /// The name of the type, singular or plural.
    Exact,
    /// The name of the type without an ending like `Dto`.
    Stripped,
    /// With more words, which an argument explains: `userPosts(userId: ID!)` for Post.
    Qualified,
    Empty,
    /// Some words of the type's name: `accounts` for `BankAccount`.
    Part,
}

/// Endings of type names that do not belong to the noun.
const TYPE_ENDINGS: [&str; 7] = ["dto", "type", "entity", "model", "output", "view", "record"];

/// Endings that do not belong to the noun unless there is a type without them: `UserResponse` beside `User`.
const RESULT_ENDINGS: [&str; 4] = ["response", "resource", "gql", "vo"];

/// The words of a type's name, prepared to be compared with the nouns of many operations.
#[derive(Debug)]
pub struct TypeNoun {
    /// Joined by `_`, the last one in the singular.
    pub words: String,
    /// Without endings like `Dto`.
    stripped: Option<String>,
    /// The ending is that of a result: `QuestionResponse` without a Question.
    is_response: bool,
}

impl TypeNoun {
    /// `is_type` tells whether words in the singular are the name of a type.
    pub fn new(type_name: &str, is_type: impl Fn(&str) -> bool) -> TypeNoun {
        let words = type_words(type_name);
        let strip = |words: &str, endings: &[&str]| {
            let rest = endings.iter().find_map(|ending| words.strip_suffix(ending)?.strip_suffix('_'));
            rest.map(singular_words)
        };
        let stripped = strip(&words, &TYPE_ENDINGS);
        let rest = strip(stripped.as_deref().unwrap_or(&words), &RESULT_ENDINGS);
        // `ShopDtoResponse` is a Shop.
        let rest = rest.map(|rest| strip(&rest, &TYPE_ENDINGS).unwrap_or(rest)).filter(|rest| !is_type(rest));
        TypeNoun { is_response: rest.is_some(), stripped: rest.or(stripped), words }
    }

    /// How a noun, in the singular, names the type, or `None` if it is another word.
    pub fn fit(&self, noun: &str) -> Option<NounFit> {
        let stripped = self.stripped.as_deref();
        if noun.is_empty() {
            Some(NounFit::Empty)
        } else if self.is_own_word(noun) || singular_each(noun) == self.words {
            Some(NounFit::Exact)
        } else if stripped == Some(noun) {
            Some(NounFit::Stripped)
        } else {
            let is_part = |whole: &str| format!("_{whole}_").contains(&format!("_{noun}_"));
            // `user` for UsersMvc, too.
            let whole = stripped.unwrap_or(&self.words);
            let is_part = is_part(whole) || is_part(&singular_each(whole));
            // `preference_type` for WebPreferenceType, but not `type` alone.
            let is_end = noun.contains('_') && self.ends_with(noun);
            (is_part || is_end).then_some(NounFit::Part)
        }
    }

    /// The same letters, or a plural as Spanish has it, which has lost its `s`: `vendedore` for Vendedor.
    fn is_own_word(&self, noun: &str) -> bool {
        let takes_es =
            |word: &str| ["or", "on", "ol", "al", "el"].iter().any(|ending| word.ends_with(ending));
        has_same_letters(noun, &self.words)
            || noun.strip_suffix('e').is_some_and(|word| word == self.words && takes_es(word))
    }

    /// True if the type's name has an ending that does not belong to the noun.
    pub fn has_ending(&self) -> bool {
        self.stripped.is_some()
    }

    /// The words before the name of the type: `user` in `user_post` for Post.
    pub fn words_before<'n>(&self, noun: &'n str) -> Option<&'n str> {
        self.names().find_map(|name| noun.strip_suffix(name)?.strip_suffix('_'))
    }

    /// The words after the name of the type: `status` in `order_status` for Order.
    pub fn words_after<'n>(&self, noun: &'n str) -> Option<&'n str> {
        self.names().find_map(|name| noun.strip_prefix(name)?.strip_prefix('_'))
    }

    /// The name of the type, with and without an ending like `Dto`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.words.as_str()).chain(self.stripped.as_deref())
    }

    /// True if the words end the name of the type: `list` and `movie_list` for MovieList.
    pub fn ends_with(&self, words: &str) -> bool {
        self.names().any(|name| name == words || name.ends_with(&format!("_{words}")))
    }

    /// True if the noun is what the type is the response of: `question` for QuestionResponse.
    pub fn is_response_of(&self, noun: &str) -> bool {
        self.is_response && self.stripped.as_deref() == Some(noun)
    }

    /// True if the noun is the name of the type, perhaps without an ending like `Dto`.
    pub fn is_named(&self, noun: &str) -> bool {
        matches!(self.fit(noun), Some(NounFit::Exact | NounFit::Stripped))
    }
}

/// True if the words are the same, with or without breaks between them: `pettype` for PetType.
fn has_same_letters(one: &str, other: &str) -> bool {
    one.bytes().filter(|byte| *byte != b'_').eq(other.bytes().filter(|byte| *byte != b'_'))
}

/// Each of the words in the singular: `decks_with_card` is `deck_with_card`.
fn singular_each(words: &str) -> String {
    words.split('_').map(crate::naming::inflection::singular).collect::<Vec<String>>().join("_")
}

/// The words of a type's name, the last one in the singular.
pub fn type_words(type_name: &str) -> String {
    singular_words(&type_name.to_snake_case())
}

/// The words with the last one in the singular.
pub fn singular_words(snake: &str) -> String {
    match snake.rsplit_once('_') {
        Some((before, last)) => format!("{before}_{}", crate::naming::inflection::singular(last)),
        None => crate::naming::inflection::singular(snake),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_reading(root: RootType, name: &str, verb: NamedVerb, noun: &str, by: Option<&str>) -> bool {
        read_operation_name(root, name)
            .iter()
            .any(|reading| reading.verb == verb && reading.noun == noun && reading.by.as_deref() == by)
    }

    #[test]
    fn names_of_real_schemas_are_read() {
        for (name, verb, noun, by) in [
            ("books", NamedVerb::List, "book", None),
            ("allBooks", NamedVerb::List, "book", None),
            ("getAllBooks", NamedVerb::List, "book", None),
            ("findAll", NamedVerb::List, "", None),
            ("bookList", NamedVerb::List, "book", None),
            ("book", NamedVerb::Get, "book", None),
            ("getBook", NamedVerb::Get, "book", None),
            ("bookById", NamedVerb::Get, "book", Some("id")),
            ("book_by_pk", NamedVerb::Get, "book", Some("pk")),
            ("getOneBankAccount", NamedVerb::Get, "bank_account", None),
            ("booksByTitle", NamedVerb::List, "book", Some("title")),
        ] {
            assert!(has_reading(RootType::Query, name, verb, noun, by), "{name}");
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
            assert!(has_reading(RootType::Mutation, name, verb, noun, by), "{name}");
        }
        for (name, verb) in [
            ("bookAdded", NamedVerb::Created),
            ("newBook", NamedVerb::Created),
            ("onBookCreated", NamedVerb::Created),
            ("onCreateBook", NamedVerb::Created),
            ("bookRemoved", NamedVerb::Deleted),
        ] {
            assert!(has_reading(RootType::Subscription, name, verb, "book", None), "{name}");
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
            assert_eq!(TypeNoun::new(ty, |_| false).fit(&singular_words(noun)), expected, "{noun} of {ty}");
        }
    }
}
