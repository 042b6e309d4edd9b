//! What Linux tells of a process: its memory, its time, how many files it may open.

use std::fs;
use std::time::Duration;

use crate::Failed;

/// Ticks in a second, as Linux counts them for everyone outside the kernel.
const TICKS: u64 = 100;

#[derive(Debug, Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    pub fn own() -> Process {
        Process(std::process::id())
    }

    /// Bytes of memory that it really has.
    pub fn resident(self) -> Result<u64, Failed> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024)
    }

    /// The processor time it has used, its own and the system's on its behalf.
    pub fn time(self) -> Result<Duration, Failed> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        // The name before it is in parentheses and may hold anything.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).ok_or("no times");
        Ok(Duration::from_millis((ticks(11)? + ticks(12)?) * 1000 / TICKS))
    }

    /// Whether it may have that many files open.
    pub fn allows(self, files: usize) -> Result<(), Failed> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.0))?;
        let line =
            limits.lines().find_map(|line| line.strip_prefix("Max open files")).ok_or("no file limit")?;
        let limit = line.split_whitespace().next().unwrap_or("0");
        match limit.parse::<usize>() {
            Ok(limit) if limit < files => Err(format!(
                "process {} may open {limit} files and needs {files}: raise it with ulimit -n",
                self.0
            )
            .into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
