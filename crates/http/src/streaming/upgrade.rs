//! What a connection becomes once the head of an answer is out, if it is to be no ordinary one: a face says it, the server does it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};

/// In the extensions of a response whose body goes on for as long as its client: whatever it took to read the request
/// is given back first, and the connection ends with the body.
#[derive(Debug, Clone, Copy)]
pub struct LongLivedBody;

/// The bytes of a connection.
pub trait ConnectionIo: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ConnectionIo for T {}

type UpgradeHandler = Box<dyn FnOnce(Box<dyn ConnectionIo>) + Send>;

/// In the extensions of a response after which another protocol is spoken: who takes the line over.
#[derive(Clone)]
pub struct ConnectionUpgrade(Arc<Mutex<Option<UpgradeHandler>>>);

impl ConnectionUpgrade {
    pub fn new(taken: impl FnOnce(Box<dyn ConnectionIo>) + Send + 'static) -> ConnectionUpgrade {
        ConnectionUpgrade(Arc::new(Mutex::new(Some(Box::new(taken)))))
    }

    pub fn run(self, line: Box<dyn ConnectionIo>) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(taken) = taken {
            taken(line);
        }
    }
}
