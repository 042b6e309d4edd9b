//! The writers: users made through GraphQL at a steady rate, each named by a number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Failed;
use crate::events::Events;
use crate::options::Options;
use crate::wire::{find, number_after};

/// Makes all of them; what is not acknowledged is a failure.
pub async fn write_all(options: &Arc<Options>, events: &Arc<Events>) -> Result<(), Failed> {
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let mut writers = JoinSet::new();
    for _ in 0..options.writers {
        let (options, events, next) = (options.clone(), events.clone(), next.clone());
        writers.spawn(async move {
            let mut stream = TcpStream::connect(options.writers_at).await?;
            stream.set_nodelay(true)?;
            loop {
                let name = next.fetch_add(1, Ordering::Relaxed);
                if name >= events.len() {
                    return Ok::<_, Failed>(());
                }
                tokio::time::sleep_until(
                    start + Duration::from_secs(1) * u32::try_from(name)? / u32::try_from(options.rate)?,
                )
                .await;
                let record = create(&mut stream, name).await?;
                events.acknowledge(name, record);
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok(())
}

/// The email makes events of those who select it many times large.
async fn create(stream: &mut TcpStream, name: usize) -> Result<u64, Failed> {
    let padding = "x".repeat(1000);
    let body = format!(
        r#"{{"query":"mutation {{ createUser(name: \"{name}\", email: \"{padding}\") {{ id }} }}"}}"#
    );
    let request = format!(
        "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err("the server closed a writer's connection".into());
        }
        if let Some(whole) = whole(&answer)? {
            let record = number_after(whole, b"\"id\":\"");
            return record.ok_or_else(|| format!("not created: {}", String::from_utf8_lossy(whole)).into());
        }
    }
}

/// The body, once it is all there.
fn whole(answer: &[u8]) -> Result<Option<&[u8]>, Failed> {
    let Some(end) = find(answer, b"\r\n\r\n") else { return Ok(None) };
    let head = answer[..end].to_ascii_lowercase();
    let length = number_after(&head, b"content-length: ").ok_or("an answer without its length")?;
    let body = &answer[end + 4..];
    Ok((body.len() as u64 >= length).then_some(body))
}
