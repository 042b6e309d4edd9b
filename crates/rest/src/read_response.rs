//! Parts of responses to reads: tags, file names, and the end of an encoding.

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderName};
use xxhash_rust::xxh3::Xxh3;

use trefoil_http::errors::problem::Problem;
use trefoil_http::etags;
use trefoil_http::negotiation::format::ResponseFormat;
use trefoil_model::RecordTypeId;
use trefoil_resources::request::ResourceRequest;
use trefoil_resources::row_writer::RowEncoding;

/// The bytes with their tag, or 304 if the client has them.
pub fn tagged_response(
    request: &ResourceRequest<'_>,
    tag: String,
    format: ResponseFormat,
    bytes: Vec<u8>,
) -> Result<Response, Problem> {
    etags::check_if_match(request.headers(), Some(&tag))?;
    let tag = HeaderValue::from_str(&tag).expect("a tag is visible ASCII");
    let response = ([(CONTENT_TYPE, format.content_type()), (ETAG, tag)], bytes).into_response();
    Ok(etags::not_modified_if_known(request.headers(), request.with_negotiated_headers(response)))
}

/// The file name for a list in a format that browsers download instead of showing.
pub fn attachment_header(
    request: &ResourceRequest<'_>,
    record: RecordTypeId,
    format: ResponseFormat,
) -> Option<(HeaderName, HeaderValue)> {
    let extension = match format {
        ResponseFormat::Csv => "csv",
        ResponseFormat::Ndjson => "ndjson",
        ResponseFormat::Json
        | ResponseFormat::Html
        | ResponseFormat::TextLines
        | ResponseFormat::EventStream => return None,
    };
    let path = &request.resources.engine.model().record(record).path;
    let value = HeaderValue::from_str(&format!("attachment; filename=\"{path}.{extension}\"")).ok()?;
    Some((CONTENT_DISPOSITION, value))
}

/// Hash of everything in the response, so that any change alters it. The content type is included because an empty list
/// has the same bytes in several formats.
pub fn list_etag(format: ResponseFormat, bytes: &[u8], links: Option<&str>, total: Option<u64>) -> String {
    let mut hash = Xxh3::new();
    hash.update(format.content_type().as_bytes());
    hash.update(bytes);
    hash.update(links.unwrap_or_default().as_bytes());
    hash.update(&total.unwrap_or_default().to_le_bytes());
    format!("\"{:032x}\"", hash.digest128())
}

/// Adds the end of the encoding after the rows.
pub fn close_rows(encoding: RowEncoding, mut bytes: Vec<u8>) -> Vec<u8> {
    match encoding {
        RowEncoding::Array | RowEncoding::TextArray => {
            if bytes.is_empty() {
                bytes.push(b'[');
            }
            bytes.push(b']');
        }
        RowEncoding::SingleObject
        | RowEncoding::Ndjson
        | RowEncoding::Csv
        | RowEncoding::TextLines
        | RowEncoding::Events => {}
    }
    bytes
}
