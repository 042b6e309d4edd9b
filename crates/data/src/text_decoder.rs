//! Decodes a file in another encoding (`--encoding latin1`) to UTF-8 while it is read.

use std::io::{self, Read};

use encoding_rs::{CoderResult, Decoder, Encoding};

/// The number of bytes that are decoded at a time.
const PART_BYTES: usize = 1 << 14;
/// A byte becomes three at most.
const DECODED_BYTES: usize = 3 * PART_BYTES + 64;

/// An encoding of the Encoding Standard, in which `latin1` is windows-1252.
#[derive(Debug, Clone, Copy)]
pub struct FileEncoding(&'static Encoding);

impl FileEncoding {
    /// The encoding of a name such as `latin1`, or a message for the user.
    pub fn from_name(name: &str) -> Result<FileEncoding, String> {
        let found = Encoding::for_label(name.as_bytes()).map(FileEncoding);
        found.ok_or_else(|| "no such encoding; use for example latin1, windows-1252 or utf-16".to_owned())
    }
}

pub struct TextDecoder<R> {
    input: R,
    decoder: Decoder,
    decoded: Vec<u8>,
    /// The number of bytes of `decoded` that have been read.
    used: usize,
    is_finished: bool,
}

impl<R: Read> TextDecoder<R> {
    pub fn new(input: R, FileEncoding(encoding): FileEncoding) -> TextDecoder<R> {
        let decoder = encoding.new_decoder();
        TextDecoder { input, decoder, decoded: Vec::new(), used: 0, is_finished: false }
    }

    fn decode_part(&mut self) -> io::Result<()> {
        let mut part = [0; PART_BYTES];
        let count = self.input.read(&mut part)?;
        self.is_finished = count == 0;
        self.decoded.resize(DECODED_BYTES, 0);
        let (result, _, written, is_replaced) =
            self.decoder.decode_to_utf8(&part[..count], &mut self.decoded, self.is_finished);
        debug_assert_eq!(result, CoderResult::InputEmpty, "the space is enough for every part");
        if is_replaced {
            let message = format!("the file is not {}", self.decoder.encoding().name());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.decoded.truncate(written);
        self.used = 0;
        Ok(())
    }
}

impl<R: Read> Read for TextDecoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.used == self.decoded.len() && !self.is_finished {
            self.decode_part()?;
        }
        let count = out.len().min(self.decoded.len() - self.used);
        out[..count].copy_from_slice(&self.decoded[self.used..self.used + count]);
        self.used += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(name: &str, bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        TextDecoder::new(bytes, FileEncoding::from_name(name).expect("known"))
            .read_to_string(&mut text)
            .map(|_| text)
    }

    #[test]
    fn files_are_decoded_by_the_name_of_their_encoding() {
        assert_eq!(decode("latin1", b"Zo\xeb").expect("decoded"), "Zoë");
        assert_eq!(decode("ISO-8859-1", &[0xe4; 100_000]).expect("decoded"), "ä".repeat(100_000));
        assert_eq!(decode("utf-16le", b"\xff\xfeZ\0o\0\xeb\0").expect("decoded"), "Zoë");
        assert!(decode("utf-8", b"Zo\xeb").is_err());
        assert!(FileEncoding::from_name("latin9000").is_err());
    }
}
