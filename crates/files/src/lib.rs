//! A file or folder that grows beside its place and comes there whole: at once, for good, and by one process at a time.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// How often what was just held may turn out to be another's before something else is wrong: a file system that tells the
/// same file by two numbers, say.
const MAX_LOCK_ATTEMPTS: usize = 100;

/// Removed when dropped before it is in its place.
#[derive(Debug)]
pub struct AtomicReplacement {
    /// Where it grows: `NAME.partial`.
    pub partial_path: PathBuf,
    target: PathBuf,
    /// Locked, so that what a killed command left is told from what another is writing.
    locked_file: File,
    /// Those of the file that it replaces.
    target_permissions: Option<Permissions>,
    pub is_committed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
}

/// What grows, in the hands of this process.
struct LockedEntry {
    path: PathBuf,
    file: File,
    /// Not so on a file system without locks: there it may be in other hands too.
    is_locked: bool,
}

impl AtomicReplacement {
    /// An empty file, for the eyes of those alone who may read the one that it replaces.
    pub fn create_file(place: &Path) -> io::Result<AtomicReplacement> {
        let mut partial = AtomicReplacement::from_locked(
            place,
            lock_partial(place, EntryKind::File, |path| open_or_create(path, EntryKind::File))?,
        );
        if let Ok(old) = fs::metadata(place) {
            partial.copy_ownership(&old)?;
        }
        partial.locked_file.set_len(0)?;
        Ok(partial)
    }

    /// An empty folder.
    pub fn create_folder(place: &Path) -> io::Result<AtomicReplacement> {
        let partial = AtomicReplacement::from_locked(
            place,
            lock_partial(place, EntryKind::Folder, |path| open_or_create(path, EntryKind::Folder))?,
        );
        for entry in fs::read_dir(&partial.partial_path)? {
            remove_file_or_folder(&entry?.path())?;
        }
        Ok(partial)
    }

    /// The file that a killed command left, as it is. None where it may be one that another is writing.
    pub fn open_leftover(place: &Path) -> io::Result<Option<AtomicReplacement>> {
        let held = lock_partial(place, EntryKind::File, |path| File::options().write(true).open(path))?;
        Ok(held.is_locked.then(|| AtomicReplacement::from_locked(place, held)))
    }

    fn from_locked(place: &Path, held: LockedEntry) -> AtomicReplacement {
        let LockedEntry { path, file, .. } = held;
        AtomicReplacement {
            partial_path: path,
            target: place.to_owned(),
            locked_file: file,
            target_permissions: None,
            is_committed: false,
        }
    }

    /// While it grows, whoever writes it may write it, also over a file that nobody may write to.
    fn copy_ownership(&mut self, old: &Metadata) -> io::Result<()> {
        // Not everybody may give a file away: then it is theirs, in the old group if they are in it.
        if fchown(&self.locked_file, Some(old.uid()), Some(old.gid())).is_err() {
            let _ = fchown(&self.locked_file, None, Some(old.gid()));
        }
        self.target_permissions = Some(old.permissions());
        self.locked_file.set_permissions(Permissions::from_mode(old.mode() | 0o600))
    }

    /// The file, to be written to.
    pub fn writer(&self) -> io::Result<File> {
        self.locked_file.try_clone()
    }

    /// On the disk, and from then on under its own name. Others are kept from it until that is done.
    pub fn commit(&mut self) -> io::Result<()> {
        self.locked_file.sync_all()?;
        if let Some(permissions) = &self.target_permissions {
            self.locked_file.set_permissions(permissions.clone())?;
        }
        fs::rename(&self.partial_path, &self.target)?;
        self.is_committed = true;
        let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for AtomicReplacement {
    fn drop(&mut self) {
        if !self.is_committed {
            // What cannot be removed now goes when the command is run again.
            let _ = remove_file_or_folder(&self.partial_path);
        }
    }
}

fn lock_partial(
    place: &Path,
    kind: EntryKind,
    open: impl Fn(&Path) -> io::Result<File>,
) -> io::Result<LockedEntry> {
    let path = partial_path_for(place)?;
    for _ in 0..MAX_LOCK_ATTEMPTS {
        let file = open(&path)?;
        let is_locked = interpret_lock_result(file.try_lock())?;
        // Between the two whoever had it may have put it in its place: then it is whole, and not to be touched.
        if !is_same_file(&file, &path)? {
            continue;
        }
        if file.metadata()?.is_dir() == (kind == EntryKind::Folder) {
            return Ok(LockedEntry { path, file, is_locked });
        }
        if !is_locked {
            return Err(io::Error::other("another command may be writing it; remove it if none is"));
        }
        // A killed command left something of the other kind.
        remove_file_or_folder(&path)?;
    }
    Err(io::Error::other(format!("{} is another each time it is looked at", path.display())))
}

/// Makes it where it is not there. What is there may be of the other kind.
fn open_or_create(path: &Path, kind: EntryKind) -> io::Result<File> {
    match kind {
        EntryKind::File => match File::options().create(true).truncate(false).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => File::open(path),
            opened => opened,
        },
        EntryKind::Folder => match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => File::open(path),
        },
    }
}

/// A file system may be without locks: there nobody can be told apart.
fn interpret_lock_result(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another command is writing it")),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn partial_path_for(place: &Path) -> io::Result<PathBuf> {
    let Some(name) = place.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it cannot be made; name something in it"));
    };
    let mut name = name.to_owned();
    name.push(".partial");
    Ok(place.with_file_name(name))
}

fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn remove_file_or_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_another_is_writing_is_left_alone_and_what_was_left_goes() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        fs::write(folder.path().join("x.partial"), "left by a killed command").unwrap();
        let mut first = AtomicReplacement::create_file(&place).unwrap();
        let refused = AtomicReplacement::create_file(&place).unwrap_err().to_string();
        assert_eq!(refused, "another command is writing it");
        first.writer().unwrap().write_all(b"new").unwrap();
        first.commit().unwrap();
        drop(first);
        assert_eq!(fs::read_to_string(&place).unwrap(), "new");
        drop(AtomicReplacement::create_file(&place).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "dropped, nothing is left beside");
    }

    /// The lock of one that came too late may be on the very file that was just finished.
    #[test]
    fn what_was_finished_meanwhile_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        let first = std::cell::Cell::new(Some(AtomicReplacement::create_file(&place).unwrap()));
        let open = |path: &Path| {
            let file = File::options().create(true).truncate(false).write(true).open(path);
            if let Some(mut first) = first.take() {
                first.writer().and_then(|mut file| file.write_all(b"whole")).unwrap();
                first.commit().unwrap();
            }
            file
        };
        let second = lock_partial(&place, EntryKind::File, open).unwrap();
        second.file.set_len(0).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "whole");
    }

    #[test]
    fn what_is_never_the_same_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = |_: &Path| File::create(folder.path().join("y"));
        let error = lock_partial(&folder.path().join("x"), EntryKind::File, elsewhere).err().unwrap();
        assert!(error.to_string().ends_with("x.partial is another each time it is looked at"), "{error}");
    }

    #[test]
    fn what_was_left_is_not_known_to_be_left_without_a_lock() {
        let unsupported = || TryLockError::Error(io::ErrorKind::Unsupported.into());
        assert!(
            !interpret_lock_result(Err(unsupported())).unwrap() && interpret_lock_result(Ok(())).unwrap()
        );
        assert!(interpret_lock_result(Err(TryLockError::WouldBlock)).is_err());
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        assert!(AtomicReplacement::open_leftover(&place).is_err());
        fs::write(folder.path().join("x.partial"), "half").unwrap();
        let left = AtomicReplacement::open_leftover(&place).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&left.partial_path).unwrap(), "half");
        drop(left);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_left_of_the_other_kind_goes() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        let beside = folder.path().join("x.partial");
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join("users.ndjson"), "half").unwrap();
        let held = File::open(&beside).unwrap();
        held.lock().unwrap();
        assert_eq!(
            AtomicReplacement::create_file(&place).unwrap_err().to_string(),
            "another command is writing it"
        );
        drop(held);
        AtomicReplacement::create_file(&place).unwrap().commit().unwrap();
        assert!(place.is_file() && !beside.exists());
        fs::remove_file(&place).unwrap();
        fs::write(&beside, "half").unwrap();
        AtomicReplacement::create_folder(&place).unwrap().commit().unwrap();
        assert!(place.is_dir() && !beside.exists());
    }

    #[test]
    fn what_only_some_may_read_stays_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        for (old, growing) in [(0o600, 0o600), (0o400, 0o600), (0o444, 0o644)] {
            fs::write(&place, "secret").unwrap();
            fs::set_permissions(&place, Permissions::from_mode(old)).unwrap();
            // Where this may be done, it may be done again.
            let _ = std::os::unix::fs::chown(&place, Some(1), Some(1));
            let before = fs::metadata(&place).unwrap();
            let mut partial = AtomicReplacement::create_file(&place).unwrap();
            assert_eq!(fs::metadata(&partial.partial_path).unwrap().mode() & 0o777, growing);
            partial.commit().unwrap();
            let after = fs::metadata(&place).unwrap();
            let whose = |file: &Metadata| (file.mode(), file.uid(), file.gid());
            assert_eq!(whose(&after), whose(&before));
            fs::remove_file(&place).unwrap();
        }
    }
}
