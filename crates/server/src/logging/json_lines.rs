//! JSON lines of the log: put together where the event happens, carried to standard error by a thread of their own.
//!
//! A line for each request is most of what is logged, and a system call for each would cost a tenth of a request. So
//! lines gather for [`PAUSE`] once one was written; whoever reads them too slowly holds up nobody.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use trefoil_model::values::json_text;

/// How long lines gather.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// How long the end waits for the last lines to be read.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Beyond this, lines are lost rather than kept for nobody.
const MAX_QUEUED_BYTES: usize = 4 << 20;

/// Writes events as lines for the thread that carries them.
pub struct JsonLogLayer(&'static LogQueue);

struct LogQueue {
    queue: Mutex<QueuedLines>,
    /// The thread has something to write …
    changed: Condvar,
    /// … and now it has written all.
    written: Condvar,
}

struct QueuedLines {
    bytes: Vec<u8>,
    lost_lines: u64,
    /// Nothing is being written, and the thread must be woken to see anything.
    idle: bool,
}

/// One for the process, as standard error is: whoever ends the process need not have begun the log.
static LOG_QUEUE: LogQueue = LogQueue::new();

/// Where events become lines, which from now on are carried away.
pub fn start_writer() -> io::Result<JsonLogLayer> {
    // A descriptor of our own: behind the lock of `io::stderr` everybody would wait for whoever reads too slowly.
    let log = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    std::thread::Builder::new().name("trefoil-log".to_owned()).spawn(move || LOG_QUEUE.run_writer(log))?;
    Ok(JsonLogLayer(&LOG_QUEUE))
}

/// Waits until the lines so far are written, if anybody reads them.
pub fn flush() {
    LOG_QUEUE.flush();
}

impl LogQueue {
    const fn new() -> LogQueue {
        let queue = QueuedLines { bytes: Vec::new(), lost_lines: 0, idle: true };
        LogQueue { queue: Mutex::new(queue), changed: Condvar::new(), written: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, QueuedLines> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push_line(&self, line: &[u8]) {
        let mut queue = self.lock();
        if queue.bytes.len() + line.len() > MAX_QUEUED_BYTES {
            queue.lost_lines += 1;
            return;
        }
        queue.bytes.extend_from_slice(line);
        if std::mem::take(&mut queue.idle) {
            drop(queue);
            self.changed.notify_one();
        }
    }

    fn run_writer(&self, mut log: File) {
        loop {
            let (bytes, lost) = self.take_lines();
            // Whoever read the log may be gone; there is nobody to complain to.
            let _ = log.write_all(&bytes);
            if lost > 0 {
                tracing::warn!(lines = lost, "lines of the log were lost: nobody read them");
            }
            std::thread::sleep(WRITE_INTERVAL);
        }
    }

    /// What waits, as soon as something does.
    fn take_lines(&self) -> (Vec<u8>, u64) {
        let mut queue = self.lock();
        while queue.bytes.is_empty() {
            queue.idle = true;
            self.written.notify_all();
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.idle = false;
        (std::mem::take(&mut queue.bytes), std::mem::take(&mut queue.lost_lines))
    }

    fn flush(&self) {
        let _ = self.written.wait_timeout_while(self.lock(), FLUSH_TIMEOUT, |queue| !queue.idle);
    }
}

impl<S: Subscriber> Layer<S> for JsonLogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        thread_local!(static LINE: RefCell<JsonLine> = RefCell::default());
        // A thread that ends may log when its line is gone already.
        let _ = LINE.try_with(|line| {
            // A value that logs while it is written down would come here again.
            let Ok(mut line) = line.try_borrow_mut() else { return };
            line.begin(event.metadata().level());
            event.record(&mut *line);
            line.out.extend_from_slice(b"}\n");
            self.0.push_line(&line.out);
        });
    }
}

/// One line while it is put together.
#[derive(Default)]
struct JsonLine {
    out: Vec<u8>,
    /// The last second that was spelled, and how.
    formatted_second: Option<(u64, String)>,
    /// Room for what is only known by how it is shown.
    debug_text: String,
}

impl JsonLine {
    fn begin(&mut self, level: &tracing::Level) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.formatted_second.as_ref().is_none_or(|(second, _)| *second != now.as_secs()) {
            let time =
                jiff::Timestamp::from_second(i64::try_from(now.as_secs()).unwrap_or(0)).unwrap_or_default();
            self.formatted_second = Some((now.as_secs(), time.strftime("%Y-%m-%dT%H:%M:%S").to_string()));
        }
        let spelled = self.formatted_second.as_ref().map_or("", |(_, spelled)| spelled);
        self.out.clear();
        // Writing to memory does not fail.
        let _ = write!(
            self.out,
            "{{\"timestamp\":\"{spelled}.{:06}Z\",\"level\":\"{level}\"",
            now.subsec_micros()
        );
    }

    fn write_key(&mut self, field: &Field) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(field.name().as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn write_number(&mut self, field: &Field, number: impl fmt::Display) {
        self.write_key(field);
        let _ = write!(self.out, "{number}");
    }
}

impl Visit for JsonLine {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.write_number(field, value)
        } else {
            self.record_str(field, &value.to_string())
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.write_number(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.write_number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.write_number(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.write_key(field);
        json_text::write_text(&mut self.out, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut shown = std::mem::take(&mut self.debug_text);
        shown.clear();
        let _ = write!(shown, "{value:?}");
        self.record_str(field, &shown);
        self.debug_text = shown;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn each_event_is_a_line_of_json() {
        static WAITING: LogQueue = LogQueue::new();
        let subscriber = tracing_subscriber::registry().with(JsonLogLayer(&WAITING));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(path = "/a\"b\n", status = 200_u16, ms = 1.5, was = true, left = -1, "request");
            tracing::warn!(client = %std::net::Ipv4Addr::LOCALHOST, cause = ?"x", odd = f64::NAN, "{}", "two words");
        });
        let text = String::from_utf8(WAITING.take_lines().0).expect("UTF-8");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let [first, second] = lines.as_slice() else { panic!("{text}") };
        for (name, value) in
            [("path", "\"/a\\\"b\\n\""), ("status", "200"), ("ms", "1.5"), ("was", "true"), ("left", "-1")]
        {
            assert_eq!(first[name].to_string(), value, "{first}");
        }
        assert_eq!((&first["level"], &first["message"]), (&"INFO".into(), &"request".into()));
        let time = first["timestamp"].as_str().expect("a time");
        assert!(time.parse::<jiff::Timestamp>().is_ok() && time.len() == 27, "{time}");
        for (name, value) in
            [("client", "127.0.0.1"), ("cause", "\"x\""), ("odd", "NaN"), ("message", "two words")]
        {
            assert_eq!(second[name], value, "{second}");
        }
    }

    #[test]
    fn what_nobody_takes_is_lost_and_counted() {
        let waiting = LogQueue::new();
        let line = [b'x'; 1 << 10];
        for _ in 0..MAX_QUEUED_BYTES / line.len() + 3 {
            waiting.push_line(&line);
        }
        let (bytes, lost) = waiting.take_lines();
        assert_eq!((bytes.len(), lost), (MAX_QUEUED_BYTES, 3));
    }
}
