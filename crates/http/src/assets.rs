//! Static files of the built-in pages: compressed in advance, named by content hash, cacheable for ever.

use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use crate::errors::problem::{Problem, not_found};
use crate::negotiation::accept::parse_encodings;

pub const SCRIPT_TYPE: &str = "text/javascript; charset=utf-8";
pub const ICON_TYPE: &str = "image/svg+xml";
pub const STYLE_TYPE: &str = "text/css; charset=utf-8";

/// One file; the page template refers to it by `placeholder`.
pub struct StaticAsset {
    pub placeholder: &'static str,
    pub stem: &'static str,
    pub extension: &'static str,
    pub media_type: &'static str,
    pub content: AssetContent,
}

pub enum AssetContent {
    Plain(&'static [u8]),
    Compressed { brotli: &'static [u8], gzip: &'static [u8] },
}

/// The folders of the files that the server brings along, the same for everybody.
const ASSET_FOLDERS: [&str; 3] = ["/_/assets/", "/_/docs/", "/_/pages/"];

/// Whether a path is in one of these folders.
pub fn is_asset_path(path: &str) -> bool {
    ASSET_FOLDERS.iter().any(|folder| path.starts_with(folder))
}

/// A file compressed by `e2e/vendor.mjs`, from the `assets/` folder beside the source file that uses the macro.
#[macro_export]
macro_rules! compressed_asset {
    ($placeholder:literal, $stem:literal, $extension:literal, $media:expr) => {
        $crate::assets::StaticAsset {
            placeholder: $placeholder,
            stem: $stem,
            extension: $extension,
            media_type: $media,
            content: $crate::assets::AssetContent::Compressed {
                brotli: include_bytes!(concat!("assets/", $stem, ".", $extension, ".br")),
                gzip: include_bytes!(concat!("assets/", $stem, ".", $extension, ".gz")),
            },
        }
    };
}

/// An uncompressed file, from the `assets/` folder beside the source file that uses the macro.
#[macro_export]
macro_rules! plain_asset {
    ($placeholder:literal, $stem:literal, $extension:literal, $media:expr) => {
        $crate::assets::StaticAsset {
            placeholder: $placeholder,
            stem: $stem,
            extension: $extension,
            media_type: $media,
            content: $crate::assets::AssetContent::Plain(include_bytes!(concat!(
                "assets/", $stem, ".", $extension
            ))),
        }
    };
}

pub use {compressed_asset, plain_asset};

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
        found.ok_or_else(not_found)?.1.respond(headers)
    }

    pub fn count(&self) -> usize {
        self.named_assets.len()
    }
}

impl StaticAsset {
    /// Such as `graphiql.0123456789abcdef.js`.
    fn file_name(&self) -> String {
        let bytes = match self.content {
            AssetContent::Plain(bytes) => bytes,
            AssetContent::Compressed { brotli, .. } => brotli,
        };
        format!("{}.{:016x}.{}", self.stem, xxh3_64(bytes), self.extension)
    }

    fn respond(&self, headers: &HeaderMap) -> Result<Response, Problem> {
        let common_headers = [
            (CONTENT_TYPE, HeaderValue::from_static(self.media_type)),
            (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
            (VARY, HeaderValue::from_static("Accept-Encoding")),
        ];
        match self.content {
            AssetContent::Plain(bytes) => Ok((common_headers, bytes).into_response()),
            AssetContent::Compressed { brotli, .. } if accepts_encoding(headers, "br") => {
                Ok((common_headers, [(CONTENT_ENCODING, "br")], brotli).into_response())
            }
            // Without the header any coding is acceptable, and practically every client reads gzip.
            AssetContent::Compressed { gzip, .. }
                if accepts_encoding(headers, "gzip") || !headers.contains_key(ACCEPT_ENCODING) =>
            {
                Ok((common_headers, [(CONTENT_ENCODING, "gzip")], gzip).into_response())
            }
            AssetContent::Compressed { .. } => {
                let detail = "this file is only available compressed; accept br or gzip";
                Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", detail))
            }
        }
    }
}

/// Whether `Accept-Encoding` names this coding without `q=0`.
fn accepts_encoding(headers: &HeaderMap, coding: &str) -> bool {
    let mut named = parse_encodings(headers.get_all(ACCEPT_ENCODING));
    named.any(|(name, quality)| name.eq_ignore_ascii_case(coding) && quality > 0)
}
