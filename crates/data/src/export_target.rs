//! The target of an export: standard output, a file or a folder. Files and folders appear only when complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use trefoil_atomic_files::AtomicReplacement;

use crate::spooled_pipe::SpooledPipe;

/// The target named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportTarget {
    Stdout,
    /// Replaced atomically when everything is written.
    File(PathBuf),
    /// Created when everything is written; an existing one must be empty.
    Folder(PathBuf),
}

impl ExportTarget {
    /// The target's name in messages.
    fn display_name(&self) -> String {
        match self {
            ExportTarget::Stdout => "standard output".to_owned(),
            ExportTarget::File(path) | ExportTarget::Folder(path) => path.display().to_string(),
        }
    }
}

/// An export being written. If it is dropped unfinished, partial files are removed.
pub struct ExportOutput {
    pub display_name: String,
    destination: OutputDestination,
    writer: Option<BufWriter<OutputWriter>>,
}

enum OutputDestination {
    /// Bytes written to a pipe cannot be taken back.
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
    /// Opens the target; the error is one line for the user.
    pub fn new(target: ExportTarget) -> Result<ExportOutput, String> {
        let display_name = target.display_name();
        let io_error = |error: io::Error| format!("{display_name}: {error}");
        let (destination, writer) = match &target {
            ExportTarget::Stdout => (OutputDestination::Pipe, Some(pipe_writer(io::stdout())?)),
            ExportTarget::File(path) if path.is_dir() => {
                return Err(format!("{} is a folder; give a file", path.display()));
            }
            ExportTarget::File(path) if is_pipe_or_device(path) => {
                let device = File::options().write(true).open(path).map_err(io_error)?;
                (OutputDestination::Pipe, Some(pipe_writer(device)?))
            }
            ExportTarget::File(path) => {
                refuse_database(path)?;
                (OutputDestination::File(AtomicReplacement::create_file(path).map_err(io_error)?), None)
            }
            ExportTarget::Folder(path) => {
                refuse_non_empty(path)?;
                (OutputDestination::Folder(AtomicReplacement::create_folder(path).map_err(io_error)?), None)
            }
        };
        Ok(ExportOutput { display_name, destination, writer })
    }

    /// Begins a part: in a folder, a file of this name.
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
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write_all(bytes))
    }

    /// Ends a part; in a folder its file is then on disk.
    pub fn end_part(&mut self) -> io::Result<()> {
        match self.destination {
            OutputDestination::Folder(_) => self.close(),
            OutputDestination::Pipe | OutputDestination::File(_) => Ok(()),
        }
    }

    /// Everything is written: moves the result to its place, durably.
    pub fn finish(&mut self) -> io::Result<()> {
        self.close()?;
        match &mut self.destination {
            OutputDestination::Pipe => Ok(()),
            OutputDestination::File(partial) | OutputDestination::Folder(partial) => partial.commit(),
        }
    }

    /// Discards everything that is not yet in its place.
    pub fn abandon(&mut self) {
        if let Some(writer) = self.writer.take() {
            // Discards the buffer, which dropping the writer would still write.
            let _ = writer.into_parts();
        }
        self.destination = OutputDestination::Pipe;
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        match writer.into_inner().map_err(io::IntoInnerError::into_error)? {
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

/// Whether the path is a pipe or a device, which is written to directly.
pub fn is_pipe_or_device(path: &Path) -> bool {
    path.exists() && !path.is_file() && !path.is_dir()
}

/// Refuses to replace a store (perhaps the one being exported), a backup, or one of their companion files: this is
/// always a mistake.
fn refuse_database(path: &Path) -> Result<(), String> {
    let name = path.to_string_lossy();
    let beside = ["-wal", "-shm", "-journal"].iter().find_map(|suffix| name.strip_suffix(suffix));
    if is_database(path) {
        return Err(format!("{name} is a database; choose another file"));
    }
    if let Some(main) = beside.filter(|main| is_database(Path::new(main))) {
        return Err(format!("{name} belongs to the database {main}; choose another file"));
    }
    // If the lock file were replaced, a second server could lock the new one and start.
    match path.file_name().is_some_and(|name| name == "trefoil.lock") {
        true => Err(format!("{name} is the lock file of a data folder; choose another file")),
        false => Ok(()),
    }
}

/// Whether the file is an SQLite database; unreadable files are not, and writing them will give the error.
fn is_database(path: &Path) -> bool {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut start = [0; MAGIC.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == MAGIC
}

fn refuse_non_empty(path: &Path) -> Result<(), String> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(format!("{} is a file; give a folder, or a file name ending in .ndjson", path.display()))
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(format!(
                "{} is not empty; choose a folder that is empty or does not exist",
                path.display()
            )),
        },
    }
}
