//! Where the rows of an import come from: a file, a folder of files, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{DataFormat, DataResource, ResourceCatalog};

/// One file or pipe.
pub struct ImportSource {
    /// What it is called in messages.
    pub display_name: String,
    /// `None` where each line names its own.
    pub resource: Option<DataResource>,
    pub format: DataFormat,
    input: SourceInput,
}

enum SourceInput {
    Path(PathBuf),
    Stdin,
    /// What came through a pipe, kept to be read more than once.
    Spooled(File),
}

impl ImportSource {
    pub fn from_file(path: &Path, resource: Option<DataResource>, format: DataFormat) -> ImportSource {
        let origin = SourceInput::Path(path.to_owned());
        ImportSource { display_name: path.display().to_string(), resource, format, input: origin }
    }

    pub fn from_stdin(resource: Option<DataResource>, format: DataFormat) -> ImportSource {
        ImportSource {
            display_name: "standard input".to_owned(),
            resource,
            format,
            input: SourceInput::Stdin,
        }
    }

    /// From its beginning; what is read is added up.
    pub fn open(&self, read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead + Send>> {
        let input: Box<dyn Read + Send> = match &self.input {
            SourceInput::Path(path) => Box::new(File::open(path)?),
            SourceInput::Stdin => Box::new(io::stdin()),
            SourceInput::Spooled(file) => {
                let mut again = file.try_clone()?;
                again.rewind()?;
                Box::new(again)
            }
        };
        Ok(Box::new(BufReader::with_capacity(1 << 17, CountingReader { input, bytes_read: read.clone() })))
    }

    /// How many bytes it has, where that is known beforehand.
    pub fn size(&self) -> Option<u64> {
        let metadata = match &self.input {
            SourceInput::Path(path) => path.metadata(),
            SourceInput::Spooled(file) => file.metadata(),
            SourceInput::Stdin => return None,
        };
        metadata.ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
    }

    /// Makes sure that it can be read a second time. What comes through a pipe is put into a file that has no name.
    pub fn make_rereadable(&mut self) -> io::Result<()> {
        let mut pipe: Box<dyn Read> = match &self.input {
            SourceInput::Stdin => Box::new(io::stdin()),
            SourceInput::Path(path) if !path.is_file() => Box::new(File::open(path)?),
            SourceInput::Path(_) | SourceInput::Spooled(_) => return Ok(()),
        };
        let mut kept = SpoolWriter(anonymous_temp_file()?);
        io::copy(&mut pipe, &mut kept)?;
        self.input = SourceInput::Spooled(kept.0);
        Ok(())
    }
}

/// A file that nobody else can find, and that goes with the process.
pub fn anonymous_temp_file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
    let made = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
    made.and_then(|file| std::fs::remove_file(&path).map(|()| file)).map_err(temp_file_error)
}

/// Says that the file without a name is meant, and where that is.
pub fn temp_file_error(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(error.kind(), format!("temporary file in {} (TMPDIR): {error}", folder.display()))
}

/// What comes through a pipe on its way into a file without a name.
struct SpoolWriter(File);

impl Write for SpoolWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(temp_file_error)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

struct CountingReader {
    input: Box<dyn Read + Send>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The files of a folder, one a resource, in the order of the inventory; or a line for each that cannot be one.
pub fn sources_in_folder(
    inventory: &ResourceCatalog,
    folder: &Path,
    format: Option<DataFormat>,
) -> Result<Vec<ImportSource>, Vec<String>> {
    let cannot = |error: io::Error| vec![format!("{}: {error}", folder.display())];
    let mut found: Vec<(DataResource, ImportSource)> = Vec::new();
    let (mut passed, mut mistakes) = (Vec::new(), Vec::new());
    let entries = std::fs::read_dir(folder).map_err(cannot)?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    paths.as_mut().map(|paths| paths.sort()).unwrap_or_default();
    for path in paths.map_err(cannot)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        match source_of_file(inventory, &path) {
            Ok((resource, source)) if format.is_some_and(|format| format != source.format) => {
                passed.push((resource, source));
            }
            Ok((resource, source)) => match found.iter().find(|(other, _)| *other == resource) {
                Some((_, other)) => {
                    mistakes.push(format!(
                        "{}: {} is of the same resource",
                        path.display(),
                        other.display_name
                    ));
                }
                None => found.push((resource, source)),
            },
            Err(why) => mistakes.push(format!("{}: {why}", path.display())),
        }
    }
    // What is there in both formats comes in once; what is there in the other alone would be missing.
    let missing = passed.iter().filter(|(resource, _)| !found.iter().any(|(other, _)| other == resource));
    mistakes.extend(
        missing.map(|(_, source)| format!("{}: it is of another format (--format)", source.display_name)),
    );
    if found.is_empty() && mistakes.is_empty() {
        mistakes.push(format!("{}: there is no .ndjson or .csv file in it", folder.display()));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let order = inventory.in_reference_order();
    found.sort_by_key(|(resource, _)| order.iter().position(|other| other == resource));
    Ok(found.into_iter().map(|(_, source)| source).collect())
}

fn source_of_file(inventory: &ResourceCatalog, path: &Path) -> Result<(DataResource, ImportSource), String> {
    let format = DataFormat::from_path(path).ok_or("it is neither .ndjson nor .csv")?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let resource = inventory.find(&name)?;
    Ok((resource.clone(), ImportSource::from_file(path, Some(resource), format)))
}
