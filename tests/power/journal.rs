//! Reads the journal that `tests/disk/disk.c` writes: every change of files and every sync, in the order they happened.

use std::path::Path;

/// The bytes of a journal. A place in it is a moment of the disk's life: its length when something was seen says
/// what had happened by then, without any clock.
pub struct Journal {
    bytes: Vec<u8>,
}

/// A change and the length of the journal once it was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Record<'j> {
    pub end: u64,
    pub event: Event<'j>,
}

/// Files are named by inode, paths are relative to the watched folder; `began` is a length of the journal.
#[derive(Debug, Clone, Copy)]
pub enum Event<'j> {
    Root { inode: u64 },
    Create { inode: u64, path: &'j str },
    Directory { inode: u64, path: &'j str },
    Link { inode: u64, path: &'j str },
    Write { inode: u64, at: u64, bytes: &'j [u8] },
    Truncate { inode: u64, to: u64 },
    Sync { inode: u64, began: u64 },
    SyncFailed { inode: u64, began: u64 },
    Unlink { path: &'j str },
    Rename { from: &'j str, to: &'j str },
    Unknown { what: &'j str },
}

const HEAD: usize = 32;

impl Journal {
    pub fn read(path: &Path) -> Journal {
        Journal { bytes: std::fs::read(path).expect("the shim made a journal") }
    }

    /// All whole records; a kill may have cut the last one short, and nobody was told of that change.
    pub fn records(&self) -> Vec<Record<'_>> {
        let (mut records, mut rest) = (Vec::new(), self.bytes.as_slice());
        while let Some((event, after)) = record(rest) {
            rest = after;
            records.push(Record { end: (self.bytes.len() - rest.len()) as u64, event });
        }
        records
    }
}

fn record(bytes: &[u8]) -> Option<(Event<'_>, &[u8])> {
    let (head, body) = bytes.split_at_checked(HEAD)?;
    let number = |i: usize| u64::from_ne_bytes(head[i * 8..][..8].try_into().expect("eight bytes"));
    let (body, rest) = body.split_at_checked(number(1) as usize)?;
    Some((event(number(0) as u8, number(2), number(3), body), rest))
}

fn event(kind: u8, inode: u64, place: u64, body: &[u8]) -> Event<'_> {
    match kind {
        b'R' => Event::Root { inode },
        b'C' => Event::Create { inode, path: text(body) },
        b'D' => Event::Directory { inode, path: text(body) },
        b'L' => Event::Link { inode, path: text(body) },
        b'W' => Event::Write { inode, at: place, bytes: body },
        b'T' => Event::Truncate { inode, to: place },
        b'S' => Event::Sync { inode, began: place },
        b'F' => Event::SyncFailed { inode, began: place },
        b'U' => Event::Unlink { path: text(body) },
        b'N' => {
            let (from, to) = text(body).split_once('\0').expect("two paths");
            Event::Rename { from, to }
        }
        b'?' => Event::Unknown { what: text(body) },
        other => panic!("a record of the kind {other} in the journal"),
    }
}

fn text(body: &[u8]) -> &str {
    std::str::from_utf8(body).expect("paths of the tests are UTF-8")
}
