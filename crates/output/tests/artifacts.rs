//! The artifact store: unique, readable in parts, bounded.

use std::{collections::HashSet, fs, thread};

use cellwright_cell::Stream;
use cellwright_output::{
    ArtifactError, ArtifactId, ArtifactKind, Artifacts, Colours, Hit, OutputLimits, OutputSink,
    PrunedArtifacts, Retention,
};

fn store() -> (tempfile::TempDir, Artifacts) {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(folder.path().join("artifacts"));
    (folder, artifacts)
}

#[test]
fn o1_no_two_artifacts_share_an_id_or_a_file() {
    let (_folder, artifacts) = store();
    let save = |writer: usize| {
        let texts = (0..100).map(move |number| format!("{writer}:{number}"));
        let save = |text: String| (artifacts.save(ArtifactKind::Log, text.as_bytes()).unwrap(), text);
        texts.map(save).collect::<Vec<_>>()
    };
    let saved: Vec<_> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || save(writer))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let ids: HashSet<_> = saved.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 800);
    for (id, text) in &saved {
        assert_eq!(artifacts.open(id).unwrap().content(100).unwrap().unwrap(), text.as_bytes());
    }
}

#[test]
fn ids_parse_as_they_are_shown_and_nothing_else_does() {
    let (_folder, artifacts) = store();
    let id = artifacts.save(ArtifactKind::Binary, b"\xff").unwrap();
    assert_eq!(id.to_string().parse(), Ok(id.clone()));
    assert_eq!(id.as_str().parse(), Ok(id));
    for wrong in ["", "artifact://", "../../etc", "artifact://../secret", "ABCDEFGH", "abcdefg", "abcdefghi"]
    {
        let error = wrong.parse::<ArtifactId>().unwrap_err().to_string();
        assert_eq!(error, format!("`{wrong}` is not an artifact id; one looks like `artifact://k3v9x2mq`"));
    }
}

#[test]
fn a_missing_artifact_and_one_that_is_not_text_are_reported() {
    let (_folder, artifacts) = store();
    let id: ArtifactId = "artifact://00000000".parse().unwrap();
    assert!(matches!(artifacts.open(&id), Err(ArtifactError::NotFound { .. })));
    let image = artifacts.open(&artifacts.save(ArtifactKind::Png, b"\x89PNG").unwrap()).unwrap();
    let error = image.lines(1..=2, 100).unwrap_err().to_string();
    assert_eq!(error, format!("{} is not text; it is a png file", image.id));
    assert_eq!(image.content(3).unwrap(), None);
    assert_eq!(image.content(4).unwrap().unwrap(), b"\x89PNG");
}

#[test]
fn o4_a_big_artifact_is_read_in_parts() {
    let (_folder, artifacts) = store();
    let mut sink = OutputSink::with_artifacts(OutputLimits::default(), Colours::Dropped, &artifacts);
    for line in 1..=300_000 {
        sink.write(Stream::Stdout, format!("line {line}\n").as_bytes());
    }
    let truncation = sink.finish().truncation.unwrap();
    let artifact = artifacts.open(truncation.full.artifact().unwrap()).unwrap();

    let page = artifact.lines(200_000..=200_002, 1000).unwrap();
    assert_eq!(page.text, "line 200000\nline 200001\nline 200002\n");
    assert_eq!(page.next, Some(200_003));
    let page = artifact.lines(299_999..=u64::MAX, 1000).unwrap();
    assert_eq!((page.text.as_str(), page.lines, page.next), ("line 299999\nline 300000\n", 2, None));
    let page = artifact.lines(1..=300_000, 20).unwrap();
    assert_eq!((page.text.as_str(), page.next), ("line 1\nline 2\n", Some(3)));
    let page = artifact.lines(300_001..=300_005, 20).unwrap();
    assert_eq!((page.text.as_str(), page.lines, page.next), ("", 0, None));

    let found = artifact.search(1..=u64::MAX, 2, |line| line.ends_with("99999")).unwrap();
    let hit = |line: u64| Hit { line, text: format!("line {line}") };
    assert_eq!((found.hits, found.next), (vec![hit(99_999), hit(199_999)], Some(200_000)));
    let found = artifact.search(200_000..=u64::MAX, 10, |line| line.contains("299999")).unwrap();
    assert_eq!((found.hits, found.next, found.long_lines), (vec![hit(299_999)], None, 0));

    let ends = artifact.ends(OutputLimits { head: 14, tail: 60, line: 100 }).unwrap();
    let id = artifact.id.to_string();
    insta::assert_snapshot!(ends.text.replace(&id, "artifact://k3v9x2mq"), @r"
    line 1
    line 2
    [… 299,993 of 300,000 lines omitted: lines 3-299995, 3,488,821 of 3,488,895 bytes. Full output: artifact://k3v9x2mq]
    line 299996
    line 299997
    line 299998
    line 299999
    line 300000
    ");
}

#[test]
fn o4_windows_reach_into_a_line_of_any_length() {
    let (_folder, artifacts) = store();
    let text = "0123456789€".repeat(100_000);
    let artifact = artifacts.open(&artifacts.save(ArtifactKind::Log, text.as_bytes()).unwrap()).unwrap();
    let page = artifact.lines(1..=1, 100).unwrap();
    assert_eq!(page.text, format!("{}…[+1,299,900 bytes]", &text[..100]));
    // Byte 11 is inside the first euro sign, and so is the last one asked for.
    let window = artifact.window(11, 14).unwrap();
    assert_eq!((window.text.as_str(), window.bytes, window.total), ("0123456789", 13..23, 1_300_000));
    let end = artifact.window(1_299_995, 100).unwrap();
    assert_eq!((end.text.as_str(), end.bytes), ("89€", 1_299_995..1_300_000));
    assert_eq!(artifact.window(5_000_000, 10).unwrap().text, "");
    // Windows that follow one another leave nothing out.
    let (mut start, mut read) = (0, String::new());
    while start < artifact.bytes {
        let window = artifact.window(start, 99_991).unwrap();
        assert_eq!(window.bytes.start, start);
        start = window.bytes.end;
        read.push_str(&window.text);
    }
    assert!(read == text);
}

#[test]
fn pruning_removes_the_oldest_and_spares_what_is_being_written() {
    let (_folder, artifacts) = store();
    let everything = Retention { count: 0, bytes: 0 };
    assert_eq!(artifacts.prune(everything).unwrap(), PrunedArtifacts::default());
    let mut sink = OutputSink::with_artifacts(OutputLimits::default(), Colours::Dropped, &artifacts);
    sink.write(Stream::Stdout, &b"being written\n".repeat(10_000));
    let writing = sink.snapshot().truncation.unwrap().full.artifact().unwrap().clone();
    let saved: Vec<_> =
        (1..=5).map(|size| artifacts.save(ArtifactKind::Log, &vec![b'x'; size]).unwrap()).collect();
    for (age, id) in saved.iter().rev().enumerate() {
        let file = fs::File::options().write(true).open(artifacts.open(id).unwrap().path).unwrap();
        let hours = std::time::Duration::from_secs(3600 * (age as u64 + 1));
        file.set_modified(std::time::SystemTime::now() - hours).unwrap();
    }
    fs::write(artifacts.directory().join("README"), "not an artifact").unwrap();

    let keep = Retention { count: 4, bytes: u64::MAX };
    assert_eq!(artifacts.prune(keep).unwrap(), PrunedArtifacts { count: 2, bytes: 1 + 2 });
    let keep = Retention { count: 100, bytes: 140_000 + 5 };
    assert_eq!(artifacts.prune(keep).unwrap(), PrunedArtifacts { count: 2, bytes: 3 + 4 });
    let left: HashSet<_> = artifacts.list().unwrap().into_iter().map(|artifact| artifact.id).collect();
    assert_eq!(left, HashSet::from([writing.clone(), saved[4].clone()]));

    assert_eq!(artifacts.prune(everything).unwrap(), PrunedArtifacts { count: 1, bytes: 5 });
    drop(sink);
    assert_eq!(artifacts.prune(everything).unwrap(), PrunedArtifacts { count: 1, bytes: 140_000 });
    assert!(artifacts.directory().join("README").exists());
}

/// A run that has printed 100 lines and goes on.
fn early_sink(artifacts: &Artifacts) -> OutputSink {
    let limits = OutputLimits { head: 50, tail: 50, line: 50 };
    let mut sink = OutputSink::with_artifacts(limits, Colours::Dropped, artifacts);
    sink.write(Stream::Stdout, &b"early\n".repeat(100));
    sink
}

#[test]
fn a_snapshot_names_an_artifact_that_can_be_read_while_the_run_goes_on() {
    let (_folder, artifacts) = store();
    let mut sink = early_sink(&artifacts);
    let truncation = sink.snapshot().truncation.unwrap();
    let artifact = artifacts.open(truncation.full.artifact().unwrap()).unwrap();
    assert_eq!(artifact.bytes, 600);
    sink.write(Stream::Stdout, b"late\n");
    let end = sink.finish().truncation.unwrap();
    assert_eq!((end.full, end.total.lines), (truncation.full, 101));
    assert_eq!(artifact.lines(101..=101, 100).unwrap().text, "late\n");
}

#[test]
fn an_abandoned_run_leaves_all_it_printed_in_the_artifact_it_named() {
    let (_folder, artifacts) = store();
    let mut sink = early_sink(&artifacts);
    let id = sink.snapshot().truncation.unwrap().full.artifact().unwrap().clone();
    sink.write(Stream::Stdout, b"late\n");
    drop(sink);
    assert_eq!(artifacts.open(&id).unwrap().lines(101..=101, 100).unwrap().text, "late\n");
}

#[cfg(target_os = "linux")]
#[test]
fn k23_no_descriptor_stays_open() {
    let (_folder, artifacts) = store();
    let open_in_store = || {
        let descriptors =
            fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        descriptors.filter(|target| target.starts_with(artifacts.directory())).count()
    };
    let full_sink = || {
        let mut sink = OutputSink::with_artifacts(OutputLimits::default(), Colours::Dropped, &artifacts);
        sink.write(Stream::Stdout, &b"line\n".repeat(100_000));
        sink
    };
    let (finished, dropped) = (full_sink(), full_sink());
    assert_eq!(open_in_store(), 2);
    let truncation = finished.finish().truncation.unwrap();
    drop(dropped);
    assert_eq!(open_in_store(), 0);
    let artifact = artifacts.open(truncation.full.artifact().unwrap()).unwrap();
    artifact.lines(5..=6, 100).unwrap();
    assert_eq!(open_in_store(), 0);
}

#[cfg(unix)]
#[test]
fn artifacts_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, artifacts) = store();
    let artifact = artifacts.open(&artifacts.save(ArtifactKind::Log, b"secret").unwrap()).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(artifact.path.as_path()), 0o600);
    assert_eq!(mode(artifacts.directory()), 0o700);
}

#[test]
fn the_oldest_artifacts_make_room_without_being_asked() {
    let directory = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::new(directory.path());
    let old = artifacts.save(ArtifactKind::Log, b"old").unwrap();
    // Sparse: more than is kept, on no disk.
    let file = fs::File::options().write(true).open(artifacts.open(&old).unwrap().path).unwrap();
    file.set_len(5 << 30).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    let new: Vec<_> = (0..100).map(|_| artifacts.save(ArtifactKind::Log, b"new").unwrap()).collect();
    assert!(matches!(artifacts.open(&old), Err(ArtifactError::NotFound { .. })));
    assert!(new.iter().all(|id| artifacts.open(id).is_ok()));
}
