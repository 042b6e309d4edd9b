//! Bytes of several messages that go out together, so that what is there at once costs one write.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// So much is gathered before it must go out.
const CAPACITY: usize = 16 << 10;

/// From this size on bytes are shared with all others who send them; smaller ones cost less copied side by side.
const SHARE_THRESHOLD: usize = 4 << 10;

/// It keeps no room once all has gone out: a line may be silent for days.
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

    /// Waits until the system has taken all of it. When dropped before, nothing more can be sent on this line.
    pub async fn write_to(&mut self, line: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let WriteBuffer { chunks: pieces, tail, .. } = std::mem::take(self);
        for piece in pieces {
            line.write_all(&piece).await?;
        }
        line.write_all(&tail).await?;
        line.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn everything_goes_out_in_order_whatever_its_size() {
        let (mut outbox, mut expected, mut line) = (WriteBuffer::default(), Vec::new(), Vec::new());
        for size in [1, SHARE_THRESHOLD - 1, SHARE_THRESHOLD, 0, 3, 100_000, 7] {
            let bytes = Bytes::from(vec![u8::try_from(size % 251).expect("small"); size]);
            outbox.push_shared(&bytes);
            outbox.push_copy(b"|");
            expected.extend_from_slice(&bytes);
            expected.push(b'|');
        }
        assert!(!outbox.has_room());
        outbox.write_to(&mut line).await.expect("memory takes all");
        assert!(line == expected && outbox.is_empty() && outbox.has_room());
    }
}
