//! Where an export goes: standard output, a file or a folder, of which nobody ever sees a half.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::spooled_pipe::SpooledPipe;
use trefoil_files::AtomicReplacement;

/// As it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportTarget {
    Stdout,
    /// Replaced at once when all is written.
    File(PathBuf),
    /// Made when all is written; an empty one that is there is filled.
    Folder(PathBuf),
}

impl ExportTarget {
    /// What it is called in a message.
    fn display_name(&self) -> String {
        match self {
            ExportTarget::Stdout => "standard output".to_owned(),
            ExportTarget::File(path) | ExportTarget::Folder(path) => path.display().to_string(),
        }
    }
}

/// What is being written. Dropped before it is finished, it is taken away again.
pub struct ExportOutput {
    pub display_name: String,
    destination: OutputDestination,
    writer: Option<BufWriter<OutputWriter>>,
}

enum OutputDestination {
    /// What goes there is gone, and cannot be taken back.
    Pipe,
    File(AtomicReplacement),
    Folder(AtomicReplacement),
}

enum OutputWriter {
    Pipe(SpooledPipe),
    File(File),
}

impl Write for OutputWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            OutputWriter::Pipe(pipe) => pipe.write(bytes),
            OutputWriter::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            OutputWriter::Pipe(pipe) => pipe.flush(),
            OutputWriter::File(file) => file.flush(),
        }
    }
}

impl ExportOutput {
    /// The error is a line for whoever named the target.
    pub fn new(target: ExportTarget) -> Result<ExportOutput, String> {
        let shown = target.display_name();
        let told = |error: io::Error| format!("{shown}: {error}");
        let (place, open) = match &target {
            ExportTarget::Stdout => (OutputDestination::Pipe, Some(pipe_writer(io::stdout())?)),
            ExportTarget::File(path) if path.is_dir() => {
                return Err(format!("{} is a folder; name a file", path.display()));
            }
            ExportTarget::File(path) if is_pipe_or_device(path) => {
                let device = File::options().write(true).open(path).map_err(told)?;
                (OutputDestination::Pipe, Some(pipe_writer(device)?))
            }
            ExportTarget::File(path) => {
                refuse_database(path)?;
                (OutputDestination::File(AtomicReplacement::create_file(path).map_err(told)?), None)
            }
            ExportTarget::Folder(path) => {
                refuse_non_empty(path)?;
                (OutputDestination::Folder(AtomicReplacement::create_folder(path).map_err(told)?), None)
            }
        };
        Ok(ExportOutput { display_name: shown, destination: place, writer: open })
    }

    /// Begins a part: in a folder a file of this name.
    pub fn begin_part(&mut self, name: &str) -> io::Result<()> {
        if self.writer.is_none() {
            let file = match &self.destination {
                OutputDestination::Pipe => return Ok(()),
                OutputDestination::File(partial) => partial.writer()?,
                OutputDestination::Folder(partial) => File::create(partial.partial_path.join(name))?,
            };
            self.writer = Some(BufWriter::with_capacity(1 << 17, OutputWriter::File(file)));
        }
        Ok(())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), |open| open.write_all(bytes))
    }

    /// Ends a part; a file of a folder is then on disk.
    pub fn end_part(&mut self) -> io::Result<()> {
        match self.destination {
            OutputDestination::Folder(_) => self.close(),
            OutputDestination::Pipe | OutputDestination::File(_) => Ok(()),
        }
    }

    /// Everything is written: it comes to its place, for good.
    pub fn finish(&mut self) -> io::Result<()> {
        self.close()?;
        match &mut self.destination {
            OutputDestination::Pipe => Ok(()),
            OutputDestination::File(partial) | OutputDestination::Folder(partial) => partial.commit(),
        }
    }

    /// What is not in its place by now never comes there.
    pub fn abandon(&mut self) {
        if let Some(open) = self.writer.take() {
            // What waits to be written is not written either.
            let _ = open.into_parts();
        }
        self.destination = OutputDestination::Pipe;
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.writer.take() else { return Ok(()) };
        match open.into_inner().map_err(io::IntoInnerError::into_error)? {
            OutputWriter::Pipe(pipe) => pipe.finish(),
            OutputWriter::File(file) => file.sync_all(),
        }
    }
}

impl Drop for ExportOutput {
    fn drop(&mut self) {
        self.abandon();
    }
}

fn pipe_writer(out: impl Write + Send + 'static) -> Result<BufWriter<OutputWriter>, String> {
    let pipe = SpooledPipe::new(out).map_err(|error| error.to_string())?;
    Ok(BufWriter::new(OutputWriter::Pipe(pipe)))
}

/// A pipe or a device, which is written to as it is.
pub fn is_pipe_or_device(path: &Path) -> bool {
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

fn refuse_non_empty(path: &Path) -> Result<(), String> {
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
