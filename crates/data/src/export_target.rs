//! Where an export goes: standard output, a file or a folder, of which nobody ever sees a half.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::spooled_pipe::Pipe;
use trefoil_files::Partial;

/// As it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Stdout,
    /// Replaced at once when all is written.
    File(PathBuf),
    /// Made when all is written; an empty one that is there is filled.
    Folder(PathBuf),
}

impl Target {
    /// What it is called in a message.
    fn shown(&self) -> String {
        match self {
            Target::Stdout => "standard output".to_owned(),
            Target::File(path) | Target::Folder(path) => path.display().to_string(),
        }
    }
}

/// What is being written. Dropped before it is finished, it is taken away again.
pub struct Output {
    pub shown: String,
    place: Place,
    open: Option<BufWriter<Open>>,
}

enum Place {
    /// What goes there is gone, and cannot be taken back.
    Pipe,
    File(Partial),
    Folder(Partial),
}

enum Open {
    Pipe(Pipe),
    File(File),
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Open::Pipe(pipe) => pipe.write(bytes),
            Open::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Open::Pipe(pipe) => pipe.flush(),
            Open::File(file) => file.flush(),
        }
    }
}

impl Output {
    /// The error is a line for whoever named the target.
    pub fn new(target: Target) -> Result<Output, String> {
        let shown = target.shown();
        let told = |error: io::Error| format!("{shown}: {error}");
        let (place, open) = match &target {
            Target::Stdout => (Place::Pipe, Some(to_pipe(io::stdout())?)),
            Target::File(path) if path.is_dir() => {
                return Err(format!("{} is a folder; name a file", path.display()));
            }
            Target::File(path) if is_special(path) => {
                let device = File::options().write(true).open(path).map_err(told)?;
                (Place::Pipe, Some(to_pipe(device)?))
            }
            Target::File(path) => {
                refuse_database(path)?;
                (Place::File(Partial::file(path).map_err(told)?), None)
            }
            Target::Folder(path) => {
                refuse_used(path)?;
                (Place::Folder(Partial::folder(path).map_err(told)?), None)
            }
        };
        Ok(Output { shown, place, open })
    }

    /// Begins a part: in a folder a file of this name.
    pub fn begin(&mut self, name: &str) -> io::Result<()> {
        if self.open.is_none() {
            let file = match &self.place {
                Place::Pipe => return Ok(()),
                Place::File(partial) => partial.writer()?,
                Place::Folder(partial) => File::create(partial.path.join(name))?,
            };
            self.open = Some(BufWriter::with_capacity(1 << 17, Open::File(file)));
        }
        Ok(())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.write_all(bytes))
    }

    /// Ends a part; a file of a folder is then on disk.
    pub fn end(&mut self) -> io::Result<()> {
        match self.place {
            Place::Folder(_) => self.close(),
            Place::Pipe | Place::File(_) => Ok(()),
        }
    }

    /// Everything is written: it comes to its place, for good.
    pub fn finish(&mut self) -> io::Result<()> {
        self.close()?;
        match &mut self.place {
            Place::Pipe => Ok(()),
            Place::File(partial) | Place::Folder(partial) => partial.place(),
        }
    }

    /// What is not in its place by now never comes there.
    pub fn give_up(&mut self) {
        if let Some(open) = self.open.take() {
            // What waits to be written is not written either.
            let _ = open.into_parts();
        }
        self.place = Place::Pipe;
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        match open.into_inner().map_err(io::IntoInnerError::into_error)? {
            Open::Pipe(pipe) => pipe.finish(),
            Open::File(file) => file.sync_all(),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.give_up();
    }
}

fn to_pipe(out: impl Write + Send + 'static) -> Result<BufWriter<Open>, String> {
    let pipe = Pipe::new(out).map_err(|error| error.to_string())?;
    Ok(BufWriter::new(Open::Pipe(pipe)))
}

/// A pipe or a device, which is written to as it is.
pub fn is_special(path: &Path) -> bool {
    path.exists() && !path.is_file() && !path.is_dir()
}

/// A store, the very one that is read perhaps, or a backup: nobody means to have it replaced, nor what is kept
/// beside it.
fn refuse_database(path: &Path) -> Result<(), String> {
    let name = path.to_string_lossy();
    let beside = ["-wal", "-shm", "-journal"].iter().find_map(|end| name.strip_suffix(end));
    if is_database(path) {
        return Err(format!("{name} is a database; name another file"));
    }
    if let Some(main) = beside.filter(|main| is_database(Path::new(main))) {
        return Err(format!("{name} belongs to the database {main}; name another file"));
    }
    // Replaced, it would be another one than the server holds, and a second server could start.
    match path.file_name().is_some_and(|name| name == "trefoil.lock") {
        true => Err(format!("{name} keeps a second server from a data folder; name another file")),
        false => Ok(()),
    }
}

/// What cannot be read is told where it cannot be written either.
fn is_database(path: &Path) -> bool {
    const BEGINS: &[u8] = b"SQLite format 3\0";
    let mut first = [0; BEGINS.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == BEGINS
}

fn refuse_used(path: &Path) -> Result<(), String> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(format!("{} is a file; name a folder, or a file whose name ends in .ndjson", path.display()))
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => {
                Err(format!("{} is not empty; name a folder that is empty or does not exist", path.display()))
            }
        },
    }
}
