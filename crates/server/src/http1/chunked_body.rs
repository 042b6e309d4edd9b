//! Follows a chunked body to its last byte without reading it, so that the next head is known to be one.

/// Where in a chunked body we are. Never more lenient than hyper's own reader, which takes the body apart, and
/// stricter with a lone line feed among trailers: others would see the body end there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
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

impl Chunks {
    /// Goes over `bytes` as far as the body reaches; gives how many of them belong to it.
    pub fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() && !matches!(self, Chunks::End | Chunks::Malformed) {
            if let Chunks::Data(left) = *self {
                let step = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - at);
                at += step;
                *self = if left == step as u64 { Chunks::DataCr } else { Chunks::Data(left - step as u64) };
            } else {
                *self = self.after(bytes[at]);
                at += 1;
            }
        }
        at
    }

    fn after(self, byte: u8) -> Chunks {
        match (self, byte) {
            (Chunks::Start, digit) => size(0, digit),
            (Chunks::Size(size) | Chunks::AfterSize(size), b' ' | b'\t') => Chunks::AfterSize(size),
            (Chunks::Size(size) | Chunks::AfterSize(size), b';') => Chunks::Extension(size),
            (Chunks::Size(size) | Chunks::AfterSize(size) | Chunks::Extension(size), b'\r') => {
                Chunks::SizeLf(size)
            }
            (Chunks::Size(sum), digit) => size(sum, digit),
            (Chunks::Extension(_) | Chunks::LineStart | Chunks::Trailer, b'\n') => Chunks::Malformed,
            (Chunks::Extension(size), _) => Chunks::Extension(size),
            (Chunks::SizeLf(0), b'\n') => Chunks::LineStart,
            (Chunks::SizeLf(size), b'\n') => Chunks::Data(size),
            (Chunks::DataCr, b'\r') => Chunks::DataLf,
            (Chunks::DataLf, b'\n') => Chunks::Start,
            (Chunks::LineStart, b'\r') => Chunks::LastLf,
            (Chunks::Trailer, b'\r') => Chunks::TrailerLf,
            (Chunks::LineStart | Chunks::Trailer, _) => Chunks::Trailer,
            (Chunks::TrailerLf, b'\n') => Chunks::LineStart,
            (Chunks::LastLf, b'\n') => Chunks::End,
            (
                Chunks::AfterSize(_)
                | Chunks::SizeLf(_)
                | Chunks::Data(_)
                | Chunks::DataCr
                | Chunks::DataLf
                | Chunks::TrailerLf
                | Chunks::LastLf
                | Chunks::End
                | Chunks::Malformed,
                _,
            ) => Chunks::Malformed,
        }
    }
}

fn size(sum: u64, digit: u8) -> Chunks {
    let value = (digit as char).to_digit(16).map(u64::from);
    let next = value.and_then(|value| sum.checked_mul(16)?.checked_add(value));
    next.map_or(Chunks::Malformed, Chunks::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole or byte by byte, the end is found at the same place.
    fn check(body: &str, expected: Option<usize>) {
        let mut whole = Chunks::Start;
        let used = whole.pass(body.as_bytes());
        let mut single = Chunks::Start;
        let steps: usize = body.as_bytes().chunks(1).map(|byte| single.pass(byte)).sum();
        assert_eq!((whole, used), (single, steps), "{body:?}");
        assert_eq!((whole == Chunks::End).then_some(used), expected, "{body:?}");
    }

    #[test]
    fn the_end_is_found() {
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
