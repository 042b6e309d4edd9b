//! Checks the order that `@display(sort:)` gives the lists of a type.

use trefoil_model::sdl::schema_warning::SortMistake;
use trefoil_model::{Diagnostic, Model};

use crate::arguments::sort_keys::parse_sort_key;

/// The words that lists cannot be sorted by.
pub fn order_mistakes(model: &Model) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    for record in &model.records {
        for word in &record.display.sort {
            for violation in parse_sort_key(model, record, "sort", word).err().into_iter().flatten() {
                let (type_name, word) = (record.name.clone(), word.clone());
                mistakes.push(SortMistake { type_name, word, message: violation.message });
            }
        }
    }
    model.locate_sort_mistakes(mistakes)
}

#[cfg(test)]
mod tests {
    use trefoil_model::{SourceFile, parse_schema};

    use super::*;

    #[test]
    fn words_are_read_as_those_of_requests() {
        const SCHEMA: &str = r#"
type Patient @display(sort: ["-lastName", "doctor.nme", "tags", "-address.city", "address.zip.x", "LAST_NAME_DESC", "@rank"]) {
  id: ID! lastName: String! doctor: Doctor tags: [String!] address: Address
}
type Doctor @display(sort: "naem") { id: ID! name: String! }
type Address { city: String zip: String }
"#;
        let file = SourceFile { name: "a.graphqls".into(), text: SCHEMA.into() };
        let model = parse_schema(&[file], &[]).expect("a schema that can be read").0;
        let shown: Vec<String> = order_mistakes(&model).iter().map(Diagnostic::to_string).collect();
        let expected = [
            "a.graphqls:2:43: Doctor has no field `nme` to sort by; did you mean `name`?",
            "a.graphqls:2:57: Patient has no field `tags` to sort by",
            "a.graphqls:2:82: `zip` is a single value, which has no fields to sort by",
            "a.graphqls:5:28: Doctor has no field `naem` to sort by; did you mean `name`?",
        ];
        assert_eq!(shown, expected);
    }
}
