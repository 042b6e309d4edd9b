//! What the next byte from the client belongs to, from the head of a request to the end of its body.

use std::cmp;

/// The longest line of a chunked body. hyper, which decodes the body, has the same limit for all its trailers.
const MAX_LINE_BYTES: usize = 16 << 10;

/// The state of the input of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    Head,
    /// A body with this many bytes to come.
    Length(u64),
    ChunkSize,
    /// A chunk with this many bytes to come.
    ChunkData(u64),
    /// The end of the line after the data of a chunk.
    ChunkEnd,
    Trailer,
    /// The request is complete. Further bytes wait for its response.
    Complete,
    /// After a refused head or a malformed body: no further byte is used.
    Discarded,
    /// Another protocol, or none: hyper has left the connection.
    Tunnel,
}

impl InputState {
    /// Advances over the bytes of a body; returns how many of them hyper may have. A line is passed on as a whole.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut position = 0;
        while let Some((count, next)) = self.step(&bytes[position..]) {
            position += count;
            *self = next;
        }
        position
    }

    /// The number of bytes to the next state; `None` if it takes more bytes than these, or the body is over.
    fn step(self, bytes: &[u8]) -> Option<(usize, InputState)> {
        match self {
            InputState::Length(0) => Some((0, InputState::Complete)),
            InputState::Length(rest) => step_data(bytes, rest, InputState::Length),
            InputState::ChunkSize => step_line(bytes, |line| match chunk_size(line)? {
                0 => Some(InputState::Trailer),
                size => Some(InputState::ChunkData(size)),
            }),
            InputState::ChunkData(0) => Some((0, InputState::ChunkEnd)),
            InputState::ChunkData(rest) => step_data(bytes, rest, InputState::ChunkData),
            InputState::ChunkEnd => step_line(bytes, |line| line.is_empty().then_some(InputState::ChunkSize)),
            InputState::Trailer if bytes.starts_with(b"\r\n") => Some((2, InputState::Complete)),
            InputState::Trailer => step_line(bytes, |_| Some(InputState::Trailer)),
            InputState::Head | InputState::Complete | InputState::Discarded | InputState::Tunnel => None,
        }
    }
}

fn step_data(bytes: &[u8], rest: u64, next: fn(u64) -> InputState) -> Option<(usize, InputState)> {
    let count = cmp::min(rest, bytes.len() as u64);
    (count > 0).then(|| (count as usize, next(rest - count)))
}

/// A line ends in CR LF, and neither is anywhere else in it. hyper takes a lone LF among trailers for a part of their
/// line, where other servers end the line, or the body.
fn step_line(bytes: &[u8], next: impl FnOnce(&[u8]) -> Option<InputState>) -> Option<(usize, InputState)> {
    let malformed = Some((0, InputState::Discarded));
    match bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        Some(length) if bytes[length..].starts_with(b"\r\n") => {
            next(&bytes[..length]).map(|next| (length + 2, next)).or(malformed)
        }
        Some(length) if bytes[length..] != *b"\r" => malformed,
        Some(_) | None if bytes.len() > MAX_LINE_BYTES => malformed,
        Some(_) | None => None,
    }
}

/// Digits, blanks, then perhaps an extension.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the same end for the whole body and byte by byte.
    fn check(body: &str, expected: Option<usize>) {
        let mut whole = InputState::ChunkSize;
        let used = whole.advance(body.as_bytes());
        let (mut single, mut held, mut steps) = (InputState::ChunkSize, Vec::new(), 0);
        for byte in body.bytes() {
            held.push(byte);
            let count = single.advance(&held);
            held.drain(..count);
            steps += count;
        }
        assert_eq!((whole, used), (single, steps), "{body:?}");
        assert_eq!((whole == InputState::Complete).then_some(used), expected, "{body:?}");
    }

    #[test]
    fn end_of_body_is_found() {
        check("0\r\n\r\nGET", Some(5));
        check("3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1", Some(13));
        check("A;x=y\r\n0123456789\r\n00\r\nTrailer: x\r\n\r\nrest", Some(37));
        check("3 \t\r\nabc\r\n0\r\n\r\n", Some(15));
        for malformed in [
            "x\r\n",
            "\r\n",
            "+3\r\nabc",
            "3\nabc",
            "3\r\nabcd\r\n",
            "3;a\nb\r\n",
            "10000000000000000\r\n",
            "3 1\r\n",
            "0\r\nX: y\n\r\n",
            "0\r\n\nX: y\r\n\r\n",
        ] {
            check(malformed, None);
        }
        check(&format!("3;{}", "x".repeat(MAX_LINE_BYTES)), None);
    }
}
