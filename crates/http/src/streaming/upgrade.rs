//! What a connection becomes once the head of an answer is out, if it is to be no ordinary one: a face says it, the server does it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};

/// In the extensions of a response whose body goes on for as long as its client: whatever it took to read the request
/// is given back first, and the connection ends with the body.
#[derive(Debug, Clone, Copy)]
pub struct Endless;

/// The bytes of a connection.
pub trait Line: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

type Taken = Box<dyn FnOnce(Box<dyn Line>) + Send>;

/// In the extensions of a response after which another protocol is spoken: who takes the line over.
#[derive(Clone)]
pub struct Tunnel(Arc<Mutex<Option<Taken>>>);

impl Tunnel {
    pub fn new(taken: impl FnOnce(Box<dyn Line>) + Send + 'static) -> Tunnel {
        Tunnel(Arc::new(Mutex::new(Some(Box::new(taken)))))
    }

    pub fn open(self, line: Box<dyn Line>) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(taken) = taken {
            taken(line);
        }
    }
}
