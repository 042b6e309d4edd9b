//! A file or folder that grows beside its place and comes there whole: at once, for good, and by one process at a time.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Removed when dropped before it is in its place.
#[derive(Debug)]
pub struct Partial {
    /// Where it grows: `NAME.partial`.
    pub path: PathBuf,
    place: PathBuf,
    /// Locked, so that what a killed command left is told from what another is writing.
    held: File,
    is_placed: bool,
}

impl Partial {
    /// An empty file, for the eyes of those alone who may read the one that it replaces.
    pub fn file(place: &Path) -> io::Result<Partial> {
        let open = |path: &Path| File::options().create(true).truncate(false).write(true).open(path);
        let partial = Partial::hold(place, open)?;
        if let Ok(old) = fs::metadata(place) {
            partial.held.set_permissions(old.permissions())?;
        }
        partial.held.set_len(0)?;
        Ok(partial)
    }

    /// An empty folder.
    pub fn folder(place: &Path) -> io::Result<Partial> {
        let partial = Partial::hold(place, |path| match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => File::open(path),
        })?;
        for entry in fs::read_dir(&partial.path)? {
            remove(&entry?.path())?;
        }
        Ok(partial)
    }

    fn hold(place: &Path, open: impl Fn(&Path) -> io::Result<File>) -> io::Result<Partial> {
        let path = beside(place)?;
        loop {
            let held = open(&path)?;
            match held.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another command is writing it"));
                }
                // A file system without locks: then nobody can be told apart.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Between the two whoever had it may have put it in its place: then it is whole, and not to be touched.
            if is_at(&held, &path)? {
                return Ok(Partial { path, place: place.to_owned(), held, is_placed: false });
            }
        }
    }

    /// The file, to be written to.
    pub fn writer(&self) -> io::Result<File> {
        self.held.try_clone()
    }

    /// On the disk, and from then on under its own name. Others are kept from it until that is done.
    pub fn place(&mut self) -> io::Result<()> {
        self.held.sync_all()?;
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
    use std::os::unix::fs::PermissionsExt;

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
        let second = Partial::hold(&place, open).unwrap();
        second.held.set_len(0).unwrap();
        assert_eq!(fs::read_to_string(&place).unwrap(), "whole");
    }

    #[test]
    fn what_only_some_may_read_stays_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("x");
        fs::write(&place, "secret").unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o600)).unwrap();
        let partial = Partial::file(&place).unwrap();
        assert_eq!(fs::metadata(&partial.path).unwrap().mode() & 0o777, 0o600);
    }
}
