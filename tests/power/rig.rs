//! A folder on the simulated disk: builds the shim, starts programs under it, makes the disk fail, cuts the power.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

use super::chance::Chance;
use super::disk::{self, Disk, Image, SurvivingWrites};
use super::journal::{Event, Journal, Record};

pub const ENOSPC: u8 = 28;
pub const EIO: u8 = 5;

pub struct Rig {
    space: TempDir,
    /// What lay on the disk before any program ran.
    found: Image,
}

/// How the disk behaves from now on.
#[derive(Debug, Clone, Copy)]
pub enum Behaviour {
    Sound,
    /// Every write fails with this error number.
    WritesFail(u8),
    /// What overwrites a file still works, what would make one grow or begin does not.
    Full,
    /// Every sync fails with this error number.
    SyncsFail(u8),
    /// Every sync reports success and does nothing.
    Lying,
}

impl Rig {
    pub fn new() -> Rig {
        Rig::holding(Image::new())
    }

    /// A machine that starts again after a cut.
    pub fn holding(found: Image) -> Rig {
        let rig = Rig { space: space(), found };
        std::fs::create_dir(rig.folder()).expect("an empty folder");
        disk::restore(&rig.found, &rig.folder());
        std::fs::write(rig.file("control"), [0; 4096]).expect("room for the control file");
        std::fs::write(rig.file("journal"), []).expect("room for the journal");
        rig
    }

    fn file(&self, name: &str) -> PathBuf {
        self.space.path().join(name)
    }

    /// The folder that lies on the simulated disk.
    pub fn folder(&self) -> PathBuf {
        self.file("disk")
    }

    /// A program whose files below [`Rig::folder`] lie on the simulated disk.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env("LD_PRELOAD", shim())
            .env("DISK_FOLDER", self.folder())
            .env("DISK_JOURNAL", self.file("journal"))
            .env("DISK_CONTROL", self.file("control"))
            .env("DISK_SYNC_US", "1500");
        command
    }

    pub fn behave(&self, behaviour: Behaviour) {
        // Write errno, sync errno, lies, only growth fails: the order of `disk.c`.
        let bytes: [u8; 4] = match behaviour {
            Behaviour::Sound => [0, 0, 0, 0],
            Behaviour::WritesFail(errno) => [errno, 0, 0, 0],
            Behaviour::Full => [ENOSPC, 0, 0, 1],
            Behaviour::SyncsFail(errno) => [0, errno, 0, 0],
            Behaviour::Lying => [0, 0, 1, 0],
        };
        // In place: the shim has mapped this file.
        let file =
            std::fs::OpenOptions::new().write(true).open(self.file("control")).expect("the control file");
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("the control file is writable");
    }

    /// Now, on the disk's own clock: what is acknowledged at this moment must outlive every cut from here on.
    pub fn moment(&self) -> u64 {
        self.file("journal").metadata().expect("the journal exists").len()
    }

    pub fn journal(&self) -> Journal {
        Journal::read(&self.file("journal"))
    }

    /// The disk before the first record of the journal.
    pub fn disk(&self) -> Disk<'static> {
        Disk::holding(&self.found, &self.folder())
    }

    /// Leaves everything on the real disk for whoever looks into a failure.
    pub fn keep(self) -> PathBuf {
        self.space.keep()
    }
}

/// A simulated power cut: when (a length of the journal), and what was left in the folder.
pub struct Cut {
    pub moment: u64,
    pub surviving: SurvivingWrites,
    pub image: Image,
}

/// Cuts the power `count` times over the life of one disk; the last one is at its end.
/// `busy` is the first moment worth cutting at (programs that are still starting acknowledge nothing).
pub fn cuts(rig: &Rig, busy: u64, count: usize, seed: u64, mut each: impl FnMut(Cut)) {
    let journal = rig.journal();
    let records = journal.records();
    let mut chance = Chance::new(seed);
    let mut places: Vec<usize> = (1..count).map(|i| place(&records, busy, i, &mut chance)).collect();
    places.push(records.len());
    places.sort_unstable();
    let (mut disk, mut done): (Disk<'_>, usize) = (rig.disk(), 0);
    for place in places {
        records[done..place].iter().for_each(|record| disk.apply(record));
        done = place;
        let surviving = choose_surviving(&disk, &mut chance);
        let image = disk.cut(surviving, &mut chance);
        each(Cut { moment: records[place - 1].end, surviving, image });
    }
}

/// How many records a cut comes after: anywhere, or where it hurts: before and after a sync, and among writes
/// that are not made at the end of a file (a checkpoint's).
fn place(records: &[Record], busy: u64, round: usize, chance: &mut Chance) -> usize {
    let first = records.partition_point(|record| record.end < busy).max(1);
    let syncs = || (first..records.len()).filter(|i| matches!(records[*i].event, Event::Sync { .. }));
    let candidates: Vec<usize> = match round % 4 {
        0 => (first..=records.len()).collect(),
        1 => syncs().collect(),
        2 => syncs().map(|i| i + 1).collect(),
        _ => backward_writes(&records[first..]).map(|i| first + i + 1).collect(),
    };
    chance.pick(&candidates).copied().unwrap_or(records.len())
}

fn backward_writes<'a>(records: &'a [Record]) -> impl Iterator<Item = usize> + 'a {
    let mut ends = std::collections::HashMap::new();
    records.iter().enumerate().filter_map(move |(i, record)| match record.event {
        Event::Write { inode, at, bytes } => {
            let before = ends.insert(inode, at + bytes.len() as u64);
            before.is_some_and(|end| end != at).then_some(i)
        }
        Event::Root { .. }
        | Event::Create { .. }
        | Event::Directory { .. }
        | Event::Link { .. }
        | Event::Truncate { .. }
        | Event::Sync { .. }
        | Event::SyncFailed { .. }
        | Event::Unlink { .. }
        | Event::Rename { .. }
        | Event::Unknown { .. } => None,
    })
}

fn choose_surviving(disk: &Disk, chance: &mut Chance) -> SurvivingWrites {
    match chance.below(6) {
        0 => SurvivingWrites::Nothing,
        1 => SurvivingWrites::Everything,
        2 => SurvivingWrites::Ordered(disk.unsynced_moment(chance)),
        3 => SurvivingWrites::Torn(10),
        4 => SurvivingWrites::Torn(50),
        _ => SurvivingWrites::Torn(90),
    }
}

impl Cut {
    /// The folder as a machine finds it that starts again; it is removed with the value.
    pub fn restore(&self) -> Restored {
        let restored = Restored { space: space() };
        std::fs::create_dir(restored.folder()).expect("an empty folder");
        disk::restore(&self.image, &restored.folder());
        restored
    }
}

pub struct Restored {
    space: TempDir,
}

impl Restored {
    pub fn folder(&self) -> PathBuf {
        self.space.path().join("disk")
    }
}

/// Named, so that what a failed test leaves behind can be told apart.
fn space() -> TempDir {
    tempfile::Builder::new().prefix("trefoil-power-").tempdir().expect("a temporary folder")
}

/// Seeds differ from run to run only when asked to, so that a failure can be had again.
pub fn seed() -> u64 {
    std::env::var("CHECK_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// The compiled shim, made once a test run.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/disk/disk.c");
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("disk-{}.so", std::process::id()));
        let flags = ["-Wall", "-Werror", "-shared", "-fPIC", "-O2", "-o"];
        let built = Command::new("cc").args(flags).args([&made, &source]).status();
        assert!(built.expect("a C compiler, as the bundled SQLite needs one too").success());
        // Renamed, so that another run of the tests never loads half of it.
        let shim = made.with_file_name("disk.so");
        std::fs::rename(made, &shim).expect("the same folder");
        shim
    })
}
