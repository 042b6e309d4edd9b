//! Memory, CPU time, open files and start time of this process, read from the system for each `/metrics` request.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The unit of CPU time in `/proc`: 100 per second on Linux, whatever the kernel's own tick.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(crate) struct ProcessMetrics {
    started_at: f64,
}

impl ProcessMetrics {
    pub(crate) fn start() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ProcessMetrics { started_at: now.as_secs_f64() }
    }
}

impl Collector for ProcessMetrics {
    /// Values that the system does not provide (on anything but Linux) are left out.
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut gauge = |name, help, value: f64| {
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        };
        gauge("process_start_time_seconds", "Start of the process, seconds since 1970", self.started_at)?;
        if let Some(bytes) = resident_bytes() {
            gauge("process_resident_memory_bytes", "Resident memory", bytes)?;
        }
        if let Some(open) = open_files() {
            gauge("process_open_fds", "Open file descriptors", open)?;
        }
        if let Some(seconds) = cpu_seconds() {
            let help = "Processor time, user and system";
            let descriptor =
                encoder.encode_descriptor("process_cpu_seconds", help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(descriptor)?;
        }
        Ok(())
    }
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The process name in parentheses may contain spaces, so fields are counted after it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<f64>().ok());
    Some((times.next()? + times.next()?) / TICKS_PER_SECOND)
}

fn open_files() -> Option<f64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}
