//! Writes a file or folder under a temporary name and moves it into place atomically, one process at a time.
//!
//! Exports and transfers between stores use it, so that a killed command never leaves half a file under the final name.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Attempts to lock a path that keeps changing. More means another problem, such as a file system that reports the
/// same file with two inode numbers.
const MAX_LOCK_ATTEMPTS: usize = 100;

/// A file or folder being written. Removed when dropped before [`AtomicReplacement::commit`].
#[derive(Debug)]
pub struct AtomicReplacement {
    /// The temporary path: `NAME.partial`.
    pub partial_path: PathBuf,
    target: PathBuf,
    /// Locked, to tell a file that another command is writing from a leftover of a killed one.
    locked_file: File,
    /// The permissions of the file that is replaced.
    target_permissions: Option<Permissions>,
    pub is_committed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    File,
    Folder,
}

/// A temporary file or folder opened by this process.
struct LockedEntry {
    path: PathBuf,
    file: File,
    /// False on a file system without locks, where other processes may use it too.
    is_locked: bool,
}

impl AtomicReplacement {
    /// Creates an empty file with the permissions of the file that it replaces.
    pub fn create_file(target: &Path) -> io::Result<AtomicReplacement> {
        let mut partial = AtomicReplacement::from_locked(
            target,
            lock_partial(target, EntryKind::File, |path| open_or_create(path, EntryKind::File))?,
        );
        if let Ok(old) = fs::metadata(target) {
            partial.copy_ownership(&old)?;
        }
        partial.locked_file.set_len(0)?;
        Ok(partial)
    }

    /// Creates an empty folder.
    pub fn create_folder(target: &Path) -> io::Result<AtomicReplacement> {
        let partial = AtomicReplacement::from_locked(
            target,
            lock_partial(target, EntryKind::Folder, |path| open_or_create(path, EntryKind::Folder))?,
        );
        for entry in fs::read_dir(&partial.partial_path)? {
            remove_file_or_folder(&entry?.path())?;
        }
        Ok(partial)
    }

    /// Opens the file that a killed command left. `None` if another process may be writing it.
    pub fn open_leftover(target: &Path) -> io::Result<Option<AtomicReplacement>> {
        let entry = lock_partial(target, EntryKind::File, |path| File::options().write(true).open(path))?;
        Ok(entry.is_locked.then(|| AtomicReplacement::from_locked(target, entry)))
    }

    fn from_locked(target: &Path, entry: LockedEntry) -> AtomicReplacement {
        let LockedEntry { path, file, .. } = entry;
        AtomicReplacement {
            partial_path: path,
            target: target.to_owned(),
            locked_file: file,
            target_permissions: None,
            is_committed: false,
        }
    }

    /// Copies owner and permissions. Until the commit this process can write the file even if the old one was
    /// read-only.
    fn copy_ownership(&mut self, old: &Metadata) -> io::Result<()> {
        // Without the right to change the owner, at least keep the group.
        if fchown(&self.locked_file, Some(old.uid()), Some(old.gid())).is_err() {
            let _ = fchown(&self.locked_file, None, Some(old.gid()));
        }
        self.target_permissions = Some(old.permissions());
        self.locked_file.set_permissions(Permissions::from_mode(old.mode() | 0o600))
    }

    /// A handle to write the file.
    pub fn writer(&self) -> io::Result<File> {
        self.locked_file.try_clone()
    }

    /// Syncs to disk and renames to the target. The lock is held until that is done.
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
            // If it cannot be removed now, the next run removes it.
            let _ = remove_file_or_folder(&self.partial_path);
        }
    }
}

fn lock_partial(
    target: &Path,
    kind: EntryKind,
    open: impl Fn(&Path) -> io::Result<File>,
) -> io::Result<LockedEntry> {
    let path = partial_path_for(target)?;
    for _ in 0..MAX_LOCK_ATTEMPTS {
        let file = open(&path)?;
        let is_locked = interpret_lock_result(file.try_lock())?;
        // Between opening and locking, another process may have moved it into place: then it must not be touched.
        if !is_same_file(&file, &path)? {
            continue;
        }
        if file.metadata()?.is_dir() == (kind == EntryKind::Folder) {
            return Ok(LockedEntry { path, file, is_locked });
        }
        if !is_locked {
            return Err(io::Error::other("another command may be writing it; if not, remove it"));
        }
        // A killed command left an entry of the other kind.
        remove_file_or_folder(&path)?;
    }
    Err(io::Error::other(format!("{} keeps being replaced by another process", path.display())))
}

/// Opens or creates the entry. An existing one may be of the other kind.
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

/// True if locked, false if the file system has no locks.
fn interpret_lock_result(result: Result<(), TryLockError>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another command is writing it")),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn partial_path_for(target: &Path) -> io::Result<PathBuf> {
    let Some(name) = target.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "invalid target; give a name inside the folder",
        ));
    };
    let mut name = name.to_owned();
    name.push(".partial");
    Ok(target.with_file_name(name))
}

fn is_same_file(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::metadata(path) {
        Ok(current) => Ok((current.dev(), current.ino()) == (open.dev(), open.ino())),
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
    fn locked_files_are_refused_and_leftovers_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        fs::write(folder.path().join("x.partial"), "left by a killed command").unwrap();
        let mut first = AtomicReplacement::create_file(&target).unwrap();
        let refused = AtomicReplacement::create_file(&target).unwrap_err().to_string();
        assert_eq!(refused, "another command is writing it");
        first.writer().unwrap().write_all(b"new").unwrap();
        first.commit().unwrap();
        drop(first);
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        drop(AtomicReplacement::create_file(&target).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "dropped, nothing is left beside");
    }

    /// A late process may get the lock on the very file that was just committed.
    #[test]
    fn committed_file_is_not_truncated() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let first = std::cell::Cell::new(Some(AtomicReplacement::create_file(&target).unwrap()));
        let open = |path: &Path| {
            let file = File::options().create(true).truncate(false).write(true).open(path);
            if let Some(mut first) = first.take() {
                first.writer().and_then(|mut file| file.write_all(b"whole")).unwrap();
                first.commit().unwrap();
            }
            file
        };
        let second = lock_partial(&target, EntryKind::File, open).unwrap();
        second.file.set_len(0).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "whole");
    }

    #[test]
    fn locking_gives_up_after_many_attempts() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = |_: &Path| File::create(folder.path().join("y"));
        let error = lock_partial(&folder.path().join("x"), EntryKind::File, elsewhere).err().unwrap();
        assert!(error.to_string().ends_with("x.partial keeps being replaced by another process"), "{error}");
    }

    #[test]
    fn leftovers_need_a_lock() {
        let unsupported = || TryLockError::Error(io::ErrorKind::Unsupported.into());
        assert!(
            !interpret_lock_result(Err(unsupported())).unwrap() && interpret_lock_result(Ok(())).unwrap()
        );
        assert!(interpret_lock_result(Err(TryLockError::WouldBlock)).is_err());
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        assert!(AtomicReplacement::open_leftover(&target).is_err());
        fs::write(folder.path().join("x.partial"), "half").unwrap();
        let left = AtomicReplacement::open_leftover(&target).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&left.partial_path).unwrap(), "half");
        drop(left);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn leftovers_of_the_other_kind_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        let partial = folder.path().join("x.partial");
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("users.ndjson"), "half").unwrap();
        let locked = File::open(&partial).unwrap();
        locked.lock().unwrap();
        assert_eq!(
            AtomicReplacement::create_file(&target).unwrap_err().to_string(),
            "another command is writing it"
        );
        drop(locked);
        AtomicReplacement::create_file(&target).unwrap().commit().unwrap();
        assert!(target.is_file() && !partial.exists());
        fs::remove_file(&target).unwrap();
        fs::write(&partial, "half").unwrap();
        AtomicReplacement::create_folder(&target).unwrap().commit().unwrap();
        assert!(target.is_dir() && !partial.exists());
    }

    #[test]
    fn permissions_and_owner_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x");
        for (old, temporary) in [(0o600, 0o600), (0o400, 0o600), (0o444, 0o644)] {
            fs::write(&target, "secret").unwrap();
            fs::set_permissions(&target, Permissions::from_mode(old)).unwrap();
            // If this is permitted, so is copying the owner.
            let _ = std::os::unix::fs::chown(&target, Some(1), Some(1));
            let before = fs::metadata(&target).unwrap();
            let mut partial = AtomicReplacement::create_file(&target).unwrap();
            assert_eq!(fs::metadata(&partial.partial_path).unwrap().mode() & 0o777, temporary);
            partial.commit().unwrap();
            let after = fs::metadata(&target).unwrap();
            let ownership = |file: &Metadata| (file.mode(), file.uid(), file.gid());
            assert_eq!(ownership(&after), ownership(&before));
            fs::remove_file(&target).unwrap();
        }
    }
}
