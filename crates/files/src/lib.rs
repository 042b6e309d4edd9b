//! A file or folder that grows beside its place and comes there whole: at once, for good, and by one process at a time.

use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// How often what was just held may turn out to be another's before something else is wrong: a file system that tells the
/// same file by two numbers, say.
const TRIES: usize = 100;

/// Removed when dropped before it is in its place.
#[derive(Debug)]
pub struct Partial {
    /// Where it grows: `NAME.partial`.
    pub path: PathBuf,
    place: PathBuf,
    /// Locked, so that what a killed command left is told from what another is writing.
    held: File,
    /// Those of the file that it replaces.
    permissions: Option<Permissions>,
    pub is_placed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

/// What grows, in the hands of this process.
struct Held {
    path: PathBuf,
    file: File,
    /// Not so on a file system without locks: there it may be in other hands too.
    is_locked: bool,
}

impl Partial {
    /// An empty file, for the eyes of those alone who may read the one that it replaces.
    pub fn file(place: &Path) -> io::Result<Partial> {
        let mut partial = Partial::of(place, hold(place, Kind::File, |path| open(path, Kind::File))?);
        if let Ok(old) = fs::metadata(place) {
            partial.take_after(&old)?;
        }
        partial.held.set_len(0)?;
        Ok(partial)
    }

    /// An empty folder.
    pub fn folder(place: &Path) -> io::Result<Partial> {
        let partial = Partial::of(place, hold(place, Kind::Folder, |path| open(path, Kind::Folder))?);
        for entry in fs::read_dir(&partial.path)? {
            remove(&entry?.path())?;
        }
        Ok(partial)
    }

    /// The file that a killed command left, as it is. None where it may be one that another is writing.
    pub fn left(place: &Path) -> io::Result<Option<Partial>> {
        let held = hold(place, Kind::File, |path| File::options().write(true).open(path))?;
        Ok(held.is_locked.then(|| Partial::of(place, held)))
    }

    fn of(place: &Path, held: Held) -> Partial {
        let Held { path, file, .. } = held;
        Partial { path, place: place.to_owned(), held: file, permissions: None, is_placed: false }
    }

    /// While it grows, whoever writes it may write it, also over a file that nobody may write to.
    fn take_after(&mut self, old: &Metadata) -> io::Result<()> {
        // Not everybody may give a file away: then it is theirs, in the old group if they are in it.
        if fchown(&self.held, Some(old.uid()), Some(old.gid())).is_err() {
            let _ = fchown(&self.held, None, Some(old.gid()));
        }
        self.permissions = Some(old.permissions());
        self.held.set_permissions(Permissions::from_mode(old.mode() | 0o600))
    }

    /// The file, to be written to.
    pub fn writer(&self) -> io::Result<File> {
        self.held.try_clone()
    }

    /// On the disk, and from then on under its own name. Others are kept from it until that is done.
    pub fn place(&mut self) -> io::Result<()> {
        self.held.sync_all()?;
        if let Some(permissions) = &self.permissions {
            self.held.set_permissions(permissions.clone())?;
        }
        fs::rename(&self.path, &self.place)?;
        self.is_placed = true;
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_placed {
            // What cannot be removed now goes when the command is run again.
            let _ = remove(&self.path);
        }
    }
}

fn hold(place: &Path, kind: Kind, open: impl Fn(&Path) -> io::Result<File>) -> io::Result<Held> {
    let path = beside(place)?;
    for _ in 0..TRIES {
        let file = open(&path)?;
        let is_locked = is_locked(file.try_lock())?;
        // Between the two whoever had it may have put it in its place: then it is whole, and not to be touched.
        if !is_at(&file, &path)? {
            continue;
        }
        if file.metadata()?.is_dir() == (kind == Kind::Folder) {
            return Ok(Held { path, file, is_locked });
        }
        if !is_locked {
            return Err(io::Error::other("another command may be writing it; remove it if none is"));
        }
        // A killed command left something of the other kind.
        remove(&path)?;
    }
    Err(io::Error::other(format!("{} is another each time it is looked at", path.display())))
}

/// Makes it where it is not there. What is there may be of the other kind.
fn open(path: &Path, kind: Kind) -> io::Result<File> {
    match kind {
        Kind::File => match File::options().create(true).truncate(false).write(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => File::open(path),
            opened => opened,
        },
        Kind::Folder => match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => File::open(path),
        },
    }
}

/// A file system may be without locks: there nobody can be told apart.
fn is_locked(tried: Result<(), TryLockError>) -> io::Result<bool> {
    match tried {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Err(io::Error::other("another command is writing it")),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn beside(place: &Path) -> io::Result<PathBuf> {
    let Some(name) = place.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it cannot be made; name something in it"));
    };
    let mut name = name.to_owned();
    name.push(".partial");
    Ok(place.with_file_name(name))
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn remove(path: &Path) -> io::Result<()> {
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
        let mut first = Partial::file(&place).unwrap();
        let refused = Partial::file(&place).unwrap_err().to_string();
        assert_eq!(refused, "another command is writing it");
        first.writer().unwrap().write_all(b"new").unwrap();
        first.place().unwrap();
        drop(first);
        assert_eq!(fs::read_to_string(&place).unwrap(), "new");
        drop(Partial::file(&place).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "dropped, nothing is left beside");
    }

    /// The lock of one that came too late may be on the very file that was just finished.
    #[test]
    fn what_was_finished_meanwhile_is_not_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        let first = std::cell::Cell::new(Some(Partial::file(&place).unwrap()));
        let open = |path: &Path| {
            let file = File::options().create(true).truncate(false).write(true).open(path);
            if let Some(mut first) = first.take() {
                first.writer().and_then(|mut file| file.write_all(b"whole")).unwrap();
                first.place().unwrap();
            }
            file
        };
        let second = hold(&place, Kind::File, open).unwrap();
        second.file.set_len(0).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "whole");
    }

    #[test]
    fn what_is_never_the_same_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = |_: &Path| File::create(folder.path().join("y"));
        let error = hold(&folder.path().join("x"), Kind::File, elsewhere).err().unwrap();
        assert!(error.to_string().ends_with("x.partial is another each time it is looked at"), "{error}");
    }

    #[test]
    fn what_was_left_is_not_known_to_be_left_without_a_lock() {
        let unsupported = || TryLockError::Error(io::ErrorKind::Unsupported.into());
        assert!(!is_locked(Err(unsupported())).unwrap() && is_locked(Ok(())).unwrap());
        assert!(is_locked(Err(TryLockError::WouldBlock)).is_err());
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        assert!(Partial::left(&place).is_err());
        fs::write(folder.path().join("x.partial"), "half").unwrap();
        let left = Partial::left(&place).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&left.path).unwrap(), "half");
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
        assert_eq!(Partial::file(&place).unwrap_err().to_string(), "another command is writing it");
        drop(held);
        Partial::file(&place).unwrap().place().unwrap();
        assert!(place.is_file() && !beside.exists());
        fs::remove_file(&place).unwrap();
        fs::write(&beside, "half").unwrap();
        Partial::folder(&place).unwrap().place().unwrap();
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
            let mut partial = Partial::file(&place).unwrap();
            assert_eq!(fs::metadata(&partial.path).unwrap().mode() & 0o777, growing);
            partial.place().unwrap();
            let after = fs::metadata(&place).unwrap();
            let whose = |file: &Metadata| (file.mode(), file.uid(), file.gid());
            assert_eq!(whose(&after), whose(&before));
            fs::remove_file(&place).unwrap();
        }
    }
}
