use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use cellwright_jupyter::{InterruptMode, JupyterEnvironment, KernelSpec, PythonPrefix, SpecError};
use serde_json::Value;

use crate::python::{interpreter, prefix, script};

/// Compares with `jupyter_core` run by an interpreter with these variables and no others.
#[track_caller]
fn check(interpreter: &Path, is_environment: bool, variables: &[(&str, &str)]) {
    let home = tempfile::tempdir().expect("a folder");
    let packages = prefix().join("lib");
    let packages = std::fs::read_dir(packages).expect("lib").flatten().next().expect("pythonX.Y").path();
    let output = Command::new(interpreter)
        .arg(script("paths.py"))
        .env_clear()
        .env("HOME", home.path())
        .env("PYTHONPATH", packages.join("site-packages"))
        .envs(variables.iter().copied())
        .output()
        .expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let theirs: Value = serde_json::from_slice(&output.stdout).expect("JSON");

    let variables: BTreeMap<_, _> = variables.iter().copied().collect();
    let prefix = PathBuf::from(theirs["prefix"].as_str().expect("a path"));
    let ours = JupyterEnvironment {
        variable: &|name| variables.get(name).map(OsString::from),
        home: home.path().into(),
        prefixes: vec![PythonPrefix { path: prefix, is_environment }],
    };
    let mut expected: Vec<_> = theirs["kernels"].as_array().expect("paths").iter().collect();
    // We search a folder once.
    let mut seen = std::collections::BTreeSet::new();
    expected.retain(|path| seen.insert(path.to_string()));
    let ours_kernels: Vec<_> =
        ours.kernel_path().iter().map(|path| Value::from(path.to_string_lossy())).collect();
    assert_eq!(ours_kernels.iter().collect::<Vec<_>>(), expected, "{variables:?}");
    assert_eq!(Value::from(ours.runtime_dir().to_string_lossy()), theirs["runtime"], "{variables:?}");
}

#[test]
fn kernels_are_searched_where_jupyter_core_searches() {
    let outside = interpreter().canonicalize().expect("the base interpreter");
    let tables: &[&[(&str, &str)]] = &[
        &[],
        &[("JUPYTER_PATH", "/one:/two/"), ("JUPYTER_DATA_DIR", "/data")],
        &[("JUPYTER_PREFER_ENV_PATH", "1"), ("XDG_DATA_HOME", "/xdg")],
        &[("JUPYTER_PREFER_ENV_PATH", "no"), ("JUPYTER_RUNTIME_DIR", "/run/j")],
        &[("JUPYTER_PLATFORM_DIRS", "1"), ("XDG_DATA_DIRS", "/a/share:/b/share")],
        &[("PYTHONUSERBASE", "/base"), ("IPYTHONDIR", "/ipython")],
    ];
    for variables in tables {
        check(&interpreter(), true, variables);
        check(&outside, false, variables);
    }
}

/// Installs a kernelspec in a folder and returns the folder.
fn install(kernels: &Path, name: &str, text: &str) -> PathBuf {
    let folder = kernels.join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("kernel.json"), text).expect("a file");
    folder
}

#[test]
fn the_first_folder_wins_and_case_does_not_matter() {
    let root = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first", "second"].map(|name| root.path().join(name));
    let spec = |language: &str| format!(r#"{{"argv": [], "display_name": "x", "language": "{language}"}}"#);
    install(&second, "shared", &spec("loses"));
    install(&first, "Shared", &spec("wins"));
    install(&second, "broken", "{");
    std::fs::create_dir(second.join("no-kernel")).expect("a folder");
    let path = [root.path().join("missing"), first, second];

    assert_eq!(KernelSpec::find(&path, "SHARED").expect("found").description.language, "wins");
    assert!(matches!(KernelSpec::find(&path, "broken"), Err(SpecError::Malformed { .. })));
    let missing = KernelSpec::find(&path, "ruby").expect_err("not there").to_string();
    assert_eq!(missing, "no kernel named `ruby`; installed: broken, shared");
    let all = KernelSpec::all(&path);
    assert_eq!(all.keys().collect::<Vec<_>>(), ["broken", "shared"]);
    assert!(all["broken"].is_err());
}

#[test]
fn placeholders_and_variables_are_filled_in_once_and_unknown_ones_stay() {
    let root = tempfile::tempdir().expect("a folder");
    let text = r#"{
        "argv": ["{prefix}/bin/k", "-f", "{connection_file}", "--at={resource_dir}", "{other} {"],
        "display_name": "K", "language": "k", "interrupt_mode": "message", "newer": 1,
        "env": {"A": "${HOME}/x:$HOME", "B": "$$5 ${MISSING} $MISSING ${", "C": "{connection_file}"},
        "metadata": {"supported_encryption": "curve"}
    }"#;
    let folder = install(root.path(), "k", text);
    let spec = KernelSpec::load(&folder).expect("valid");
    let command = spec.command(Path::new("/run/{prefix}.json"), Some(Path::new("/opt")));
    let resource = format!("--at={}", folder.display());
    assert_eq!(command, ["/opt/bin/k", "-f", "/run/{prefix}.json", &resource, "{other} {"]);
    let environment = spec.environment(|name| (name == "HOME").then(|| "/h$X".to_owned()));
    let expected = [("A", "/h$X/x:/h$X"), ("B", "$5 ${MISSING} $MISSING ${"), ("C", "{connection_file}")];
    assert_eq!(environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(spec.description.interrupt_mode, InterruptMode::Message);
    assert_eq!(spec.supported_encryption(), Some(&Value::from("curve")));
    assert_eq!(spec.description.extra["newer"], 1);
}
