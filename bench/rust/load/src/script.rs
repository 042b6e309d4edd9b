//! Reads the requests that bench/run prepared, each with the text that its answer must hold.

use crate::Failed;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    /// A read whose answer must also hold what the last write before it was to bring.
    FreshRead,
    Write,
}

pub struct Asked {
    pub request: Vec<u8>,
    /// What a right answer holds.
    pub expected: memchr::memmem::Finder<'static>,
    pub kind: Kind,
}

/// Each is a byte `r`, `f` or `w` for its kind, then the request and the expected text, both with their length in four bytes before them.
pub fn read(path: &str) -> Result<Vec<Asked>, Failed> {
    let bytes = std::fs::read(path)?;
    let mut rest = bytes.as_slice();
    let mut asked = Vec::new();
    while let Some((kind, after)) = rest.split_first() {
        rest = after;
        let kind = match kind {
            b'r' => Kind::Read,
            b'f' => Kind::FreshRead,
            b'w' => Kind::Write,
            other => return Err(format!("{path} has a request of kind {other}").into()),
        };
        let request = take(&mut rest)?.to_vec();
        let expected = memchr::memmem::Finder::new(take(&mut rest)?).into_owned();
        asked.push(Asked { request, expected, kind });
    }
    if asked.is_empty() { Err(format!("{path} holds no request").into()) } else { Ok(asked) }
}

fn take<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Failed> {
    let (length, after) = rest.split_first_chunk::<4>().ok_or("the script ends within a length")?;
    let length = u32::from_le_bytes(*length) as usize;
    let (taken, after) = after.split_at_checked(length).ok_or("the script ends within a text")?;
    *rest = after;
    Ok(taken)
}
