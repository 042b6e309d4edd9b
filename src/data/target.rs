//! Where an export goes: standard output, a file or a folder, of which nobody ever sees a half.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::pipe::Pipe;

/// As it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Stdout,
    /// Replaced at once when all is written.
    File(PathBuf),
    /// Made when all is written; an empty one that is there is filled.
    Folder(PathBuf),
}

/// What is being written. Files grow beside their place and are moved there in the end; dropped before, they are removed.
pub struct Output {
    target: Target,
    /// Where it grows; nowhere once all is in its place.
    beside: Option<PathBuf>,
    open: Option<BufWriter<Open>>,
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
        let beside = match &target {
            Target::Stdout => None,
            Target::File(path) if path.is_dir() => {
                return Err(format!("{} is a folder; name a file", path.display()));
            }
            Target::File(path) => Some(beside(path)?),
            Target::Folder(path) => {
                refuse_used(path)?;
                let beside = beside(path)?;
                remove(&beside)
                    .and_then(|()| fs::create_dir(&beside))
                    .map_err(|error| told(&beside, &error))?;
                Some(beside)
            }
        };
        Ok(Output { target, beside, open: None })
    }

    /// Begins a part: in a folder a file of this name.
    pub fn begin(&mut self, name: &str) -> Result<(), String> {
        let path = match (&self.target, &self.beside) {
            (Target::Folder(_), Some(folder)) => folder.join(name),
            (Target::File(_), Some(path)) => path.clone(),
            (Target::Stdout, _) | (Target::File(_) | Target::Folder(_), None) => {
                if self.open.is_none() {
                    let pipe = Pipe::new(io::stdout()).map_err(|error| format!("temporary file: {error}"))?;
                    self.open = Some(BufWriter::new(Open::Pipe(pipe)));
                }
                return Ok(());
            }
        };
        if self.open.is_none() {
            let file = File::create(&path).map_err(|error| told(&path, &error))?;
            self.open = Some(BufWriter::with_capacity(1 << 17, Open::File(file)));
        }
        Ok(())
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.open.as_mut().map_or(Ok(()), |open| open.write_all(bytes))
    }

    /// Ends a part; a file of a folder is then on disk.
    pub fn end(&mut self) -> io::Result<()> {
        match self.target {
            Target::Folder(_) => self.close(),
            Target::Stdout | Target::File(_) => Ok(()),
        }
    }

    /// Everything is written: it comes to its place, for good.
    pub fn finish(mut self) -> io::Result<()> {
        self.close()?;
        let (Target::File(path) | Target::Folder(path), Some(beside)) = (&self.target, &self.beside) else {
            return Ok(());
        };
        if beside.is_dir() {
            File::open(beside)?.sync_all()?;
        }
        fs::rename(beside, path)?;
        self.beside = None;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        match open.into_inner().map_err(io::IntoInnerError::into_error)? {
            Open::Pipe(pipe) => pipe.finish(),
            Open::File(file) => file.sync_all(),
        }
    }

    /// What it is called in a message.
    pub fn shown(&self) -> String {
        match &self.target {
            Target::Stdout => "standard output".to_owned(),
            Target::File(path) | Target::Folder(path) => path.display().to_string(),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            // What was not asked for to the end is not written to the end.
            let _ = open.into_parts();
        }
        if let Some(beside) = self.beside.take() {
            let _ = remove(&beside);
        }
    }
}

fn told(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// `users.csv.partial` beside `users.csv`: what an earlier run has left there is its own and goes.
fn beside(path: &Path) -> Result<PathBuf, String> {
    let Some(name) = path.file_name() else {
        return Err(format!("{} cannot be made; name a file or folder in it", path.display()));
    };
    let mut name = name.to_owned();
    name.push(".partial");
    Ok(path.with_file_name(name))
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn refuse_used(path: &Path) -> Result<(), String> {
    match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(told(path, &error)),
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => {
                Err(format!("{} is not empty; name a folder that is empty or does not exist", path.display()))
            }
        },
    }
}
