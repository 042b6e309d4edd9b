//! The clinic of `examples/apps`: it loads without a warning, and its pages say what its schema says about them.

use std::path::Path;

use crate::support::{Process, command};

const FOLDER: &str = "examples/apps/clinic";

/// A page, and what is on it in this order.
const PAGES: [(&str, &[&str]); 6] = [
    ("/", &["Front desk", "Practice", "Clinic"]),
    (
        "/patients",
        &[
            "1 to 4 of 4 patients, by last name, then first name",
            "Brandt, Tom",
            "Demir, Aylin (1 Jul 1972)",
            "Dr. Grete Öz",
            "Müller, Jonas (20 Nov 1999)",
            "Sum of balance",
            "-42.50",
        ],
    ),
    ("/appointments", &["23 Oct 2026, 09:00 CEST", "26 Oct 2026, 09:00 CET", "In the waiting room"]),
    ("/appointments?patient.lastName.contains.ci=dem", &["Starts", "26 Oct 2026, 09:00 CET"]),
    ("/invoices/1", &["Invoice 2026001", "Müller, Lena (3 Feb 1985)", "1,042.50", "4 × Laboratory"]),
    (
        "/patients/new",
        &["As on the insurance card.", "Date of birth", "<legend>Contact</legend>", "Postcode"],
    ),
];

#[test]
fn the_clinic_loads_without_a_warning() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = command(root, &["check", FOLDER, "--strict"]).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn the_clinic_has_pages_for_people() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = tempfile::tempdir().expect("a folder");
    let store = data.path().to_str().expect("a path");
    let process = Process::start(root, &["serve", FOLDER, "--data", store]);
    let mut client = process.client();
    for (path, expected) in PAGES {
        let reply = client.send("GET", path, &[("accept", "text/html")], b"");
        let text = reply.text();
        let mut rest = text.as_str();
        for words in expected {
            let found = rest.find(words).unwrap_or_else(|| panic!("{path} lacks {words:?}: {text}"));
            rest = &rest[found + words.len()..];
        }
    }
}
