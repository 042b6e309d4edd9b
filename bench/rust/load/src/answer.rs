//! Finds out whether an answer is all there, by its length or by its chunks.

use crate::Failed;

/// How an answer that has begun to arrive goes on.
pub enum Framing {
    Length {
        body: usize,
        end: usize,
    },
    /// `next` is where the next chunk's length begins.
    Chunks {
        body: usize,
        next: usize,
    },
}

pub struct Head {
    pub status: u16,
    pub framing: Framing,
}

/// The head, once it is there.
pub fn head(bytes: &[u8]) -> Result<Option<Head>, Failed> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(body) = response.parse(bytes)? else { return Ok(None) };
    let status = response.code.unwrap_or(0);
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("content-length") {
            let length: usize = std::str::from_utf8(header.value)?.trim().parse()?;
            return Ok(Some(Head { status, framing: Framing::Length { body, end: body + length } }));
        }
    }
    Ok(Some(Head { status, framing: Framing::Chunks { body, next: body } }))
}

impl Framing {
    /// Where the body is, once all of it is there.
    pub fn whole(&mut self, bytes: &[u8]) -> Result<Option<std::ops::Range<usize>>, Failed> {
        match self {
            Framing::Length { body, end } => Ok((bytes.len() >= *end).then_some(*body..*end)),
            Framing::Chunks { body, next } => loop {
                let rest = bytes.get(*next..).unwrap_or_default();
                match httparse::parse_chunk_size(rest).map_err(|_| "no chunk where one was to be")? {
                    httparse::Status::Partial => return Ok(None),
                    httparse::Status::Complete((line, 0)) => {
                        let end = *next + line + 2;
                        return Ok((bytes.len() >= end).then_some(*body..end));
                    }
                    httparse::Status::Complete((line, length)) => *next += line + length as usize + 2,
                }
            },
        }
    }
}
