//! The files of the Sample Resource API, built into the binary.

use trefoil_model::SourceFile;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../../app/", $name)))),+]
    };
}

const SAMPLE_FILES: [(&str, &str); 8] = files![
    "graphql/shop.graphqls",
    "graphql/users.graphqls",
    "seed/articles.json",
    "seed/customers.json",
    "seed/orders.json",
    "seed/products.json",
    "seed/users.json",
    "trefoil.toml",
];

pub fn sample_files() -> Vec<SourceFile> {
    SAMPLE_FILES
        .iter()
        .map(|(name, text)| SourceFile { name: (*name).into(), text: (*text).into() })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::folder_reader;

    #[test]
    fn sample_contains_all_files_of_the_folder() {
        let (on_disk, mistakes) =
            folder_reader::read_app_folder(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../app")));
        assert_eq!(mistakes, []);
        assert_eq!(sample_files(), on_disk);
    }
}
