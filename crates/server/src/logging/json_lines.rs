//! The JSON log: lines are formatted where the event happens and written to standard error by a separate thread.
//!
//! Most lines are of requests, and a system call for each would cost a tenth of a request. So after each write, lines
//! are collected for [`WRITE_INTERVAL`]. A slow reader of the log does not block requests.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use parking_lot::{Condvar, Mutex};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use trefoil_model::values::json_text;

/// How long lines are collected between writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(10);

/// How long the end of the process waits for the last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(500);

/// Above this size lines are dropped, because they are not being read.
const MAX_QUEUED_BYTES: usize = 4 << 20;

/// Formats events as JSON lines and queues them.
pub struct JsonLogLayer(&'static LogQueue);

struct LogQueue {
    queue: Mutex<QueuedLines>,
    /// There are lines to write.
    changed: Condvar,
    /// All lines are written.
    written: Condvar,
}

struct QueuedLines {
    bytes: Vec<u8>,
    lost_lines: u64,
    /// The writer waits on `changed`.
    idle: bool,
}

/// One for the process, like standard error: the code that ends the process can flush it wherever the log was started.
static LOG_QUEUE: LogQueue = LogQueue::new();

/// Starts the writer thread and returns the layer that feeds it.
pub fn start_writer() -> io::Result<JsonLogLayer> {
    // A descriptor of our own: behind the lock of `io::stderr` all threads would wait for a slow reader.
    let log = File::from(io::stderr().as_fd().try_clone_to_owned()?);
    std::thread::Builder::new().name("trefoil-log".to_owned()).spawn(move || LOG_QUEUE.run_writer(log))?;
    Ok(JsonLogLayer(&LOG_QUEUE))
}

/// Waits until the queued lines are written, at most `FLUSH_TIMEOUT`.
pub fn flush() {
    LOG_QUEUE.flush();
}

impl LogQueue {
    const fn new() -> LogQueue {
        let queue = QueuedLines { bytes: Vec::new(), lost_lines: 0, idle: true };
        LogQueue { queue: Mutex::new(queue), changed: Condvar::new(), written: Condvar::new() }
    }

    fn push_line(&self, line: &[u8]) {
        let mut queue = self.queue.lock();
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
            // The reader of the log may be gone, and there is nowhere to report that.
            let _ = log.write_all(&bytes);
            if lost > 0 {
                tracing::warn!(lines = lost, "log lines were dropped because the output was blocked");
            }
            std::thread::sleep(WRITE_INTERVAL);
        }
    }

    /// Waits for lines and takes all of them, with the number of dropped ones.
    fn take_lines(&self) -> (Vec<u8>, u64) {
        let mut queue = self.queue.lock();
        while queue.bytes.is_empty() {
            queue.idle = true;
            self.written.notify_all();
            self.changed.wait(&mut queue);
        }
        queue.idle = false;
        (std::mem::take(&mut queue.bytes), std::mem::take(&mut queue.lost_lines))
    }

    fn flush(&self) {
        let is_busy = |queue: &mut QueuedLines| !queue.idle;
        self.written.wait_while_for(&mut self.queue.lock(), is_busy, FLUSH_TIMEOUT);
    }
}

impl<S: Subscriber> Layer<S> for JsonLogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        thread_local!(static LINE: RefCell<JsonLine> = RefCell::default());
        // A thread may log at its end, when its thread-local buffer is already gone.
        let _ = LINE.try_with(|line| {
            // A value that logs while it is formatted would borrow the buffer again.
            let Ok(mut line) = line.try_borrow_mut() else { return };
            line.begin(event.metadata().level());
            event.record(&mut *line);
            line.out.extend_from_slice(b"}\n");
            self.0.push_line(&line.out);
        });
    }
}

/// The buffer for one line.
#[derive(Default)]
struct JsonLine {
    out: Vec<u8>,
    /// The last second that was formatted, and its text.
    formatted_second: Option<(u64, String)>,
    /// A buffer for values with only a `Debug` format.
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
        let second_text = self.formatted_second.as_ref().map_or("", |(_, text)| text);
        self.out.clear();
        // Writing to memory does not fail.
        let _ = write!(
            self.out,
            "{{\"timestamp\":\"{second_text}.{:06}Z\",\"level\":\"{level}\"",
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
        let mut text = std::mem::take(&mut self.debug_text);
        text.clear();
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
        self.debug_text = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn each_event_is_a_line_of_json() {
        static QUEUE: LogQueue = LogQueue::new();
        let subscriber = tracing_subscriber::registry().with(JsonLogLayer(&QUEUE));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(path = "/a\"b\n", status = 200_u16, ms = 1.5, was = true, left = -1, "request");
            tracing::warn!(client = %std::net::Ipv4Addr::LOCALHOST, cause = ?"x", odd = f64::NAN, "{}", "two words");
        });
        let text = String::from_utf8(QUEUE.take_lines().0).expect("UTF-8");
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
    fn lines_over_the_limit_are_counted_as_lost() {
        let queue = LogQueue::new();
        let line = [b'x'; 1 << 10];
        for _ in 0..MAX_QUEUED_BYTES / line.len() + 3 {
            queue.push_line(&line);
        }
        let (bytes, lost) = queue.take_lines();
        assert_eq!((bytes.len(), lost), (MAX_QUEUED_BYTES, 3));
    }
}
