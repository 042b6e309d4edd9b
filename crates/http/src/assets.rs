//! Static files of the built-in pages: compressed in advance, named by content hash, cacheable for ever.

use std::io::Read;

use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue};
use xxhash_rust::xxh3::xxh3_64;

use crate::compression::AcceptedEncodings;
use crate::errors::problem::{Problem, not_found};

pub const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";
pub const ICON_TYPE: &str = "image/svg+xml";
pub const STYLE_TYPE: &str = "text/css; charset=utf-8";

/// One file; the page template refers to it by `placeholder`.
pub struct StaticAsset {
    pub placeholder: &'static str,
    pub stem: &'static str,
    pub extension: &'static str,
    pub media_type: &'static str,
    pub brotli: &'static [u8],
    pub gzip: &'static [u8],
}

/// The folders of files that are the same for everybody: the server brings them along, the last is the application's.
const ASSET_FOLDERS: [&str; 4] = ["/_/assets/", "/_/docs/", "/_/pages/", "/_/static/"];

/// Whether a path is in one of these folders.
pub fn is_asset_path(path: &str) -> bool {
    ASSET_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// A file of the `assets/` folder beside the source file that uses the macro, as `e2e/pack.mjs` and `e2e/vendor.mjs`
/// compress it.
#[macro_export]
macro_rules! embedded_asset {
    ($placeholder:literal, $stem:literal, $extension:literal, $media:expr) => {
        $crate::assets::StaticAsset {
            placeholder: $placeholder,
            stem: $stem,
            extension: $extension,
            media_type: $media,
            brotli: include_bytes!(concat!("assets/", $stem, ".", $extension, ".br")),
            gzip: include_bytes!(concat!("assets/", $stem, ".", $extension, ".gz")),
        }
    };
}

pub use embedded_asset;

/// The files of one page under their hashed names.
pub struct AssetFolder {
    /// The URL path of the folder, with a slash at the end.
    folder: &'static str,
    named_assets: Vec<(String, &'static StaticAsset)>,
}

impl AssetFolder {
    pub fn new(folder: &'static str, assets: &'static [StaticAsset]) -> AssetFolder {
        AssetFolder { folder, named_assets: assets.iter().map(|asset| (asset.file_name(), asset)).collect() }
    }

    /// The page with the URLs of its files filled in.
    pub fn fill_placeholders(&self, template: &str) -> String {
        self.named_assets.iter().fold(template.to_owned(), |page, (name, asset)| {
            page.replace(asset.placeholder, &format!("{}{name}", self.folder))
        })
    }

    pub fn respond(&self, name: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        let found = self.named_assets.iter().find(|(known, _)| *known == name);
        found.map(|(_, asset)| asset.respond(headers)).ok_or_else(not_found)
    }

    pub fn count(&self) -> usize {
        self.named_assets.len()
    }
}

impl StaticAsset {
    /// Such as `graphiql.0123456789abcdef.js`.
    fn file_name(&self) -> String {
        format!("{}.{:016x}.{}", self.stem, xxh3_64(self.brotli), self.extension)
    }

    fn respond(&self, headers: &HeaderMap) -> Response {
        let common_headers = [
            (CONTENT_TYPE, HeaderValue::from_static(self.media_type)),
            (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
            (VARY, ACCEPT_ENCODING.into()),
        ];
        let accepted = AcceptedEncodings::from_headers(headers);
        if accepted.accepts(&["br"]) {
            (common_headers, [(CONTENT_ENCODING, "br")], self.brotli).into_response()
        } else if accepted.accepts(&["gzip", "x-gzip"]) {
            (common_headers, [(CONTENT_ENCODING, "gzip")], self.gzip).into_response()
        } else {
            (common_headers, inflate(self.gzip)).into_response()
        }
    }
}

/// For the few clients that accept no compression.
fn inflate(gzip: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut bytes).expect("the embedded file is gzip");
    bytes
}
