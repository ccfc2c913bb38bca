//! Finding a Python, starting it, and what it may see.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cellwright_kernel::interpreter::{PythonOrigin, create_managed};
use cellwright_kernel::runner::{ExaminedPython, Rejection};
use cellwright_kernel::{Event, KernelCell, LaunchError, Outcome, RunnerKernel, RunnerLaunch};
use cellwright_testkit::{end_of, python};

use super::support::{Fixture, Ran, cache, search};

/// The base interpreter of the tests' environment, for making others from.
fn real_python() -> PathBuf {
    fs::canonicalize(python()).unwrap()
}

/// A virtual environment as far as discovery and Python itself are concerned.
fn make_venv(folder: &Path) {
    let real = real_python();
    fs::create_dir_all(folder.join("bin")).unwrap();
    symlink(&real, folder.join("bin/python")).unwrap();
    let home = real.parent().unwrap().display();
    fs::write(folder.join("pyvenv.cfg"), format!("home = {home}\n")).unwrap();
}

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

async fn launched(launch: &RunnerLaunch) -> RunnerKernel {
    launch.start().await.unwrap_or_else(|error| panic!("{error}"))
}

async fn result(launched: &RunnerKernel, code: &str) -> String {
    let ran = Ran::of(launched.kernel.execute(KernelCell::new(code)).await).await;
    ran.result().unwrap_or_else(|| panic!("{ran:?}")).to_owned()
}

#[tokio::test]
async fn k17_the_projects_environment_is_found_from_below_and_beats_conda_but_not_an_active_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("src/deep")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    for venv in [".venv", "conda", "active"] {
        make_venv(&root.join(venv));
    }
    let mut launch = RunnerLaunch::new(search(&root.join("src/deep")), cache());
    launch.search.variables.insert("CONDA_PREFIX".into(), root.join("conda").into());
    let project = launched(&launch).await;
    assert_eq!(
        (project.candidate.origin, &project.candidate.python),
        (PythonOrigin::Project, &root.join(".venv/bin/python"))
    );
    assert_eq!(
        result(&project, "import sys; sys.prefix").await,
        format!("'{}'", root.join(".venv").display())
    );
    assert_eq!(
        result(&project, "import os; os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(':')[0]").await,
        format!("('{0}', '{0}/bin')", root.join(".venv").display())
    );

    launch.search.variables.insert("VIRTUAL_ENV".into(), root.join("active").into());
    assert_eq!(launched(&launch).await.candidate.origin, PythonOrigin::Active);

    fs::remove_dir_all(root.join(".venv")).unwrap();
    launch.search.variables.remove(OsStr::new("VIRTUAL_ENV"));
    assert_eq!(launched(&launch).await.candidate.origin, PythonOrigin::Conda);
}

#[tokio::test]
async fn tools_of_a_named_python_come_first_unless_its_folder_has_a_place_on_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    make_venv(&root.join("venv"));
    fs::create_dir_all(root.join("other/bin")).unwrap();
    symlink(real_python(), root.join("other/bin/python")).unwrap();
    let path = "import os; os.environ.get('VIRTUAL_ENV'), os.environ['PATH']";
    let root = root.display();
    for (named, before, expected) in [
        ("venv/bin/python", "/bin", format!("('{root}/venv', '{root}/venv/bin:/bin')")),
        ("venv", "/bin", format!("('{root}/venv', '{root}/venv/bin:/bin')")),
        ("other/bin/python", "/bin", format!("(None, '{root}/other/bin:/bin')")),
        ("other/bin/python", "/bin:{root}/other/bin", format!("(None, '/bin:{root}/other/bin')")),
    ] {
        let mut launch = RunnerLaunch::new(search(folder.path()), cache());
        launch.search.explicit = Some(named.into());
        launch.search.variables.insert("PATH".into(), before.replace("{root}", &root.to_string()).into());
        assert_eq!(result(&launched(&launch).await, path).await, expected, "{named}");
    }
}

#[tokio::test]
async fn a_python_that_two_names_of_a_folder_lead_to_is_tried_once() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    script(&root.join("usr/bin/python3"), "#!/bin/sh\nexit 1\n");
    symlink("usr/bin", root.join("bin")).unwrap();
    let mut launch = RunnerLaunch::new(search(root), cache());
    let path = std::env::join_paths([root.join("usr/bin"), root.join("bin")]).unwrap();
    launch.search.variables.insert("PATH".into(), path);
    let Err(LaunchError::NoInterpreter { rejected }) = launch.start().await else { panic!("it starts") };
    assert_eq!(rejected.len(), 1, "{rejected:?}");
}

#[tokio::test]
async fn k17_environments_that_are_broken_hang_or_crash_do_not_hide_one_that_works() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join(".venv/bin")).unwrap();
    symlink("/no/such/python", root.join(".venv/bin/python")).unwrap();
    script(&root.join("venv/bin/python"), "#!/bin/sh\nexec /bin/sleep 600\n");
    script(&root.join("managed/bin/python"), "#!/bin/sh\necho no module named site >&2\nexit 1\n");
    symlink(real_python(), root.join("python3")).unwrap();
    let mut launch = RunnerLaunch::new(search(root), cache());
    launch.search.managed = Some(root.join("managed"));
    launch.search.variables.insert("PATH".into(), root.into());
    launch.ready_within = Duration::from_secs(2);
    let launched = launched(&launch).await;
    assert_eq!(launched.candidate.origin, PythonOrigin::Path);
    assert_eq!(result(&launched, "1").await, "1");
    let reasons: Vec<String> =
        launched.rejected.iter().map(|rejected| format!("{}: {}", rejected.origin, rejected.why)).collect();
    assert_eq!(
        reasons,
        [
            "the project's virtual environment: its link leads nowhere: the Python it was made from is gone; make the environment again",
            "the project's virtual environment: it did not answer within 2 seconds",
            "the managed virtual environment: the kernel exited with code 1 before it answered, saying: no module named site",
        ]
    );
}

#[tokio::test]
async fn k18_what_doctor_examines_is_what_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    script(&root.join(".venv/bin/python"), "#!/bin/sh\nexit 1\n");
    make_venv(&root.join("venv"));
    let launch = RunnerLaunch::new(search(root), cache());
    let examined = launch.examine().await.unwrap();
    let works = examined.iter().find_map(|examined| match examined {
        ExaminedPython::Works(candidate, _) => Some(candidate),
        ExaminedPython::Rejected(_) => None,
    });
    assert!(
        matches!(&examined[0], ExaminedPython::Rejected(rejected) if rejected.python == root.join(".venv/bin/python"))
    );
    assert_eq!(works, Some(&launched(&launch).await.candidate));
}

#[tokio::test]
async fn k19_the_runner_survives_a_sweeper_and_old_pythons_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let swept = folder.path().join("cache");
    let mut launch = RunnerLaunch::new(search(folder.path()), &swept);
    launch.search.explicit = Some(python());
    // Whoever runs writes bytecode there: nobody may, or the folder is not empty when it is to go.
    let run = async |code: &str| {
        let launched = launched(&launch).await;
        let result = result(&launched, code).await;
        launched.kernel.shutdown().await;
        end_of(launched.python.pid).await;
        result
    };
    assert_eq!(run("0").await, "0");
    fs::remove_dir_all(&swept).unwrap();
    assert_eq!(run("1").await, "1");
    // Half of it: the newest file cut short.
    let file = walk(&swept).into_iter().find(|file| file.ends_with("cells.py")).unwrap();
    fs::write(&file, "").unwrap();
    assert_eq!(run("2").await, "2");

    // One that answers like an old Python, and those this machine has.
    let old = folder.path().join("python2");
    script(&old, "#!/bin/sh\necho '{\"type\":\"ready\",\"error\":\"needs Python 3.8\"}' >&4\nexit 1\n");
    let olds = ["2.", "3.6.", "3.7."].into_iter().flat_map(pyenv_pythons).chain([old]);
    for old in olds {
        launch.search.explicit = Some(old);
        let error = launch.start().await.unwrap_err();
        let LaunchError::Explicit { rejected } = &error else { panic!("{error}") };
        assert!(
            matches!(&rejected.why, Rejection::Unfit(why) if why.contains("needs Python 3.8")),
            "{error}"
        );
    }
}

#[tokio::test]
async fn every_supported_python_runs_cells() {
    let folder = tempfile::tempdir().unwrap();
    let mut pythons: Vec<PathBuf> =
        (8..=14).flat_map(|minor| pyenv_pythons(&format!("3.{minor}."))).collect();
    pythons.push(python());
    for python in pythons {
        let mut launch = RunnerLaunch::new(search(folder.path()), cache());
        launch.search.explicit = Some(python.clone());
        let launched = launched(&launch).await;
        let code = "import asyncio, sys\nprint('out'); print('err', file=sys.stderr)\nawait asyncio.sleep(0, 'awaited')";
        let ran = Ran::of(launched.kernel.execute(KernelCell::new(code)).await).await;
        assert_eq!(ran.sequence(), ["out out\n", "err err\n", "show 'awaited'"], "{}", python.display());
        let ran = Ran::of(launched.kernel.execute(KernelCell::new("1/0")).await).await;
        assert_eq!(ran.raised(), Some("ZeroDivisionError"), "{}", python.display());
        let hung =
            KernelCell { timeout: Some(Duration::from_millis(100)), ..KernelCell::new("while True: pass") };
        let ran = Ran::of(launched.kernel.execute(hung).await).await;
        assert!(matches!(ran.finished.outcome, Outcome::Stopped { .. }), "{}", python.display());
        assert!(launched.kernel.exit().is_none(), "{}", python.display());
        println!("ran cells: {} {}", launched.python.version, python.display());
    }
}

#[tokio::test]
async fn a_pyenv_shim_is_resolved_without_running_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let pyenv = root.join("pyenv");
    script(&pyenv.join("shims/python3"), "#!/bin/sh\nsleep 600\n");
    for version in ["3.9.1", "3.11.2", "3.11.10"] {
        fs::create_dir_all(pyenv.join("versions").join(version).join("bin")).unwrap();
        symlink(real_python(), pyenv.join("versions").join(version).join("bin/python3")).unwrap();
    }
    fs::write(pyenv.join("version"), "3.11\n").unwrap();
    let mut launch = RunnerLaunch::new(search(root), cache());
    launch.search.variables.insert("PATH".into(), pyenv.join("shims").into());
    let global = launched(&launch).await;
    assert_eq!(global.candidate.python, pyenv.join("versions/3.11.10/bin/python3"));
    assert_eq!(global.candidate.origin, PythonOrigin::Pyenv);
    assert_eq!(global.rejected.len(), 0);
    fs::write(root.join(".python-version"), "3.9.1\n").unwrap();
    let local = launched(&launch).await;
    assert_eq!(local.candidate.python, pyenv.join("versions/3.9.1/bin/python3"));
}

#[tokio::test]
async fn a_python_that_was_named_is_the_only_one_tried() {
    let folder = tempfile::tempdir().unwrap();
    make_venv(&folder.path().join(".venv"));
    let mut launch = RunnerLaunch::new(search(folder.path()), cache());
    for (named, message) in [
        ("/no/such/python", "`/no/such/python` cannot run cells: there is no such program"),
        ("no-such-python", "`no-such-python` cannot run cells: there is no such program"),
    ] {
        launch.search.explicit = Some(named.into());
        assert_eq!(launch.start().await.unwrap_err().to_string(), message);
    }
    launch.search.explicit = Some(".venv".into());
    assert_eq!(launched(&launch).await.candidate.origin, PythonOrigin::Explicit);
}

#[tokio::test]
async fn a_folder_whose_name_is_not_text_can_be_worked_in() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&odd).unwrap();
    let mut launch = RunnerLaunch::new(search(&odd), cache());
    launch.search.explicit = Some(python());
    assert_eq!(result(&launched(&launch).await, "import os; os.getcwdb()[-4:]").await, r"b'caf\xe9'");
}

#[tokio::test]
async fn without_any_python_the_error_says_what_was_tried() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(".venv/bin")).unwrap();
    symlink("/no/such/python", folder.path().join(".venv/bin/python")).unwrap();
    let mut launch = RunnerLaunch::new(search(folder.path()), cache());
    launch.search.variables.insert("PATH".into(), "/no/such/folder".into());
    let message = launch.start().await.unwrap_err().to_string();
    assert!(message.starts_with("no working Python found; `"), "{message}");
    assert!(message.contains("link leads nowhere") && message.ends_with("or name one"), "{message}");
    launch.search.cwd = "/no/such/folder".into();
    assert_eq!(launch.start().await.unwrap_err().to_string(), "`/no/such/folder` is not a folder to run in");
}

#[tokio::test]
async fn k24_a_kernel_sees_what_it_needs_and_no_secrets() {
    let fixture = Fixture::start_with(|launch| {
        for (name, value) in [
            ("SSL_CERT_FILE", "/certs"),
            ("TZ", "UTC"),
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("HTTPS_PROXY", "http://proxy"),
            ("MY_SETTING", "1"),
            ("OPENAI_API_KEY", "secret"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("RANDOM", "x"),
        ] {
            launch.search.variables.insert(name.into(), value.into());
        }
        launch.rules.allow.push("MY_*".into());
        launch.setup.env.insert("INJECTED".into(), Some("yes".into()));
        launch.setup.env.insert("TZ".into(), None);
    })
    .await;
    let code = "import os\nfor name, value in os.environ.items(): print(name, value)";
    let seen = fixture.stdout(code).await;
    for line in [
        "CUDA_VISIBLE_DEVICES 0",
        "HTTPS_PROXY http://proxy",
        "INJECTED yes",
        "MY_SETTING 1",
        "SSL_CERT_FILE /certs",
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line} is missing in\n{seen}");
    }
    assert!(!seen.contains("secret") && !seen.contains("RANDOM ") && !seen.contains("TZ "), "{seen}");
}

#[tokio::test]
async fn the_setup_is_done_before_the_first_cell() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("broken.py");
    fs::write(&module, "x = 1\nx = undefined\n").unwrap();
    let mut fixture = Fixture::start_with(|launch| {
        launch.setup.path.push("/some/where".into());
        launch.setup.modules.push(cellwright_kernel::Module { name: "broken".into(), path: module.clone() });
    })
    .await;
    let cwd = fs::canonicalize(fixture.folder.path()).unwrap();
    assert_eq!(
        fixture.stdout("import os, sys\nprint(os.getcwd(), sys.path[0])").await,
        format!("{} /some/where\n", cwd.display())
    );
    let warning = fixture.background.next().await.unwrap();
    let Event::Warning(warning) = warning else { panic!("{warning:?}") };
    assert!(warning.contains("broken.py") && warning.contains("line 2"), "{warning}");
}

/// A kernel that loads a module with this source, and the folder the module is in.
async fn with_module(source: &str) -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m8.py");
    fs::write(&path, source).unwrap();
    let fixture = Fixture::start_with(|launch| {
        launch.modules_within = Duration::from_millis(300);
        launch.setup.modules.push(cellwright_kernel::Module { name: "m8".into(), path });
    });
    (fixture.await, folder)
}

#[tokio::test]
async fn a_module_that_does_not_end_is_named_and_the_cell_runs() {
    let (mut fixture, _folder) = with_module("while True: pass").await;
    assert_eq!(fixture.stdout("print(1)").await, "1\n");
    let warning = fixture.background.next().await.unwrap();
    let Event::Warning(warning) = warning else { panic!("{warning:?}") };
    assert!(warning.starts_with("module `m8` was not loaded: KeyboardInterrupt"), "{warning}");
}

#[tokio::test]
async fn a_module_that_ends_the_kernel_is_named() {
    let (fixture, _folder) = with_module("import os; os._exit(9)").await;
    let Outcome::Died(death) = fixture.run("1").await.finished.outcome else { panic!("it lives") };
    assert_eq!(death.exit.to_string(), "the kernel exited with code 9 while it loaded the module `m8`");
}

#[tokio::test]
async fn the_managed_environment_is_made_with_python_and_found() {
    let folder = tempfile::tempdir().unwrap();
    let venv = folder.path().join("managed");
    let mut launch = RunnerLaunch::new(search(folder.path()), cache());
    launch.search.variables.insert("PATH".into(), "/usr/bin:/bin".into());
    // A real environment but for pip, which takes half a minute to unpack.
    let quick = folder.path().join("python-without-pip");
    script(&quick, &format!("#!/bin/sh\nexec {} \"$@\" --without-pip\n", real_python().display()));
    let made = create_managed(&launch.search, &venv, Some(&quick), &[]).await.unwrap();
    assert_eq!(made, venv.join("bin/python"));
    launch.search.managed = Some(venv);
    assert_eq!(launched(&launch).await.candidate.origin, PythonOrigin::Managed);
}

#[tokio::test]
async fn the_managed_environment_is_made_with_uv_if_possible_and_failures_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut search = search(folder.path());
    let tools = folder.path().join("tools");
    search.variables.insert("PATH".into(), format!("{}:/usr/bin:/bin", tools.display()).into());
    let log = folder.path().join("log");
    script(&tools.join("uv"), &format!("#!/bin/sh\necho \"$@\" >>{}\n", log.display()));
    let venv = folder.path().join("managed");
    create_managed(&search, &venv, None, &["ipython".into()]).await.unwrap();
    let expected =
        format!("venv --clear --seed {0}\npip install --python {0}/bin/python ipython\n", venv.display());
    assert_eq!(fs::read_to_string(&log).unwrap(), expected);

    script(&tools.join("uv"), "#!/bin/sh\necho no space left >&2\nexit 2\n");
    let error = create_managed(&search, &venv, None, &[]).await.unwrap_err();
    assert_eq!(error.to_string(), "`uv venv` exited with code 2, saying: no space left");
    fs::remove_file(tools.join("uv")).unwrap();
    let error = create_managed(&search, &venv, None, &[]).await.unwrap_err();
    assert!(error.to_string().starts_with("neither `uv` nor a Python was found"), "{error}");
}

#[tokio::test]
async fn what_uv_chose_for_a_project_is_used() {
    let folder = tempfile::tempdir().unwrap();
    make_venv(&folder.path().join("chosen"));
    let tools = folder.path().join("tools");
    script(
        &tools.join("uv"),
        &format!("#!/bin/sh\necho {}\n", folder.path().join("chosen/bin/python").display()),
    );
    let mut launch = RunnerLaunch::new(search(folder.path()), cache());
    launch.search.variables.insert("PATH".into(), tools.into());
    fs::write(folder.path().join("uv.lock"), "").unwrap();
    let launched = launched(&launch).await;
    assert_eq!(launched.candidate.origin, PythonOrigin::Uv);
}

/// The Pythons of this machine's pyenv.
fn pyenv_pythons(prefix: &str) -> Vec<PathBuf> {
    let Some(home) = std::env::var_os("HOME") else { return Vec::new() };
    let Ok(entries) = fs::read_dir(PathBuf::from(home).join(".pyenv/versions")) else { return Vec::new() };
    let versions = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    versions.map(|entry| entry.path().join("bin/python")).filter(|python| python.exists()).collect()
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .flatten()
        .flat_map(|entry| if entry.path().is_dir() { walk(&entry.path()) } else { vec![entry.path()] })
        .collect()
}
