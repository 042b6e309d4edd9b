//! That a large schema with hundreds of unknown operations is read and explained without delay.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use trefoil_engine::{ResolverBinding, ResolverRegistry, binding};
use trefoil_model::diagnostic::render_all;
use trefoil_model::{SourceFile, parse_schema};

/// Unoptimised and beside other tests this takes about a second; comparing every pair of names letter by letter took
/// ninety.
const MAX_TIME: Duration = Duration::from_secs(20);

#[test]
fn unknown_operations_of_a_large_schema_are_explained_at_once() {
    let (mut sdl, mut mutations) = (String::new(), String::new());
    for number in 0..300 {
        // The unknown scalar gives a warning, which is shown with its line.
        let _ = writeln!(
            sdl,
            "type ProductVariantChannelListing{number:03} {{ id: ID! name: String! mark(a: Int): Int }}"
        );
        let _ = writeln!(mutations, "  productVariantChannelListingAssign{number:03}(x: Int): String");
    }
    let text = format!("type Query {{ version: String }}\n{sdl}type Mutation {{\n{mutations}}}\n");
    let file = SourceFile { name: "schema.graphqls".into(), text };
    let start = Instant::now();
    let (model, warnings) = parse_schema(std::slice::from_ref(&file), &[]).expect("a valid schema");
    let bindings = binding::bind_root_fields(&model, &ResolverRegistry::default());
    let shown = render_all(&[file], &warnings);
    let taken = start.elapsed();
    let missing = bindings.iter().filter(|binding| matches!(binding, ResolverBinding::Missing(_))).count();
    assert_eq!((missing, shown.matches("mark").count() >= 300), (301, true));
    assert!(taken < MAX_TIME, "it took {taken:?}");
}
