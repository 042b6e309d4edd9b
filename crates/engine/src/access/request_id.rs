//! [`RequestId`]: the id of a request, as it is in its response, in the log and in the audit.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The id of a request, in its response, its log line and its error messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(RequestIdText);

#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestIdText {
    /// Sent by the client.
    Received(Box<str>),
    /// The digits and how many of them are used. Stored inline, since nearly every request gets one.
    Generated([u8; GENERATED_LENGTH], usize),
}

/// Two 64-bit numbers in hexadecimal digits, and a dash.
const GENERATED_LENGTH: usize = 33;

impl RequestId {
    /// The client's own id; `None` if it is not safe to repeat.
    pub fn received(id: &[u8]) -> Option<RequestId> {
        // A copy: a slice of the head would keep the whole head in memory for as long as a stream lasts.
        let id = std::str::from_utf8(id).ok().filter(|_| is_valid_id(id))?;
        Some(RequestId(RequestIdText::Received(id.into())))
    }

    /// A random start, then a counter: unique without a system call for randomness on every request.
    pub fn generate() -> RequestId {
        static START: LazyLock<String> =
            LazyLock::new(|| format!("{:016x}-", RandomState::new().hash_one(std::process::id())));
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut digits = [0; GENERATED_LENGTH];
        let (start, count) = digits.split_at_mut(START.len());
        start.copy_from_slice(START.as_bytes());
        // By hand, because every request does this: formatting costs ten times as much.
        let unused = number.leading_zeros() as usize / 4;
        let count = &mut count[..16 - unused];
        for (position, digit) in count.iter_mut().rev().enumerate() {
            *digit = b"0123456789abcdef"[(number >> (4 * position)) as usize % 16];
        }
        RequestId(RequestIdText::Generated(digits, GENERATED_LENGTH - unused))
    }

    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            RequestIdText::Received(id) => id.as_bytes(),
            RequestIdText::Generated(digits, used) => &digits[..*used],
        }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("visible ASCII")
    }
}

fn is_valid_id(id: &[u8]) -> bool {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(b);
    (1..=128).contains(&id.len()) && id.iter().all(allowed)
}
