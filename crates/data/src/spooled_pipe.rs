//! A pipe to a slow reader: bytes that it has not taken yet wait in a temporary file, so that the store need not wait.
//!
//! Otherwise the store would hold its snapshot, and a seemingly dead connection to PostgreSQL, for as long as the reader
//! takes. The file has no name, is no larger than the reader is behind, and disappears with the process.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::import_source::{anonymous_temp_file, temp_file_error};

/// The writing end of the pipe.
pub struct SpooledPipe {
    shared: Arc<PipeShared>,
    copier: Option<JoinHandle<io::Result<()>>>,
}

struct PipeShared {
    file: File,
    state: Mutex<PipeState>,
    changed: Condvar,
}

#[derive(Default)]
struct PipeState {
    /// Bytes of the file that are written, and copied to the reader.
    written: u64,
    taken: u64,
    is_closed: bool,
    /// The reader is gone; the copying thread returns the error.
    is_broken: bool,
}

impl PipeShared {
    /// Waits for data and returns its position and length; length 0 is the end.
    fn wait_for_data(&self) -> (u64, u64) {
        let mut state = self.state.lock();
        loop {
            if state.taken < state.written {
                return (state.taken, state.written - state.taken);
            }
            if state.is_closed {
                return (state.taken, 0);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Records copied bytes. When the reader has caught up, the file starts again at 0.
    fn mark_taken(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        state.taken += bytes;
        if state.taken == state.written {
            (state.taken, state.written) = (0, 0);
            self.file.set_len(0)?;
        }
        Ok(())
    }

    fn copy_to(&self, mut out: impl Write) -> io::Result<()> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let (from, available) = self.wait_for_data();
            if available == 0 {
                return out.flush();
            }
            let length = bytes.len().min(usize::try_from(available).unwrap_or(usize::MAX));
            let read = self.file.read_at(&mut bytes[..length], from)?;
            out.write_all(&bytes[..read])?;
            self.mark_taken(read as u64)?;
        }
    }
}

impl SpooledPipe {
    pub fn new(out: impl Write + Send + 'static) -> io::Result<SpooledPipe> {
        let shared = Arc::new(PipeShared {
            file: anonymous_temp_file()?,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let copier_shared = shared.clone();
        let copier = std::thread::spawn(move || {
            let copied = copier_shared.copy_to(out);
            copier_shared.state.lock().is_broken = copied.is_err();
            copied
        });
        Ok(SpooledPipe { shared, copier: Some(copier) })
    }

    /// Waits until the reader has taken everything.
    pub fn finish(mut self) -> io::Result<()> {
        self.close()
    }

    fn close(&mut self) -> io::Result<()> {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_one();
        let copied = self.copier.take().map(JoinHandle::join);
        copied.map_or(Ok(()), |copied| copied.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    }
}

impl Write for SpooledPipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shared.state.lock().is_broken {
            return self.close().map(|()| 0);
        }
        // Locked during the write, so that the file is not truncated meanwhile.
        let mut state = self.shared.state.lock();
        let written = self.shared.file.write_all_at(bytes, state.written);
        written.map_err(temp_file_error)?;
        state.written += bytes.len() as u64;
        self.shared.changed.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes up to 1,000 bytes at a time, each after a message on the channel.
    struct SlowWriter(std::sync::mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for SlowWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let count = bytes.len().min(1_000);
            self.1.lock().extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn slow_reader_gets_everything_without_blocking() {
        let (release, wait) = std::sync::mpsc::channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let mut pipe = SpooledPipe::new(SlowWriter(wait, taken.clone())).unwrap();
        let all: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        all.chunks(777).for_each(|chunk| pipe.write_all(chunk).unwrap());
        assert!(taken.lock().is_empty());
        // From here on the reader takes everything.
        drop(release);
        pipe.finish().unwrap();
        assert!(*taken.lock() == all);
    }

    #[test]
    fn closed_reader_is_an_error() {
        struct ClosedWriter;
        impl Write for ClosedWriter {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut pipe = SpooledPipe::new(ClosedWriter).unwrap();
        pipe.write_all(b"x").unwrap();
        assert_eq!(pipe.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
