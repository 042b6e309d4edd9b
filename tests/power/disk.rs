//! What a power cut leaves: replays a journal into a disk that keeps what was synced and forgets at will what was not.
//!
//! What is assumed of the disk, and what is not:
//! - A sector of 512 bytes is written whole or not at all, and holds one of the contents it had in memory since the
//!   last sync. Which one is independent of all other sectors: writes are torn and reordered at will.
//! - The size of a file is one of those it had since the last sync, whatever became of the sectors.
//! - fsync and fdatasync make durable what was written to that file before they began, and nothing else.
//! - A directory entry (create, rename, unlink, mkdir) is durable when its directory was synced; a synced file whose
//!   entry was not may be gone. POSIX promises no more; ext4 would.
//! - After a failed sync the pages count as clean although they are not on the disk (as Linux has it): only writing
//!   them again and syncing that makes them durable.
//! - What was never synced survives as well as not: neither may be relied upon.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::chance::Chance;
use super::journal::{Event, Record};

const SECTOR: u64 = 512;
const ZEROS: [u8; SECTOR as usize] = [0; SECTOR as usize];

#[derive(Default)]
pub struct Disk<'j> {
    nodes: Vec<Node<'j>>,
    /// The node an inode stands for at present; inodes are reused, nodes are not.
    inodes: HashMap<u64, usize>,
    /// The tree as programs see it …
    live: BTreeMap<String, usize>,
    /// … as the disk is bound to keep it, and the changes that lie between.
    settled: BTreeMap<String, usize>,
    pending: Vec<EntryChange>,
}

enum Node<'j> {
    Directory { path: String },
    File(File<'j>),
}

struct EntryChange {
    at: u64,
    directory: String,
    path: String,
    node: Option<usize>,
}

#[derive(Default)]
struct File<'j> {
    settled: Vec<u8>,
    size: u64,
    pieces: Vec<Piece<'j>>,
    sizes: Vec<(u64, u64)>,
    /// The journal's length up to which a sync has failed.
    failed: u64,
}

/// A part of a write that lies in one sector.
struct Piece<'j> {
    at: u64,
    offset: u64,
    bytes: &'j [u8],
}

/// How a cut treats what was not synced.
#[derive(Debug, Clone, Copy)]
pub enum SurvivingWrites {
    Everything,
    Nothing,
    /// All up to some moment since, nothing after it.
    Ordered(u64),
    /// Each sector and entry for itself, with this chance in a hundred to be as last written.
    Torn(u64),
}

/// The files a cut leaves, by path; a directory has no bytes.
pub type Image = BTreeMap<String, Option<Vec<u8>>>;

impl<'j> Disk<'j> {
    /// A disk on which an image lies already, every byte of it durable: `folder` holds the same as real files.
    pub fn holding(image: &Image, folder: &Path) -> Disk<'j> {
        let mut disk = Disk::default();
        for (path, bytes) in image {
            let inode = folder.join(path).metadata().expect("the image was restored there").ino();
            let node = disk.add(
                inode,
                match bytes {
                    None => Node::Directory { path: path.clone() },
                    Some(bytes) => Node::File(File {
                        settled: bytes.clone(),
                        size: bytes.len() as u64,
                        ..File::default()
                    }),
                },
            );
            disk.live.insert(path.clone(), node);
        }
        disk.settled = disk.live.clone();
        disk
    }

    pub fn apply(&mut self, record: &Record<'j>) {
        let at = record.end;
        match record.event {
            Event::Root { inode } => self.add_directory(inode, ""),
            Event::Create { inode, path } => {
                let node = self.add(inode, Node::File(File::default()));
                self.enter(at, path, Some(node));
            }
            Event::Directory { inode, path } => {
                self.add_directory(inode, path);
                self.enter(at, path, Some(self.inodes[&inode]));
            }
            Event::Link { inode, path } => self.enter(at, path, Some(self.inodes[&inode])),
            Event::Unlink { path } => self.enter(at, path, None),
            Event::Rename { from, to } => {
                let node = self.live.get(from).copied();
                self.enter(at, from, None);
                self.enter(at, to, node);
            }
            Event::Write { inode, at: offset, bytes } => self.file(inode).write(at, offset, bytes),
            Event::Truncate { inode, to } => self.file(inode).truncate(at, to),
            Event::Sync { inode, began } => self.sync(inode, began),
            Event::SyncFailed { inode, began } => {
                if let Node::File(file) = &mut self.nodes[self.inodes[&inode]] {
                    file.failed = began;
                }
            }
            Event::Unknown { what } => panic!("the simulated disk cannot model {what}"),
        }
    }

    fn add(&mut self, inode: u64, node: Node<'j>) -> usize {
        self.nodes.push(node);
        self.inodes.insert(inode, self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn add_directory(&mut self, inode: u64, path: &str) {
        self.add(inode, Node::Directory { path: path.to_owned() });
    }

    fn file(&mut self, inode: u64) -> &mut File<'j> {
        match &mut self.nodes[self.inodes[&inode]] {
            Node::File(file) => file,
            Node::Directory { path } => panic!("the directory {path} was written like a file"),
        }
    }

    fn enter(&mut self, at: u64, path: &str, node: Option<usize>) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
        set(&mut self.live, path, node);
        self.pending.push(EntryChange { at, directory, path: path.to_owned(), node });
    }

    fn sync(&mut self, inode: u64, began: u64) {
        match &mut self.nodes[self.inodes[&inode]] {
            Node::File(file) => file.sync(began),
            Node::Directory { path } => {
                let vouched = |change: &EntryChange| change.at <= began && change.directory == *path;
                for change in self.pending.extract_if(.., |change| vouched(change)) {
                    set(&mut self.settled, &change.path, change.node);
                }
            }
        }
    }

    /// What is left when the power goes now.
    pub fn cut(&self, surviving: SurvivingWrites, chance: &mut Chance) -> Image {
        let mut tree = self.settled.clone();
        for change in &self.pending {
            if surviving.keeps(change.at, chance) {
                set(&mut tree, &change.path, change.node);
            }
        }
        let mut image = Image::new();
        for (path, node) in tree {
            let parent = path.rsplit_once('/').map(|(parent, _)| parent);
            if parent.is_some_and(|parent| !image.contains_key(parent)) {
                continue; // its directory is gone, and with it the way to the file
            }
            let bytes = match &self.nodes[node] {
                Node::Directory { .. } => None,
                // SQLite maps this file and must not believe it after a crash: noise tells whether it does.
                Node::File(_) if path.ends_with("-shm") => {
                    Some((0..32_768).map(|_| chance.next() as u8).collect())
                }
                Node::File(file) => Some(file.cut(surviving, chance)),
            };
            image.insert(path, bytes);
        }
        image
    }

    /// A moment since which something is not synced, for [`SurvivingWrites::Ordered`].
    pub fn unsynced_moment(&self, chance: &mut Chance) -> u64 {
        let pieces = self.nodes.iter().filter_map(|node| match node {
            Node::File(file) => Some(file.pieces.iter().map(|piece| piece.at)),
            Node::Directory { .. } => None,
        });
        let moments: Vec<u64> = pieces.flatten().chain(self.pending.iter().map(|change| change.at)).collect();
        chance.pick(&moments).copied().unwrap_or(0)
    }
}

fn set(tree: &mut BTreeMap<String, usize>, path: &str, node: Option<usize>) {
    match node {
        Some(node) => tree.insert(path.to_owned(), node),
        None => tree.remove(path),
    };
}

impl SurvivingWrites {
    fn keeps(self, at: u64, chance: &mut Chance) -> bool {
        match self {
            SurvivingWrites::Everything => true,
            SurvivingWrites::Nothing => false,
            SurvivingWrites::Ordered(moment) => at <= moment,
            SurvivingWrites::Torn(percent) => chance.percent(percent),
        }
    }

    /// How many of the successive states made at these moments are passed through.
    fn reached(self, moments: &[u64], chance: &mut Chance) -> usize {
        match self {
            SurvivingWrites::Everything => moments.len(),
            SurvivingWrites::Nothing => 0,
            SurvivingWrites::Ordered(moment) => moments.partition_point(|at| *at <= moment),
            SurvivingWrites::Torn(percent) if chance.percent(percent) => moments.len(),
            SurvivingWrites::Torn(_) => chance.below(moments.len() + 1),
        }
    }
}

impl<'j> File<'j> {
    fn write(&mut self, at: u64, mut offset: u64, mut bytes: &'j [u8]) {
        let size = self.size.max(offset + bytes.len() as u64);
        while !bytes.is_empty() {
            let here = bytes.len().min((SECTOR - offset % SECTOR) as usize);
            self.pieces.push(Piece { at, offset, bytes: &bytes[..here] });
            (offset, bytes) = (offset + here as u64, &bytes[here..]);
        }
        self.resize(at, size);
    }

    /// Growing only moves the end; shrinking also empties what lay beyond, should the file grow again.
    fn truncate(&mut self, at: u64, to: u64) {
        let mut offset = to;
        while offset < self.size {
            let here = SECTOR - offset % SECTOR;
            self.pieces.push(Piece { at, offset, bytes: &ZEROS[..here as usize] });
            offset += here;
        }
        self.resize(at, to);
    }

    fn resize(&mut self, at: u64, size: u64) {
        if size != self.size {
            self.size = size;
            self.sizes.push((at, size));
        }
    }

    fn sync(&mut self, began: u64) {
        let mut last: HashMap<u64, u64> = HashMap::new();
        for piece in self.pieces.iter().filter(|piece| piece.at <= began) {
            last.insert(piece.offset / SECTOR, piece.at);
        }
        let failed = self.failed;
        let written = |piece: &mut Piece| last.get(&(piece.offset / SECTOR)).is_some_and(|at| *at > failed);
        for piece in self.pieces.extract_if(.., |piece| piece.at <= began && written(piece)) {
            piece.put(&mut self.settled);
        }
        if let Some((_, size)) = self.sizes.extract_if(.., |(at, _)| *at <= began).last() {
            self.settled.resize(size as usize, 0);
        }
    }

    fn cut(&self, surviving: SurvivingWrites, chance: &mut Chance) -> Vec<u8> {
        let mut sectors: BTreeMap<u64, Vec<&Piece>> = BTreeMap::new();
        for piece in &self.pieces {
            sectors.entry(piece.offset / SECTOR).or_default().push(piece);
        }
        let mut bytes = self.settled.clone();
        for pieces in sectors.values() {
            let moments: Vec<u64> = pieces.iter().map(|piece| piece.at).collect();
            let reached = surviving.reached(&moments, chance);
            pieces[..reached].iter().for_each(|piece| piece.put(&mut bytes));
        }
        let moments: Vec<u64> = self.sizes.iter().map(|(at, _)| *at).collect();
        let size = match surviving.reached(&moments, chance) {
            0 => self.settled.len(),
            reached => self.sizes[reached - 1].1 as usize,
        };
        bytes.resize(size, 0);
        bytes
    }
}

impl Piece<'_> {
    fn put(&self, into: &mut Vec<u8>) {
        let (start, end) = (self.offset as usize, self.offset as usize + self.bytes.len());
        if into.len() < end {
            into.resize(end, 0);
        }
        into[start..end].copy_from_slice(self.bytes);
    }
}

/// Lays an image out as real files in an empty folder.
pub fn restore(image: &Image, folder: &Path) {
    for (path, bytes) in image {
        let path = folder.join(path);
        match bytes {
            Some(bytes) => std::fs::write(path, bytes),
            None => std::fs::create_dir(path),
        }
        .expect("an empty folder takes files");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: u64 = 1;
    const FILE: u64 = 2;

    /// The bytes of `file` after a cut that follows `events`, each of which makes the journal longer by one.
    fn left(events: &[Event<'static>], surviving: SurvivingWrites, seed: u64) -> Option<Vec<u8>> {
        let mut disk = Disk::default();
        let made = [Event::Root { inode: FOLDER }, Event::Create { inode: FILE, path: "file" }];
        for (i, event) in made.iter().chain(events).enumerate() {
            disk.apply(&Record { end: i as u64, event: *event });
        }
        disk.cut(surviving, &mut Chance::new(seed)).remove("file").flatten()
    }

    fn write(at: u64, bytes: &'static [u8]) -> Event<'static> {
        Event::Write { inode: FILE, at, bytes }
    }

    fn sync(inode: u64, began: u64) -> Event<'static> {
        Event::Sync { inode, began }
    }

    #[test]
    fn directory_entry_lasts_once_synced() {
        assert_eq!(left(&[write(0, b"a"), sync(FILE, 2)], SurvivingWrites::Nothing, 0), None);
        let both = [write(0, b"a"), sync(FILE, 2), sync(FOLDER, 3)];
        assert_eq!(left(&both, SurvivingWrites::Nothing, 0), Some(b"a".to_vec()));
    }

    #[test]
    fn sync_covers_only_earlier_writes() {
        let overlapping = [sync(FOLDER, 1), write(0, b"old"), write(0, b"new"), sync(FILE, 3)];
        assert_eq!(left(&overlapping, SurvivingWrites::Nothing, 0), Some(b"old".to_vec()));
        assert_eq!(left(&overlapping, SurvivingWrites::Everything, 0), Some(b"new".to_vec()));
        assert_eq!(left(&overlapping, SurvivingWrites::Ordered(3), 0), Some(b"old".to_vec()));
    }

    #[test]
    fn failed_sync_loses_its_writes() {
        let failed = Event::SyncFailed { inode: FILE, began: 3 };
        let forgotten = [sync(FOLDER, 1), write(0, b"lost"), failed, sync(FILE, 4)];
        assert_eq!(left(&forgotten, SurvivingWrites::Nothing, 0), Some(b"\0\0\0\0".to_vec()));
        let again = [sync(FOLDER, 1), write(0, b"lost"), failed, write(0, b"kept"), sync(FILE, 5)];
        assert_eq!(left(&again, SurvivingWrites::Nothing, 0), Some(b"kept".to_vec()));
    }

    #[test]
    fn torn_writes_split_only_between_sectors() {
        let events = [sync(FOLDER, 1), write(100, &[1; 1200])];
        let mut seen = std::collections::HashSet::new();
        for seed in 0..200 {
            let bytes = left(&events, SurvivingWrites::Torn(50), seed).expect("the entry is synced");
            let sector = |range: std::ops::Range<usize>| {
                bytes.get(range).map(|part| part.iter().map(|b| *b as u32).sum())
            };
            let sums: [Option<u32>; 3] = [sector(100..512), sector(512..1024), sector(1024..1300)];
            let whole = [412, 512, 276];
            assert!(
                sums.iter().zip(whole).all(|(sum, whole)| sum.is_none_or(|sum| sum == 0 || sum == whole))
            );
            seen.insert(sums);
        }
        assert_eq!(seen.len(), 9, "no size at all, or every choice of three sectors");
    }
}
