//! Response extensions by which a handler takes over the connection after the head: WebSockets and long-lived streams.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};

/// Marks a response whose body lasts as long as its client stays: the server frees the buffers that read the request,
/// and closes the connection after the body.
#[derive(Debug, Clone, Copy)]
pub struct LongLivedBody;

/// The byte stream of a connection.
pub trait ConnectionIo: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ConnectionIo for T {}

type UpgradeHandler = Box<dyn FnOnce(Box<dyn ConnectionIo>) + Send>;

/// Marks a response that switches protocols, with the handler that takes over the connection.
#[derive(Clone)]
pub struct ConnectionUpgrade(Arc<Mutex<Option<UpgradeHandler>>>);

impl ConnectionUpgrade {
    pub fn new(handler: impl FnOnce(Box<dyn ConnectionIo>) + Send + 'static) -> ConnectionUpgrade {
        ConnectionUpgrade(Arc::new(Mutex::new(Some(Box::new(handler)))))
    }

    pub fn run(self, io: Box<dyn ConnectionIo>) {
        let handler = self.0.lock().take();
        if let Some(handler) = handler {
            handler(io);
        }
    }
}
