//! A buffer that sends several messages with one write.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The buffer is full from this size on.
const CAPACITY: usize = 16 << 10;

/// Chunks from this size on are shared with other senders; copying smaller ones is cheaper.
const SHARE_THRESHOLD: usize = 4 << 10;

/// Keeps no capacity after a write, because a connection may be silent for days.
#[derive(Default)]
pub struct WriteBuffer {
    chunks: Vec<Bytes>,
    tail: Vec<u8>,
    bytes: usize,
}

impl WriteBuffer {
    pub fn push_copy(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.tail.extend_from_slice(bytes);
    }

    pub fn push_shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARE_THRESHOLD {
            return self.push_copy(bytes);
        }
        self.bytes += bytes.len();
        let before = std::mem::take(&mut self.tail);
        self.chunks.extend([before.into(), bytes.clone()]);
    }

    pub fn has_room(&self) -> bool {
        self.bytes < CAPACITY
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Writes everything. If the future is dropped before it completes, the connection must not be used any more.
    pub async fn write_to(&mut self, io: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let WriteBuffer { chunks, tail, .. } = std::mem::take(self);
        for chunk in chunks {
            io.write_all(&chunk).await?;
        }
        io.write_all(&tail).await?;
        io.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_sizes_are_written_in_order() {
        let (mut buffer, mut expected, mut output) = (WriteBuffer::default(), Vec::new(), Vec::new());
        for size in [1, SHARE_THRESHOLD - 1, SHARE_THRESHOLD, 0, 3, 100_000, 7] {
            let bytes = Bytes::from(vec![u8::try_from(size % 251).expect("small"); size]);
            buffer.push_shared(&bytes);
            buffer.push_copy(b"|");
            expected.extend_from_slice(&bytes);
            expected.push(b'|');
        }
        assert!(!buffer.has_room());
        buffer.write_to(&mut output).await.expect("memory takes all");
        assert!(output == expected && buffer.is_empty() && buffer.has_room());
    }
}
