//! [`RequestTime`]: when the operations of one request run.

use std::cell::OnceCell;

use jiff::Timestamp;

/// The time of one request: read from the clock when a write first asks, the same from then on. Reads need none.
#[derive(Debug, Default)]
pub struct RequestTime(OnceCell<Timestamp>);

impl RequestTime {
    pub(crate) fn get(&self) -> Timestamp {
        *self.0.get_or_init(Timestamp::now)
    }
}

impl From<Timestamp> for RequestTime {
    fn from(time: Timestamp) -> RequestTime {
        RequestTime(time.into())
    }
}
