//! Every `cases/<feature>/*.slt`, each as two trials: straight through, and with a SIGKILL and a restart in its middle.
//!
//! `cargo test --release --test cases -- windows` runs the cases of one feature.

use std::path::{Path, PathBuf};

use highwater_sqllogictest::{Mode, run_case};
use sqllogictest::harness::{Arguments, Failed, Trial, glob, run};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let pattern = root.join("*/*.slt");
    let paths: Vec<PathBuf> = glob(&pattern.to_string_lossy())
        .expect("the pattern is valid")
        .collect::<Result<_, _>>()
        .expect("the folder of the cases can be read");
    assert!(!paths.is_empty(), "no case under {}", root.display());
    let trials = paths.iter().flat_map(|path| {
        let name = path
            .strip_prefix(&root)
            .expect("the pattern begins with the root")
            .display()
            .to_string();
        [
            trial(format!("{name} straight"), path, Mode::Straight),
            trial(format!("{name} restarted"), path, Mode::Restarted),
        ]
    });
    run(&Arguments::from_args(), trials.collect()).exit();
}

fn trial(name: String, path: &Path, mode: Mode) -> Trial {
    let path = path.to_owned();
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime
            .block_on(run_case(&path, mode))
            .map_err(|error| Failed::from(format!("{error:#}")))
    })
}
