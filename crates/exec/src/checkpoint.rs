//! Checkpoints: hard-linked state with a manifest that names the step, and the choice of one at start.
//!
//! ```text
//! checkpoints/00000000000000000007/MANIFEST    crc32 (8 hex digits), newline, JSON; the folders are numbered in the order they were made
//! checkpoints/00000000000000000007/db/         hard links of RocksDB's files
//! live/                                        the database in use; made anew from a checkpoint at each start
//! ```
//!
//! ORDER: the journal and the sinks' topics are synced, then the database is flushed and linked into a folder with a temporary name, then the manifest is
//! written and synced, then the folder gets its name, then its parent is synced. A folder with its name is whole.
//! INVARIANT: the journal keeps every step behind the oldest checkpoint that is kept.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use highwater_storage_log::{Log, Offset, TopicPartition};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ExecError, ExecResult, with_causes},
    producer::ProducerPosition,
    state::{BaseSnapshot, RocksState, Run, StateChanges, StateId, StatePrefix},
};

/// Version of the manifest; a newer one is refused.
const FORMAT: u32 = 1;

/// File of a checkpoint that says what it is.
pub const MANIFEST: &str = "MANIFEST";

/// Folder of a checkpoint that holds the database.
pub const DATABASE: &str = "db";

/// How checkpoints are called that are being copied.
const FROZEN: &str = "frozen-";

/// How many checkpoints are kept at the most: the newest, and one to fall back to.
const KEPT: usize = 2;

/// A file that says that the databases of the checkpoints may be damaged: some of what was read of one was.
const SUSPECT: &str = "SUSPECT";

/// What a checkpoint says beside the state itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// The step whose state this is.
    pub step: u64,
    /// Offset of the first journal entry behind it.
    pub journal: i64,
    /// Positions of the sources.
    pub sources: Vec<SourceManifest>,
    /// The queries that took part.
    pub queries: Vec<QueryManifest>,
    /// The engine's producer on the processing log.
    pub processing_log: Vec<ProducerPosition>,
    /// Up to where each query that makes a stream had written it, by relation.
    #[serde(default)]
    pub written: Vec<SourceManifest>,
}

/// Positions of one source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourceManifest {
    /// The relation.
    pub relation: u64,
    /// Next offset to read, by partition.
    pub positions: Vec<i64>,
}

/// One query.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueryManifest {
    /// Identity.
    pub query: u64,
    /// Where its producer stands.
    pub sink: Vec<ProducerPosition>,
    /// Rows of its table.
    pub rows: i64,
    /// Which of the query's revisions made what it keeps.
    #[serde(default)]
    pub revision: u64,
    /// For a query that does not run: where it stopped reading, by relation.
    pub stopped_at: Option<Vec<SourceManifest>>,
    /// The same for the streams of other queries, whose records it got in memory.
    #[serde(default)]
    pub has_own: Vec<SourceManifest>,
    /// It failed since the state database is damaged.
    #[serde(default)]
    pub has_lost_state: bool,
    /// Where it began to read, by relation: what a rebuild starts from.
    pub origin: Vec<SourceManifest>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// All that one checkpoint writes, taken between two steps.
pub struct CheckpointWork {
    /// What the manifest will say.
    pub manifest: Manifest,
    /// Operator state.
    pub changes: Vec<(StatePrefix, StateChanges)>,
    /// Tables.
    pub runs: Vec<(StatePrefix, Vec<Arc<Run>>)>,
    /// What has to be on disk first: journal, inputs and results.
    pub must_be_durable: Vec<(TopicPartition, Offset)>,
    /// The state tables of all queries.
    pub tables: Vec<StateId>,
    /// It marks a change of the queries.
    pub changes_queries: bool,
}

/// Outcome of a checkpoint.
pub struct CheckpointDone {
    /// The step whose state it holds.
    pub step: u64,
    /// About how many bytes each state table has on disk.
    pub stored: HashMap<StateId, u64>,
    /// The database as the checkpoint left it.
    pub base: Arc<BaseSnapshot>,
    /// Journal entries below this are not needed any more.
    pub journal_keep: Offset,
}

/// A state folder as it was found.
pub struct Restored {
    /// The live database.
    pub state: RocksState,
    /// What the checkpoint said; `None` when there has been none.
    pub manifest: Option<Manifest>,
    /// Why the database is empty although the manifest is not, if so: no checkpoint's database can be used any more.
    pub lost: Option<String>,
}

/// Folders of a pipeline's state.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    root: PathBuf,
    /// Bytes of memory for state, of which a database takes its part.
    memory: usize,
}

impl CheckpointStore {
    /// Opens the folders below `root`, or makes them. A database that is restored has its part of `memory` bytes.
    pub fn open(root: &Path, memory: usize) -> ExecResult<Self> {
        let store = Self {
            root: root.to_owned(),
            memory,
        };
        let folder = store.folder();
        fs::create_dir_all(&folder).map_err(io("create", &folder))?;
        store.remove_frozen()?;
        Ok(store)
    }

    /// Folder of a checkpoint that is being copied.
    pub fn frozen(&self, number: u64) -> PathBuf {
        self.root.join(format!("{FROZEN}{number}"))
    }

    /// What a crash left of copies that were under way.
    fn remove_frozen(&self) -> ExecResult<()> {
        for entry in fs::read_dir(&self.root).map_err(io("list", &self.root))? {
            let entry = entry.map_err(io("list", &self.root))?;
            if entry.file_name().to_string_lossy().starts_with(FROZEN) {
                remove_folder(&entry.path())?;
            }
        }
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// Folder of the live database.
    pub fn live(&self) -> PathBuf {
        self.root.join("live")
    }

    /// Finished checkpoints, newest first.
    pub fn list(&self) -> ExecResult<Vec<(u64, PathBuf)>> {
        let folder = self.folder();
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(io("list", &folder))? {
            let entry = entry.map_err(io("list", &folder))?;
            if let Some(number) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            {
                found.push((number, entry.path()));
            }
        }
        found.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        Ok(found)
    }

    /// The manifests of all checkpoints that can be read.
    pub fn manifests(&self) -> ExecResult<Vec<Manifest>> {
        let checkpoints = self.list()?;
        let manifests = checkpoints
            .iter()
            .filter_map(|(_, path)| read_manifest(path).ok());
        Ok(manifests.collect())
    }

    /// Writes a checkpoint: runs on a thread of its own. After an error it can be tried again with the same work.
    ///
    /// A checkpoint that marks a change of the queries is the only one kept: the journal tells nothing of such changes, so a replay from before
    /// it would run other queries than ran then.
    pub fn write(
        &self,
        log: &dyn Log,
        state: &RocksState,
        work: &CheckpointWork,
    ) -> ExecResult<CheckpointDone> {
        for (partition, end) in &work.must_be_durable {
            log.sync(partition, *end)?;
        }
        state.write(&work.changes)?;
        for (prefix, runs) in &work.runs {
            state.write_runs(*prefix, runs)?;
        }
        let step = work.manifest.step;
        let folder = self.folder();
        let unfinished = folder.join("unfinished");
        remove_folder(&unfinished)?;
        fs::create_dir(&unfinished).map_err(io("create", &unfinished))?;
        state.write_checkpoint(&unfinished.join(DATABASE))?;
        write_manifest(&unfinished, &work.manifest)?;
        let number = self.list()?.first().map_or(1, |(newest, _)| newest + 1);
        let finished = folder.join(format!("{number:020}"));
        fs::rename(&unfinished, &finished).map_err(io("rename", &unfinished))?;
        sync_folder(&folder)?;

        let kept = if work.changes_queries { 1 } else { KEPT };
        let mut journal_keep = work.manifest.journal;
        for (position, (_, path)) in self.list()?.into_iter().enumerate() {
            if position >= kept {
                remove_folder(&path)?;
            } else if let Ok(manifest) = read_manifest(&path) {
                journal_keep = journal_keep.min(manifest.journal);
            }
        }
        let sizes = state.stored(&work.tables);
        Ok(CheckpointDone {
            step,
            stored: work.tables.iter().copied().zip(sizes).collect(),
            base: state.snapshot(),
            journal_keep: Offset(journal_keep),
        })
    }

    /// Lets the next start read all of the state if an error tells that some of it is damaged.
    pub fn note_damage(&self, error: &ExecError) {
        if !error.is_damage() {
            return;
        }
        tracing::error!(
            "the state database is damaged; the next start reads all of it, and makes anew what is lost"
        );
        if let Err(error) = self.suspect() {
            tracing::error!(
                error = with_causes(&error),
                "could not note that the state is damaged"
            );
        }
    }

    /// Lets the next start read every byte of a checkpoint before it is used.
    pub fn suspect(&self) -> ExecResult<()> {
        let path = self.root.join(SUSPECT);
        File::create(&path).map_err(io("create", &path))?;
        sync_folder(&self.root)
    }

    /// Whether the next start reads every byte of a checkpoint before it is used.
    pub fn is_suspect(&self) -> bool {
        self.root.join(SUSPECT).exists()
    }

    /// The checkpoints that are there now are whole.
    pub fn trust(&self) -> ExecResult<()> {
        let path = self.root.join(SUSPECT);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Opens the newest checkpoint that is whole as the live database, or an empty one when there is none. Where only manifests are whole, it
    /// is empty, too, and what the newest of them tells has to be made anew.
    pub fn restore(&self) -> ExecResult<Restored> {
        let live = self.live();
        let suspect = self.is_suspect();
        let checkpoints = self.list()?;
        let none = checkpoints.is_empty();
        let mut damage = None;
        for (number, path) in &checkpoints {
            match self.restore_one(path, suspect) {
                Ok((state, manifest)) => {
                    return Ok(Restored {
                        state,
                        manifest: Some(manifest),
                        lost: None,
                    });
                }
                Err(error) if error.is_damage() => {
                    let reason = with_causes(&error);
                    tracing::error!(
                        number,
                        reason,
                        "checkpoint is damaged, trying the one before"
                    );
                    damage.get_or_insert(reason);
                }
                Err(other) => return Err(other),
            }
        }
        let manifest = checkpoints
            .iter()
            .find_map(|(_, path)| read_manifest(path).ok());
        if !none && manifest.is_none() {
            return Err(ExecError::Corrupt {
                what: "state".into(),
                detail: "none of the checkpoints can be opened".into(),
            });
        }
        remove_folder(&live)?;
        Ok(Restored {
            state: RocksState::open(&live, self.memory)?,
            manifest,
            lost: damage,
        })
    }

    fn restore_one(&self, path: &Path, suspect: bool) -> ExecResult<(RocksState, Manifest)> {
        let manifest = read_manifest(path)?;
        let live = self.live();
        remove_folder(&live)?;
        fs::create_dir_all(&live).map_err(io("create", &live))?;
        let source = path.join(DATABASE);
        for entry in fs::read_dir(&source).map_err(io("list", &source))? {
            let entry = entry.map_err(io("list", &source))?;
            let target = live.join(entry.file_name());
            // Sorted files never change and can be shared; the others are written to.
            let shared = entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "sst");
            if shared {
                fs::hard_link(entry.path(), &target).map_err(io("link", &target))?;
            } else {
                fs::copy(entry.path(), &target).map_err(io("copy", &target))?;
            }
        }
        // Without this file RocksDB would take the folder for a new database.
        let current = live.join("CURRENT");
        if !current.exists() {
            return Err(ExecError::Corrupt {
                what: current.display().to_string(),
                detail: "it is missing".into(),
            });
        }
        let state = RocksState::open(&live, self.memory)?;
        if suspect {
            state.verify()?;
        }
        Ok((state, manifest))
    }
}

/// Folder of the first checkpoint below a state folder.
pub fn first_folder(root: &Path) -> PathBuf {
    root.join("checkpoints").join(format!("{:020}", 1))
}

fn write_manifest(folder: &Path, manifest: &Manifest) -> ExecResult<()> {
    let json = serde_json::to_string(manifest)
        .map_err(|error| ExecError::Internal(format!("could not write a manifest: {error}")))?;
    let path = folder.join(MANIFEST);
    let mut file = File::create(&path).map_err(io("create", &path))?;
    write!(file, "{:08x}\n{json}", crc32fast::hash(json.as_bytes())).map_err(io("write", &path))?;
    file.sync_all().map_err(io("sync", &path))?;
    sync_folder(folder)
}

/// What a checkpoint says of itself.
pub fn read_manifest(folder: &Path) -> ExecResult<Manifest> {
    let path = folder.join(MANIFEST);
    let text = fs::read_to_string(&path).map_err(io("read", &path))?;
    let corrupt = |detail: String| ExecError::Corrupt {
        what: path.display().to_string(),
        detail,
    };
    let (crc, json) = text
        .split_once('\n')
        .ok_or_else(|| corrupt("it has no checksum".into()))?;
    if u32::from_str_radix(crc, 16).ok() != Some(crc32fast::hash(json.as_bytes())) {
        return Err(corrupt("its checksum does not match".into()));
    }
    let manifest: Manifest =
        serde_json::from_str(json).map_err(|error| corrupt(error.to_string()))?;
    if manifest.format != FORMAT {
        return Err(corrupt(format!(
            "it has format {}, this program reads {FORMAT}",
            manifest.format
        )));
    }
    Ok(manifest)
}

impl Manifest {
    /// A manifest of the current format without sources and queries.
    pub fn new(step: u64, journal: Offset) -> Self {
        Self {
            format: FORMAT,
            step,
            journal: journal.0,
            sources: Vec::new(),
            queries: Vec::new(),
            processing_log: Vec::new(),
            written: Vec::new(),
        }
    }
}

fn remove_folder(path: &Path) -> ExecResult<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Makes the names in a folder durable.
pub fn sync_folder(path: &Path) -> ExecResult<()> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(io("sync", path))
}

/// What failed about a file.
pub fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ExecError {
    let path = path.display().to_string();
    move |source| ExecError::Io {
        action,
        path,
        source,
    }
}
