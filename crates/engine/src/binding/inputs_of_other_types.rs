//! Input objects that describe another record than the one that is written.

use trefoil_model::naming::names::snake_words;
use trefoil_model::naming::operation_verbs::{TypeNoun, singular_words};
use trefoil_model::{Argument, Model, RecordType};

use crate::arguments::argument_roles::INPUT_ENDINGS;

/// True for an input object that is called like another type: `company: CompanyInput`. Alone it could still be that of
/// the record, unless its type is called so, too.
pub(super) fn describes_other(
    model: &Model,
    record: &RecordType,
    argument: &Argument,
    has_more: bool,
) -> bool {
    let Some(noun) = input_noun(&argument.name).filter(|_| !argument.fields.is_empty()) else { return false };
    let own = TypeNoun::new(&record.name, |_| false);
    let type_noun = input_noun(argument.ty.inner_name());
    if own.is_named(&noun) || type_noun.as_ref().is_some_and(|noun| own.is_named(noun)) {
        return false;
    }
    let is_other = |other: &RecordType| TypeNoun::new(&other.name, |_| false).is_named(&noun);
    (has_more || type_noun.as_ref() == Some(&noun)) && model.records.iter().any(is_other)
}

/// What an input object is of: `company` for `companyInput` and for `CreateCompanyDto`.
fn input_noun(name: &str) -> Option<String> {
    let words = snake_words(name);
    let verbs = ["create", "new", "add", "update", "edit", "save", "upsert"];
    let words = verbs.iter().find_map(|verb| words.strip_prefix(verb)?.strip_prefix('_')).unwrap_or(&words);
    let words = INPUT_ENDINGS
        .iter()
        .find_map(|ending| words.strip_suffix(ending)?.strip_suffix('_'))
        .unwrap_or(words);
    (!INPUT_ENDINGS.contains(&words)).then(|| singular_words(words))
}
