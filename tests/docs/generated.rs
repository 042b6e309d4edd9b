//! Compares the table of generated operations in the guide with what is generated.

use std::fs;

use super::blocks;

const PAGE: &str = "docs/operations.md";

/// Every operation in the table of generated ones is what the schema above it gets, and no other.
#[test]
fn generated_operations_are_as_the_guide_says() {
    let schema = blocks(PAGE).into_iter().find(|block| block.language == "graphqls").expect("a schema");
    let file = trefoil_model::SourceFile { name: PAGE.to_owned(), text: schema.text };
    let (model, warnings) = trefoil_model::parse_schema(&[file], &[]).expect("a schema");
    assert_eq!(warnings, []);
    let page = fs::read_to_string(PAGE).expect("the page");
    let section =
        page.split("\n## ").find(|section| section.starts_with("Generated operations")).expect("it");
    let rows = section.lines().filter(|line| {
        line.starts_with("| Query") || line.starts_with("| Mutation") || line.starts_with("| Subscription")
    });
    let texts: Vec<&str> =
        rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(|text| text.contains('(')).collect();
    let mut fields = model.root_fields.iter();
    for text in texts {
        let field = fields.next().expect("as many operations");
        match text.strip_suffix("(…)") {
            Some(name) => assert_eq!(name, field.name),
            None => {
                let line = format!("\n  {text}\n");
                assert!(
                    text.starts_with(&field.name) && model.generated.contains(&line),
                    "{text}\n{}",
                    model.generated
                );
            }
        }
    }
    assert_eq!(fields.next().map(|field| &field.name), None);
}
