//! Standard output for whoever reads slowly: what they have not taken yet waits in a file, not in the store.
//!
//! The store would otherwise hold its snapshot, and a connection to PostgreSQL that looks dead, for as long as a reader
//! pleases. The file has no name, holds no more than the reader is behind, and goes with the process.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::import_source::{nameless, of_temporary};

pub struct Pipe {
    shared: Arc<Shared>,
    copying: Option<JoinHandle<io::Result<()>>>,
}

struct Shared {
    file: File,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How far the file is written, and how far it is taken.
    written: u64,
    taken: u64,
    is_over: bool,
    /// The reader is gone; the thread tells why.
    is_broken: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to take next, once there is something; the end is nothing.
    fn wait(&self) -> (u64, u64) {
        let mut state = self.state();
        loop {
            if state.taken < state.written {
                return (state.taken, state.written - state.taken);
            }
            if state.is_over {
                return (state.taken, 0);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// So much more was taken. When the reader has caught up, the file begins anew.
    fn take(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        state.taken += bytes;
        if state.taken == state.written {
            (state.taken, state.written) = (0, 0);
            self.file.set_len(0)?;
        }
        Ok(())
    }

    fn copy(&self, mut out: impl Write) -> io::Result<()> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let (from, waiting) = self.wait();
            if waiting == 0 {
                return out.flush();
            }
            let most = bytes.len().min(usize::try_from(waiting).unwrap_or(usize::MAX));
            let read = self.file.read_at(&mut bytes[..most], from)?;
            out.write_all(&bytes[..read])?;
            self.take(read as u64)?;
        }
    }
}

impl Pipe {
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Pipe> {
        let shared = Arc::new(Shared { file: nameless()?, state: Mutex::default(), changed: Condvar::new() });
        let copying = shared.clone();
        let copying = std::thread::spawn(move || {
            let copied = copying.copy(out);
            copying.state().is_broken = copied.is_err();
            copied
        });
        Ok(Pipe { shared, copying: Some(copying) })
    }

    /// Waits until the reader has taken everything.
    pub fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.shared.state().is_over = true;
        self.shared.changed.notify_one();
        let copied = self.copying.take().map(JoinHandle::join);
        copied.map_or(Ok(()), |copied| copied.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.shared.state().is_broken {
            return self.end().map(|()| 0);
        }
        // Held, so that the file does not begin anew meanwhile.
        let mut state = self.shared.state();
        let written = self.shared.file.write_all_at(bytes, state.written);
        written.map_err(of_temporary)?;
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

    /// Takes a little at a time, and nothing before it is told to.
    struct Slow(std::sync::mpsc::Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            let some = bytes.len().min(1_000);
            self.1.lock().unwrap().extend_from_slice(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_reader_holds_up_nobody_and_gets_everything() {
        let (go, wait) = std::sync::mpsc::channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let mut pipe = Pipe::new(Slow(wait, taken.clone())).unwrap();
        let all: Vec<u8> = (0..300_000_u32).map(|i| (i % 251) as u8).collect();
        all.chunks(777).for_each(|some| pipe.write_all(some).unwrap());
        assert!(taken.lock().unwrap().is_empty());
        // From here on the reader takes what it gets.
        drop(go);
        pipe.finish().unwrap();
        assert!(*taken.lock().unwrap() == all);
    }

    #[test]
    fn a_reader_that_is_gone_is_told() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut pipe = Pipe::new(Gone).unwrap();
        pipe.write_all(b"x").unwrap();
        assert_eq!(pipe.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
