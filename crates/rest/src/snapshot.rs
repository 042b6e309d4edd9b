//! A list on its way to becoming live: read in parts while changes go on, and which of those the parts already show.

use std::collections::HashSet;
use std::sync::Arc;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{ChangeFeed, ChangeKind, Engine, ListSlice, Listing, Operation, Outcome, RecordChange};
use trefoil_model::RecordTypeId;
use trefoil_model::error::Result;
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::read_rows;
use trefoil_resources::row_writer::{RowEncoding, RowWriter};

/// Records of one part: it is read at once and held in memory.
const PART_ROWS: i64 = 500;

pub struct ListSnapshot {
    engine: Engine,
    record: RecordTypeId,
    shape: Arc<RecordShape>,
    /// Where the next part begins; none when there is no next one.
    next_cursor: Option<Option<String>>,
    /// For each part the last id in it, and a change up to which it shows all.
    parts: Vec<(i64, i64)>,
    /// Later changes that the parts show all the same: they were made while a part was read.
    included_changes: HashSet<i64>,
    /// Behind this change everything is news.
    until: i64,
}

impl ListSnapshot {
    pub fn new(engine: Engine, record: RecordTypeId, shape: Arc<RecordShape>) -> ListSnapshot {
        let (parts, shown) = (Vec::new(), HashSet::new());
        ListSnapshot {
            engine,
            record,
            shape,
            next_cursor: Some(None),
            parts,
            included_changes: shown,
            until: 0,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.next_cursor.is_none()
    }

    /// The next records, each an event. The stream starts at `start`, which is before all of it.
    pub async fn read_part(&mut self, feed: &ChangeFeed, start: i64) -> Result<Vec<u8>> {
        let Some(after) = self.next_cursor.take() else { return Ok(Vec::new()) };
        let before = if after.is_none() { start } else { feed.last_change_number().await? };
        let slice = ListSlice::First { first: PART_ROWS, after };
        let listing = Listing { slice, with_cursors: true, ..Listing::default() };
        let list = Operation::List { record: self.record, listing, selection: self.shape.selection.clone() };
        let format = CursorFormat::of(self.engine.model().record(self.record), &[]);
        let rows = RowWriter::new(&self.shape, RowEncoding::Events).with_cursors(format).with_versions();
        let (read, outcomes) = read_rows(&self.engine, vec![list], rows).await?;
        let more = matches!(outcomes.last(), Some(Outcome::Listed { has_more: true, .. }));
        let first = self.parts.last().map_or(i64::MIN, |(last, _)| *last);
        let last = read.versions.last().filter(|_| more).map_or(i64::MAX, |(id, _)| *id);
        self.parts.push((last, before));
        self.note_changes(feed, before, (first, last), &read.versions).await?;
        self.next_cursor = more.then_some(read.last_cursor);
        Ok(read.bytes)
    }

    /// Looks which changes came while the part was read, and which of them it has.
    async fn note_changes(
        &mut self,
        feed: &ChangeFeed,
        before: i64,
        ids: (i64, i64),
        rows: &[(i64, i64)],
    ) -> Result<()> {
        self.until = feed.last_change_number().await?;
        let resource = self.engine.model().record(self.record).name.clone();
        let mut at = before;
        while at < self.until {
            let stretch = feed.changes_after(at).await?;
            let own = stretch.changes.iter().filter(|change| change.type_name == resource);
            for change in own.filter(|change| ids.0 < change.record_id && change.record_id <= ids.1) {
                let row = rows.binary_search_by_key(&change.record_id, |(id, _)| *id);
                let has =
                    row.is_ok_and(|row| rows[row].1 >= change.version) && change.kind != ChangeKind::Deleted;
                if has {
                    self.included_changes.insert(change.number);
                }
            }
            at = stretch.until;
        }
        Ok(())
    }

    /// Whether the client has seen this change in the snapshot.
    pub fn includes(&self, change: &RecordChange) -> bool {
        let part = self.parts.iter().find(|(last, _)| change.record_id <= *last);
        part.is_some_and(|(_, before)| change.number <= *before)
            || self.included_changes.contains(&change.number)
    }

    /// The stream has come to here: what lies behind the snapshot need not be remembered.
    pub fn forget_up_to(&mut self, at: i64) {
        if at >= self.until {
            self.parts.clear();
            self.included_changes.clear();
        }
    }
}
