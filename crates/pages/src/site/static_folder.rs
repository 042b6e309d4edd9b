//! The files of `static/`, each at its name and at an address that changes with its content.

use std::collections::HashMap;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, HeaderValue};
use xxhash_rust::xxh3::xxh3_64;

use trefoil_application::App;
use trefoil_http::errors::problem::{Problem, not_found};
use trefoil_http::etags;

use super::site_style;

/// Where the files are.
const ADDRESS: &str = "/_/static/";

/// A file of this name is linked by every page, after all other styles.
const LAST_STYLE: &str = "theme.css";

/// The style sheet of `[theme]`. No file has this name, because hidden ones are not read.
const COLORS_STYLE: &str = ".theme.css";

/// The types of files by the ends of their names. Others are for downloads.
const MEDIA_TYPES: [(&str, &str); 28] = [
    ("avif", "image/avif"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("gif", "image/gif"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("webm", "video/webm"),
    ("webmanifest", "application/manifest+json"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
];

/// The files of an application, ready to serve.
#[derive(Debug, Default)]
pub struct StaticFolder {
    /// By their names.
    files: HashMap<String, ServedFile>,
    /// Names by the names with hashes.
    by_hashed: HashMap<String, String>,
}

#[derive(Debug)]
struct ServedFile {
    bytes: Bytes,
    media_type: &'static str,
    hash: String,
    /// With the hash, ready for a link.
    address: String,
}

impl StaticFolder {
    pub fn new(app: &App) -> StaticFolder {
        let mut folder = StaticFolder::default();
        for file in &app.static_files {
            folder.add(&file.name, Bytes::copy_from_slice(&file.bytes));
        }
        if let Some(style) = site_style::style_of(&app.manifest.theme) {
            folder.add(COLORS_STYLE, style.into());
        }
        folder
    }

    fn add(&mut self, name: &str, bytes: Bytes) {
        let hash = format!("{:016x}", xxh3_64(&bytes));
        let hashed = match name.rsplit_once('.') {
            Some((stem, extension)) if !extension.contains('/') => format!("{stem}.{hash}.{extension}"),
            Some(_) | None => format!("{name}.{hash}"),
        };
        let address = format!("{ADDRESS}{}", encoded(&hashed));
        self.by_hashed.insert(hashed, name.to_owned());
        self.files.insert(name.to_owned(), ServedFile { bytes, media_type: media_type(name), hash, address });
    }

    /// The address of a file that changes with its content.
    pub fn address(&self, name: &str) -> Option<&str> {
        self.files.get(name).map(|file| file.address.as_str())
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str).filter(|name| *name != COLORS_STYLE)
    }

    /// The addresses of the style sheets that come after the built-in one, in their order.
    pub fn styles(&self) -> Vec<String> {
        let styles = [COLORS_STYLE, LAST_STYLE].into_iter().filter_map(|name| self.address(name));
        styles.map(str::to_owned).collect()
    }

    /// The file of exactly this name, with or without its hash.
    pub fn respond(&self, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        let (file, caching) = match self.by_hashed.get(name) {
            Some(name) => (self.files.get(name), "public, max-age=31536000, immutable"),
            None => (self.files.get(name), "no-cache"),
        };
        let file = file.ok_or_else(not_found)?;
        let tag = format!("\"{}\"", file.hash);
        etags::check_if_match(headers, Some(&tag))?;
        let response = (
            [(CONTENT_TYPE, file.media_type), (CACHE_CONTROL, caching)],
            [(ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes"))],
            file.bytes.clone(),
        );
        Ok(etags::not_modified_if_known(headers, response.into_response()))
    }
}

fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == extension);
    known.map_or("application/octet-stream", |(_, media_type)| media_type)
}

/// A path with what has a meaning in addresses escaped.
fn encoded(path: &str) -> String {
    let mut encoded = String::new();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_name_and_by_hashed_name_alone() {
        let mut folder = StaticFolder::default();
        folder.add("img/my logo.svg", Bytes::from_static(b"<svg/>"));
        folder.add("LICENSE", Bytes::from_static(b"mine"));
        let address = folder.address("img/my logo.svg").unwrap();
        assert!(address.starts_with("/_/static/img/my%20logo.") && address.ends_with(".svg"), "{address}");
        let hashed = address.strip_prefix(ADDRESS).unwrap().replace("%20", " ");
        let ask = |name: &str| folder.respond(name, &HeaderMap::new());
        let header =
            |response: &Response, name| response.headers().get(name).unwrap().to_str().unwrap().to_owned();
        let found = ask(&hashed).unwrap();
        assert_eq!(header(&found, CONTENT_TYPE), "image/svg+xml");
        assert!(header(&found, CACHE_CONTROL).contains("immutable"));
        assert_eq!(header(&ask("img/my logo.svg").unwrap(), CACHE_CONTROL), "no-cache");
        assert_eq!(header(&ask("LICENSE").unwrap(), CONTENT_TYPE), "application/octet-stream");
        for missing in ["", "img", "img/../LICENSE", "../LICENSE", "img/my%20logo.svg", "license", ".env"] {
            assert!(ask(missing).is_err(), "{missing}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(http::header::IF_NONE_MATCH, found.headers()[ETAG].clone());
        assert_eq!(folder.respond(&hashed, &headers).unwrap().status(), 304);
    }

    #[test]
    fn types_are_in_order_so_that_none_is_there_twice() {
        assert!(MEDIA_TYPES.is_sorted_by(|one, two| one.0 < two.0));
    }
}
