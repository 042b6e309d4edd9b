//! A list on its way to becoming live: read in parts while changes go on, and which of those the parts already show.

use std::collections::HashSet;
use std::sync::Arc;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{Change, Deed, Engine, Feed, Listing, Operation, Outcome, Slice};
use trefoil_model::TypeId;
use trefoil_model::error::Result;
use trefoil_resources::record_shape::Shape;
use trefoil_resources::request::look;
use trefoil_resources::row_writer::{Form, Rows};

/// Records of one part: it is read at once and held in memory.
const PART: i64 = 500;

pub struct Snapshot {
    engine: Engine,
    record: TypeId,
    shape: Arc<Shape>,
    /// Where the next part begins; none when there is no next one.
    next: Option<Option<String>>,
    /// For each part the last id in it, and a change up to which it shows all.
    parts: Vec<(i64, i64)>,
    /// Later changes that the parts show all the same: they were made while a part was read.
    shown: HashSet<i64>,
    /// Behind this change everything is news.
    until: i64,
}

impl Snapshot {
    pub fn new(engine: Engine, record: TypeId, shape: Arc<Shape>) -> Snapshot {
        let (parts, shown) = (Vec::new(), HashSet::new());
        Snapshot { engine, record, shape, next: Some(None), parts, shown, until: 0 }
    }

    pub fn is_whole(&self) -> bool {
        self.next.is_none()
    }

    /// The next records, each an event. The stream starts at `start`, which is before all of it.
    pub async fn part(&mut self, feed: &Feed, start: i64) -> Result<Vec<u8>> {
        let Some(after) = self.next.take() else { return Ok(Vec::new()) };
        let before = if after.is_none() { start } else { feed.now().await? };
        let slice = Slice::First { first: PART, after };
        let listing = Listing { slice, cursors: true, ..Listing::default() };
        let list = Operation::List { record: self.record, listing, selection: self.shape.selection.clone() };
        let format = CursorFormat::of(self.engine.model().record(self.record), &[]);
        let rows = Rows::new(&self.shape, Form::Events).cursors(format).noting();
        let (read, outcomes) = look(&self.engine, vec![list], rows).await?;
        let more = matches!(outcomes.last(), Some(Outcome::Listed { more: true, .. }));
        let first = self.parts.last().map_or(i64::MIN, |(last, _)| *last);
        let last = read.noted.last().filter(|_| more).map_or(i64::MAX, |(id, _)| *id);
        self.parts.push((last, before));
        self.note(feed, before, (first, last), &read.noted).await?;
        self.next = more.then_some(read.last);
        Ok(read.bytes)
    }

    /// Looks which changes came while the part was read, and which of them it has.
    async fn note(&mut self, feed: &Feed, before: i64, ids: (i64, i64), rows: &[(i64, i64)]) -> Result<()> {
        self.until = feed.now().await?;
        let resource = self.engine.model().record(self.record).name.clone();
        let mut at = before;
        while at < self.until {
            let stretch = feed.after(at).await?;
            let own = stretch.changes.iter().filter(|change| change.resource == resource);
            for change in own.filter(|change| ids.0 < change.record && change.record <= ids.1) {
                let row = rows.binary_search_by_key(&change.record, |(id, _)| *id);
                let has = row.is_ok_and(|row| rows[row].1 >= change.version) && change.deed != Deed::Deleted;
                if has {
                    self.shown.insert(change.number);
                }
            }
            at = stretch.until;
        }
        Ok(())
    }

    /// Whether the client has seen this change in the snapshot.
    pub fn shows(&self, change: &Change) -> bool {
        let part = self.parts.iter().find(|(last, _)| change.record <= *last);
        part.is_some_and(|(_, before)| change.number <= *before) || self.shown.contains(&change.number)
    }

    /// The stream has come to here: what lies behind the snapshot need not be remembered.
    pub fn passed(&mut self, at: i64) {
        if at >= self.until {
            self.parts.clear();
            self.shown.clear();
        }
    }
}
