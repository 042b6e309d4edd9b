//! The list at the start of a change stream: read in parts while changes go on, with a record of which changes it includes.

use std::collections::HashSet;
use std::sync::Arc;

use trefoil_engine::cursor::CursorFormat;
use trefoil_engine::{ChangeFeed, ChangeKind, Engine, ListSlice, Listing, Operation, Outcome, RecordChange};
use trefoil_model::error::Result;
use trefoil_model::{RecordId, RecordTypeId};
use trefoil_resources::record_shape::RecordShape;
use trefoil_resources::request::read_rows;
use trefoil_resources::row_writer::{RowEncoding, RowWriter};

/// Records per part: a part is read in one go and held in memory.
const PART_ROWS: i64 = 500;

/// A list being read in parts, and the changes that the parts include.
pub struct ListSnapshot {
    engine: Engine,
    record: RecordTypeId,
    shape: Arc<RecordShape>,
    /// Cursor at which the next part starts (inner `None`: at the beginning); `None` after the last part.
    next_cursor: Option<Option<String>>,
    parts: Vec<SnapshotPart>,
    /// Later changes that the parts include too, because they were made while a part was read.
    included_changes: HashSet<i64>,
    /// All changes after this one are missing from the snapshot.
    until: i64,
}

/// A part that was read.
struct SnapshotPart {
    /// `None` if it was the last part, which goes to the end of the list.
    last_id: Option<RecordId>,
    /// Includes all changes up to this number.
    includes_until: i64,
}

impl SnapshotPart {
    /// True if the part or one before it would contain a record with this id.
    fn reaches(&self, id: &RecordId) -> bool {
        self.last_id.as_ref().is_none_or(|last| id <= last)
    }
}

impl ListSnapshot {
    pub fn new(engine: Engine, record: RecordTypeId, shape: Arc<RecordShape>) -> ListSnapshot {
        ListSnapshot {
            engine,
            record,
            shape,
            next_cursor: Some(None),
            parts: Vec::new(),
            included_changes: HashSet::new(),
            until: 0,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.next_cursor.is_none()
    }

    /// The next records, one event each. `start` is the change at which the stream begins, before the first part.
    pub async fn read_part(&mut self, feed: &ChangeFeed, start: i64) -> Result<Vec<u8>> {
        let Some(after) = self.next_cursor.take() else { return Ok(Vec::new()) };
        let before = if after.is_none() { start } else { feed.last_change_number().await? };
        let slice = ListSlice::First { first: PART_ROWS, after };
        let listing = Listing { slice, with_cursors: true, ..Listing::default() };
        let list = Operation::List { record: self.record, listing, selection: self.shape.selection.clone() };
        let model = self.engine.model();
        let format = CursorFormat::of(model, model.record(self.record), &[]);
        let rows = RowWriter::new(&self.shape, RowEncoding::Events).with_cursors(format).with_versions();
        let (read, outcomes) = read_rows(&self.engine, vec![list], rows).await?;
        let has_more = matches!(outcomes.last(), Some(Outcome::Listed { has_more: true, .. }));
        let last_id = read.versions.last().filter(|_| has_more).map(|(id, _)| id.clone());
        self.parts.push(SnapshotPart { last_id, includes_until: before });
        self.note_changes(feed, before, &read.versions).await?;
        self.next_cursor = has_more.then_some(read.last_cursor);
        Ok(read.bytes)
    }

    /// Finds the changes made while the part was read, and remembers those that it includes.
    async fn note_changes(&mut self, feed: &ChangeFeed, before: i64, rows: &[(RecordId, i64)]) -> Result<()> {
        self.until = feed.last_change_number().await?;
        let resource = self.engine.model().record(self.record).name.clone();
        let mut position = before;
        while position < self.until {
            let batch = feed.changes_after(position).await?;
            let own = batch.changes.iter().filter(|change| change.type_name == resource);
            for change in own {
                let row = rows.binary_search_by_key(&&change.record_id, |(id, _)| id);
                let is_included =
                    row.is_ok_and(|row| rows[row].1 >= change.version) && change.kind != ChangeKind::Deleted;
                if is_included {
                    self.included_changes.insert(change.number);
                }
            }
            position = batch.until;
        }
        Ok(())
    }

    /// True if the snapshot includes this change.
    pub fn includes(&self, change: &RecordChange) -> bool {
        let part = self.parts.iter().find(|part| part.reaches(&change.record_id));
        part.is_some_and(|part| change.number <= part.includes_until)
            || self.included_changes.contains(&change.number)
    }

    /// Frees the memory of included changes once the stream has passed the end of the snapshot.
    pub fn forget_up_to(&mut self, position: i64) {
        if position >= self.until {
            self.parts.clear();
            self.included_changes.clear();
        }
    }
}
