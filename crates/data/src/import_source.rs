//! The sources of an import: a file, a folder of files, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::text_decoder::{FileEncoding, TextDecoder};
use crate::{DataFormat, DataResource, ResourceCatalog};

/// One file or pipe.
pub struct ImportSource {
    /// The source's name in messages.
    pub display_name: String,
    /// `None` if each line names its resource.
    pub resource: Option<DataResource>,
    pub format: DataFormat,
    /// UTF-8 if it is not given.
    pub encoding: Option<FileEncoding>,
    input: SourceInput,
}

enum SourceInput {
    Path(PathBuf),
    Stdin,
    /// Input from a pipe, copied to a temporary file to be read more than once.
    Spooled(File),
}

impl ImportSource {
    pub fn from_file(path: &Path, resource: Option<DataResource>, format: DataFormat) -> ImportSource {
        let input = SourceInput::Path(path.to_owned());
        ImportSource { display_name: path.display().to_string(), resource, format, encoding: None, input }
    }

    pub fn from_stdin(resource: Option<DataResource>, format: DataFormat) -> ImportSource {
        ImportSource {
            display_name: "standard input".to_owned(),
            resource,
            format,
            encoding: None,
            input: SourceInput::Stdin,
        }
    }

    /// Opens the source from its beginning; bytes read are added to `bytes_read`.
    pub fn open(&self, bytes_read: &Arc<AtomicU64>) -> io::Result<Box<dyn BufRead + Send>> {
        let input: Box<dyn Read + Send> = match &self.input {
            SourceInput::Path(path) => Box::new(File::open(path)?),
            SourceInput::Stdin => Box::new(io::stdin()),
            SourceInput::Spooled(file) => {
                let mut reopened = file.try_clone()?;
                reopened.rewind()?;
                Box::new(reopened)
            }
        };
        let reader = CountingReader { input, bytes_read: bytes_read.clone() };
        let reader: Box<dyn Read + Send> = match self.encoding {
            Some(encoding) => Box::new(TextDecoder::new(reader, encoding)),
            None => Box::new(reader),
        };
        Ok(Box::new(BufReader::with_capacity(1 << 17, reader)))
    }

    /// The size in bytes, if it is known in advance.
    pub fn size(&self) -> Option<u64> {
        let metadata = match &self.input {
            SourceInput::Path(path) => path.metadata(),
            SourceInput::Spooled(file) => file.metadata(),
            SourceInput::Stdin => return None,
        };
        metadata.ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len())
    }

    /// Makes sure that the source can be read again: input from a pipe is copied to a temporary file without a name.
    pub fn make_rereadable(&mut self) -> io::Result<()> {
        let mut pipe: Box<dyn Read> = match &self.input {
            SourceInput::Stdin => Box::new(io::stdin()),
            SourceInput::Path(path) if !path.is_file() => Box::new(File::open(path)?),
            SourceInput::Path(_) | SourceInput::Spooled(_) => return Ok(()),
        };
        let mut spool = SpoolWriter(anonymous_temp_file()?);
        io::copy(&mut pipe, &mut spool)?;
        self.input = SourceInput::Spooled(spool.0);
        Ok(())
    }
}

/// A temporary file without a name, which disappears with the process.
pub fn anonymous_temp_file() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("trefoil-{}", uuid::Uuid::new_v4()));
    let created = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path);
    created.and_then(|file| std::fs::remove_file(&path).map(|()| file)).map_err(temp_file_error)
}

/// Adds to an error that it is about the temporary file, and its folder.
pub fn temp_file_error(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::new(error.kind(), format!("temporary file in {} (TMPDIR): {error}", folder.display()))
}

/// Copies input from a pipe to a temporary file.
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

/// The files of a folder, one per resource, in reference order; or one line per file that cannot be imported.
pub fn sources_in_folder(
    catalog: &ResourceCatalog,
    folder: &Path,
    format: Option<DataFormat>,
) -> Result<Vec<ImportSource>, Vec<String>> {
    let folder_error = |error: io::Error| vec![format!("{}: {error}", folder.display())];
    let mut found: Vec<(DataResource, ImportSource)> = Vec::new();
    let (mut other_format, mut mistakes) = (Vec::new(), Vec::new());
    let entries = std::fs::read_dir(folder).map_err(folder_error)?;
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    paths.as_mut().map(|paths| paths.sort()).unwrap_or_default();
    for path in paths.map_err(folder_error)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with('.') {
            continue;
        }
        match source_of_file(catalog, &path) {
            Ok((resource, source)) if format.is_some_and(|format| format != source.format) => {
                other_format.push((resource, source));
            }
            Ok((resource, source)) => match found.iter().find(|(other, _)| *other == resource) {
                Some((_, other)) => {
                    mistakes.push(format!(
                        "{}: {} contains the same resource",
                        path.display(),
                        other.display_name
                    ));
                }
                None => found.push((resource, source)),
            },
            Err(reason) => mistakes.push(format!("{}: {reason}", path.display())),
        }
    }
    // A resource in both formats is imported once; one in the other format alone would be missing.
    let missing =
        other_format.iter().filter(|(resource, _)| !found.iter().any(|(other, _)| other == resource));
    mistakes
        .extend(missing.map(|(_, source)| {
            format!("{}: the file has another format than --format", source.display_name)
        }));
    if found.is_empty() && mistakes.is_empty() {
        mistakes.push(format!("{}: the folder contains no .ndjson, .csv or .tsv file", folder.display()));
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let order = catalog.in_reference_order();
    found.sort_by_key(|(resource, _)| order.iter().position(|other| other == resource));
    Ok(found.into_iter().map(|(_, source)| source).collect())
}

fn source_of_file(catalog: &ResourceCatalog, path: &Path) -> Result<(DataResource, ImportSource), String> {
    let format = DataFormat::of_import(path).ok_or("the file name must end in .ndjson, .csv or .tsv")?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let resource = catalog.find(&name)?;
    Ok((resource.clone(), ImportSource::from_file(path, Some(resource), format)))
}
