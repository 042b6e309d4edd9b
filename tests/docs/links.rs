//! Checks that every link of the documentation leads to an existing file and, where it names one, to a heading in it.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn guide_links_resolve() {
    let pages = fs::read_dir("docs").expect("the guide").map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> =
        pages.filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect();
    pages.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(PathBuf::from));
    let (mut checked, mut dead) = (0, Vec::new());
    for page in &pages {
        let text = fs::read_to_string(page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            checked += 1;
            if !leads_somewhere(page, link) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(checked > 50, "only {checked} links were found");
    assert!(dead.is_empty(), "{dead:#?}");
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap_or(Path::new("")).join(file),
    };
    if heading.is_empty() {
        return target.exists();
    }
    let text = fs::read_to_string(target).unwrap_or_default();
    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == heading)
}

/// What GitHub makes of a heading: small letters, digits and hyphens for spaces.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
