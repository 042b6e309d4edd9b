//! Bytes of several messages that go out together, so that what is there at once costs one write.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// So much is gathered before it must go out.
const ROOM: usize = 16 << 10;

/// From this size on bytes are shared with all others who send them; smaller ones cost less copied side by side.
const LARGE: usize = 4 << 10;

/// It keeps no room once all has gone out: a line may be silent for days.
#[derive(Default)]
pub struct Outbox {
    pieces: Vec<Bytes>,
    tail: Vec<u8>,
    bytes: usize,
}

impl Outbox {
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        self.tail.extend_from_slice(bytes);
    }

    pub fn share(&mut self, bytes: &Bytes) {
        if bytes.len() < LARGE {
            return self.add(bytes);
        }
        self.bytes += bytes.len();
        let before = std::mem::take(&mut self.tail);
        self.pieces.extend([before.into(), bytes.clone()]);
    }

    pub fn has_room(&self) -> bool {
        self.bytes < ROOM
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Waits until the system has taken all of it. When dropped before, nothing more can be sent on this line.
    pub async fn send(&mut self, line: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let Outbox { pieces, tail, .. } = std::mem::take(self);
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
        let (mut outbox, mut expected, mut line) = (Outbox::default(), Vec::new(), Vec::new());
        for size in [1, LARGE - 1, LARGE, 0, 3, 100_000, 7] {
            let bytes = Bytes::from(vec![u8::try_from(size % 251).expect("small"); size]);
            outbox.share(&bytes);
            outbox.add(b"|");
            expected.extend_from_slice(&bytes);
            expected.push(b'|');
        }
        assert!(!outbox.has_room());
        outbox.send(&mut line).await.expect("memory takes all");
        assert!(line == expected && outbox.is_empty() && outbox.has_room());
    }
}
