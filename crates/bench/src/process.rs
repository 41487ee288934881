//! What this process and its files take, as Linux tells it.

use std::{collections::HashMap, fs, io, os::unix::fs::MetadataExt, path::Path};

/// Lets the peak of memory begin anew.
pub(crate) fn forget_peak_memory() {
    // 5 is the code for that. Where it is refused, the peak is the one since the start.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Most memory that this process had at once since [`forget_peak_memory`], in bytes; 0 where there is no /proc.
pub(crate) fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// CPU seconds of this thread; 0 where there is no /proc.
pub(crate) fn thread_cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text
        .split_ascii_whitespace()
        .next()
        .and_then(|field| field.parse::<f64>().ok());
    nanos.unwrap_or(0.0) / 1e9
}

/// The files below a folder with their bytes, each once however many names it has. What goes away meanwhile is left out.
pub(crate) fn files(folder: &Path) -> io::Result<HashMap<(u64, u64), u64>> {
    let mut files = HashMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else {
                files.insert((metadata.dev(), metadata.ino()), metadata.len());
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_counts_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("below");
        fs::create_dir(&below).expect("made");
        fs::write(below.join("one"), [0; 1000]).expect("written");
        fs::hard_link(below.join("one"), folder.path().join("two")).expect("linked");
        let found = files(folder.path()).expect("read");
        assert_eq!(found.into_values().collect::<Vec<_>>(), [1000]);
        assert!(files(&folder.path().join("none")).expect("read").is_empty());
    }

    #[test]
    fn memory_and_time_are_told() {
        forget_peak_memory();
        assert!(peak_memory() > 1 << 20);
        let before = thread_cpu_seconds();
        let mut sum = 0u64;
        while thread_cpu_seconds() == before {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
