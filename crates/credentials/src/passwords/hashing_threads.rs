//! [`HashingThreads`]: the threads that hash passwords.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::Mutex;

use trefoil_model::error::{Error, Result};

type HashingWork = Box<dyn FnOnce() + Send>;

/// A few threads of their own. An allocator keeps memory for each thread that freed some: among all threads that may block, what
/// hashing takes would stay many times.
pub struct HashingThreads {
    count: usize,
    /// Begun with the first password.
    queue: OnceLock<Sender<HashingWork>>,
}

impl HashingThreads {
    pub fn new(count: usize) -> HashingThreads {
        HashingThreads { count, queue: OnceLock::new() }
    }

    /// Runs the work on one of the threads.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (reply, result) = tokio::sync::oneshot::channel();
        let work = Box::new(move || drop(reply.send(work())));
        let ended = || Error::internal("a thread that hashes passwords has ended");
        self.queue.get_or_init(|| begin(self.count)).send(work).map_err(|_| ended())?;
        result.await.map_err(|_| ended())
    }
}

fn begin(count: usize) -> Sender<HashingWork> {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..count {
        let receiver = receiver.clone();
        // Without a thread the work is refused.
        let _ =
            thread::Builder::new().name("passwords".to_owned()).spawn(move || work_until_closed(&receiver));
    }
    sender
}

fn work_until_closed(receiver: &Mutex<Receiver<HashingWork>>) {
    loop {
        let next = receiver.lock().recv();
        match next {
            // The next password finds the thread, whatever became of this one.
            Ok(work) => drop(catch_unwind(AssertUnwindSafe(work))),
            Err(_) => return,
        }
    }
}
