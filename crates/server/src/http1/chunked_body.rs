//! Finds the end of a chunked body without decoding it, to know where the next head starts.

/// The position in a chunked body. Never more lenient than hyper, which decodes the body, and stricter with a lone line
/// feed among trailers, where other servers would end the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkedState {
    Start,
    Size(u64),
    /// After the digits of a size: blanks, then perhaps an extension.
    AfterSize(u64),
    Extension(u64),
    SizeLf(u64),
    Data(u64),
    DataCr,
    DataLf,
    LineStart,
    Trailer,
    TrailerLf,
    LastLf,
    End,
    Malformed,
}

impl ChunkedState {
    /// Advances over the bytes of the body; returns how many of `bytes` belong to it.
    pub fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut position = 0;
        while position < bytes.len() && !matches!(self, ChunkedState::End | ChunkedState::Malformed) {
            if let ChunkedState::Data(remaining) = *self {
                let count = usize::try_from(remaining).unwrap_or(usize::MAX).min(bytes.len() - position);
                position += count;
                *self = if remaining == count as u64 {
                    ChunkedState::DataCr
                } else {
                    ChunkedState::Data(remaining - count as u64)
                };
            } else {
                *self = self.next_state(bytes[position]);
                position += 1;
            }
        }
        position
    }

    fn next_state(self, byte: u8) -> ChunkedState {
        match (self, byte) {
            (ChunkedState::Start, digit) => size_state(0, digit),
            (ChunkedState::Size(size) | ChunkedState::AfterSize(size), b' ' | b'\t') => {
                ChunkedState::AfterSize(size)
            }
            (ChunkedState::Size(size) | ChunkedState::AfterSize(size), b';') => ChunkedState::Extension(size),
            (
                ChunkedState::Size(size) | ChunkedState::AfterSize(size) | ChunkedState::Extension(size),
                b'\r',
            ) => ChunkedState::SizeLf(size),
            (ChunkedState::Size(sum), digit) => size_state(sum, digit),
            (ChunkedState::Extension(_) | ChunkedState::LineStart | ChunkedState::Trailer, b'\n') => {
                ChunkedState::Malformed
            }
            (ChunkedState::Extension(size), _) => ChunkedState::Extension(size),
            (ChunkedState::SizeLf(0), b'\n') => ChunkedState::LineStart,
            (ChunkedState::SizeLf(size), b'\n') => ChunkedState::Data(size),
            (ChunkedState::DataCr, b'\r') => ChunkedState::DataLf,
            (ChunkedState::DataLf, b'\n') => ChunkedState::Start,
            (ChunkedState::LineStart, b'\r') => ChunkedState::LastLf,
            (ChunkedState::Trailer, b'\r') => ChunkedState::TrailerLf,
            (ChunkedState::LineStart | ChunkedState::Trailer, _) => ChunkedState::Trailer,
            (ChunkedState::TrailerLf, b'\n') => ChunkedState::LineStart,
            (ChunkedState::LastLf, b'\n') => ChunkedState::End,
            (
                ChunkedState::AfterSize(_)
                | ChunkedState::SizeLf(_)
                | ChunkedState::Data(_)
                | ChunkedState::DataCr
                | ChunkedState::DataLf
                | ChunkedState::TrailerLf
                | ChunkedState::LastLf
                | ChunkedState::End
                | ChunkedState::Malformed,
                _,
            ) => ChunkedState::Malformed,
        }
    }
}

fn size_state(sum: u64, digit: u8) -> ChunkedState {
    let value = (digit as char).to_digit(16).map(u64::from);
    let next = value.and_then(|value| sum.checked_mul(16)?.checked_add(value));
    next.map_or(ChunkedState::Malformed, ChunkedState::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the same end for the whole body and byte by byte.
    fn check(body: &str, expected: Option<usize>) {
        let mut whole = ChunkedState::Start;
        let used = whole.advance(body.as_bytes());
        let mut single = ChunkedState::Start;
        let steps: usize = body.as_bytes().chunks(1).map(|byte| single.advance(byte)).sum();
        assert_eq!((whole, used), (single, steps), "{body:?}");
        assert_eq!((whole == ChunkedState::End).then_some(used), expected, "{body:?}");
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
            "3\nabc",
            "3\r\nabcd\r\n",
            "3;a\nb\r\n",
            "10000000000000000\r\n",
            "3 1\r\n",
            "0\r\nX: y\n\r\n",
        ] {
            check(malformed, None);
        }
    }
}
