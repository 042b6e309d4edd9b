//! The files of GraphiQL under `/_/assets/`: compressed beforehand, named by their content, kept for ever by caches.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use xxhash_rust::xxh3::xxh3_64;

use crate::faces::problem::{Problem, not_found};

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// One file; its placeholder in the page is `{{name}}`.
pub struct Asset {
    pub placeholder: &'static str,
    stem: &'static str,
    extension: &'static str,
    media: &'static str,
    stored: Stored,
}

enum Stored {
    Plain(&'static [u8]),
    Compressed { brotli: &'static [u8], gzip: &'static [u8] },
}

macro_rules! compressed {
    ($placeholder:literal, $stem:literal, $extension:literal, $media:expr) => {
        Asset {
            placeholder: $placeholder,
            stem: $stem,
            extension: $extension,
            media: $media,
            stored: Stored::Compressed {
                brotli: include_bytes!(concat!("assets/", $stem, ".", $extension, ".br")),
                gzip: include_bytes!(concat!("assets/", $stem, ".", $extension, ".gz")),
            },
        }
    };
}

macro_rules! plain {
    ($placeholder:literal, $stem:literal, $extension:literal, $media:expr) => {
        Asset {
            placeholder: $placeholder,
            stem: $stem,
            extension: $extension,
            media: $media,
            stored: Stored::Plain(include_bytes!(concat!("assets/", $stem, ".", $extension))),
        }
    };
}

static ASSETS: [Asset; 6] = [
    compressed!("{{react}}", "react", "js", SCRIPT),
    compressed!("{{react-dom}}", "react-dom", "js", SCRIPT),
    compressed!("{{graphiql-js}}", "graphiql", "js", SCRIPT),
    compressed!("{{graphiql-css}}", "graphiql", "css", STYLE),
    plain!("{{init-js}}", "graphiql-init", "js", SCRIPT),
    plain!("{{page-css}}", "graphiql-page", "css", STYLE),
];

/// Each file with its name under `/_/assets/`.
static NAMED: LazyLock<Vec<(String, &'static Asset)>> =
    LazyLock::new(|| ASSETS.iter().map(|asset| (asset.name(), asset)).collect());

pub fn named() -> &'static [(String, &'static Asset)] {
    &NAMED
}

impl Asset {
    /// `graphiql.0123456789abcdef.js`
    fn name(&self) -> String {
        let bytes = match self.stored {
            Stored::Plain(bytes) => bytes,
            Stored::Compressed { brotli, .. } => brotli,
        };
        format!("{}.{:016x}.{}", self.stem, xxh3_64(bytes), self.extension)
    }
}

pub async fn respond(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let found = NAMED.iter().find(|(known, _)| *known == name);
    let (_, asset) = found.ok_or_else(not_found)?;
    let always = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.media)),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (VARY, HeaderValue::from_static("Accept-Encoding")),
    ];
    match asset.stored {
        Stored::Plain(bytes) => Ok((always, bytes).into_response()),
        Stored::Compressed { brotli, .. } if accepts(&headers, "br") => {
            Ok((always, [(CONTENT_ENCODING, "br")], brotli).into_response())
        }
        // Without the header any coding is acceptable, and every client can read this one.
        Stored::Compressed { gzip, .. }
            if accepts(&headers, "gzip") || !headers.contains_key(ACCEPT_ENCODING) =>
        {
            Ok((always, [(CONTENT_ENCODING, "gzip")], gzip).into_response())
        }
        Stored::Compressed { .. } => {
            let detail = "this file is stored compressed: accept br or gzip";
            Err(Problem::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", detail))
        }
    }
}

/// Whether a coding is named in `Accept-Encoding` and not refused with `q=0`.
fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let refused = parts.any(|parameter| {
            parameter.strip_prefix("q=").is_some_and(|quality| quality.trim().parse() == Ok(0.0))
        });
        named && !refused
    })
}
