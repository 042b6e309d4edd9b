//! Where the rows of an import come from: a file, a folder of files, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Format, Inventory, Resource};

/// One file or pipe.
pub struct Source {
    /// What it is called in messages.
    pub shown: String,
    /// `None` where each line names its own.
    pub resource: Option<Resource>,
    pub format: Format,
    origin: Origin,
}

enum Origin {
    Path(PathBuf),
    Stdin,
    /// What came through a pipe, kept to be read more than once.
    Kept(File),
}

impl Source {
    pub fn file(path: &Path, resource: Option<Resource>, format: Format) -> Source {
        let origin = Origin::Path(path.to_owned());
        Source { shown: path.display().to_string(), resource, format, origin }
    }

    pub fn stdin(resource: Option<Resource>, format: Format) -> Source {
        Source { shown: "standard input".to_owned(), resource, format, origin: Origin::Stdin }
    }

    /// From its beginning; what is read is added up.
    pub fn open(&self, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead + Send>> {
        let input: Box<dyn Read + Send> = match &self.origin {
            Origin::Path(path) => Box::new(File::open(path)?),
            Origin::Stdin => Box::new(io::stdin()),
            Origin::Kept(file) => {
                let mut again = file.try_clone()?;
                again.rewind()?;
                Box::new(again)
            }
        };
        Ok(Box::new(BufReader::with_capacity(1 << 17, Counted { input, read: read.clone() })))
    }

    /// How many bytes it has, where that is known beforehand.
    pub fn size(&self) -> Option<u64> {
        let metadata = match &self.origin {
            Origin::Path(path) => path.metadata(),
            Origin::Kept(file) => file.metadata(),
            Origin::Stdin => return None,
        };
        metadata.ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
    }

    /// Makes sure that it can be read a second time. What comes through a pipe is put into a file that has no name.
    pub fn keep(&mut self) -> io::Result<()> {
        let mut pipe: Box<dyn Read> = match &self.origin {
            Origin::Stdin => Box::new(io::stdin()),
            Origin::Path(path) if !path.is_file() => Box::new(File::open(path)?),
            Origin::Path(_) | Origin::Kept(_) => return Ok(()),
        };
        let mut kept = Keeping(nameless()?);
        io::copy(&mut pipe, &mut kept)?;
        self.origin = Origin::Kept(kept.0);
        Ok(())
    }
}

/// A file that nobody else can find, and that goes with the process.
pub fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
    let made = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
    made.and_then(|file| std::fs::remove_file(&path).map(|()| file)).map_err(of_temporary)
}

/// Says that the file without a name is meant, and where that is.
pub fn of_temporary(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(error.kind(), format!("temporary file in {} (TMPDIR): {error}", folder.display()))
}

/// What comes through a pipe on its way into a file without a name.
struct Keeping(File);

impl Write for Keeping {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_temporary)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct Counted {
    input: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The files of a folder, one a resource, in the order of the inventory; or a line for each that cannot be one.
pub fn of_folder(
    inventory: &Inventory,
    folder: &Path,
    format: Option<Format>,
) -> Result<Vec<Source>, Vec<String>> {
    let cannot = |error: io::Error| vec![format!("{}: {error}", folder.display())];
    let mut found: Vec<(Resource, Source)> = Vec::new();
    let (mut passed, mut mistakes) = (Vec::new(), Vec::new());
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    paths.as_mut().map(|paths| paths.sort()).unwrap_or_default();
    for path in paths.map_err(cannot)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        match of_file(inventory, &path) {
            Ok((resource, source)) if format.is_some_and(|format| format != source.format) => {
                passed.push((resource, source));
            }
            Ok((resource, source)) => match found.iter().find(|(other, _)| *other == resource) {
                Some((_, other)) => {
                    mistakes.push(format!("{}: {} is of the same resource", path.display(), other.shown));
                }
                None => found.push((resource, source)),
            },
            Err(why) => mistakes.push(format!("{}: {why}", path.display())),
        }
    }
    // What is there in both formats comes in once; what is there in the other alone would be missing.
    let missing = passed.iter().filter(|(resource, _)| !found.iter().any(|(other, _)| other == resource));
    mistakes
        .extend(missing.map(|(_, source)| format!("{}: it is of another format (--format)", source.shown)));
    if found.is_empty() && mistakes.is_empty() {
        mistakes.push(format!("{}: there is no .ndjson or .csv file in it", folder.display()));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let order = inventory.all();
    found.sort_by_key(|(resource, _)| order.iter().position(|other| other == resource));
    Ok(found.into_iter().map(|(_, source)| source).collect())
}

fn of_file(inventory: &Inventory, path: &Path) -> Result<(Resource, Source), String> {
    let format = Format::of(path).ok_or("it is neither .ndjson nor .csv")?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let resource = inventory.named(&name)?;
    Ok((resource.clone(), Source::file(path, Some(resource), format)))
}
