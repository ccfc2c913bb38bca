use std::os::unix::fs::PermissionsExt;

use cellwright_jupyter::{
    Channel, ConnectionFile, ConnectionFileError, ConnectionInfo, KernelClient, KernelFolder, MessageSession,
    ReservedAddresses, SocketTransport, UnsupportedConnection,
};
use serde_json::json;

#[test]
fn a_connection_file_is_private_keeps_what_it_does_not_know_and_goes() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("new/runtime");
    let mut info = ConnectionInfo::local(SocketTransport::Tcp, "127.0.0.1".into(), [1, 2, 3, 4, 5]);
    info.extra.insert("newer".into(), json!({"than": "us"}));
    let file = ConnectionFile::create(&folder, &info).expect("a file");
    let path = file.path().to_owned();
    assert_eq!(ConnectionInfo::read(&path).expect("readable"), info);
    let mode = |path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&folder)), (0o600, 0o700));
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 1, "no half-written file is left");
    drop(file);
    assert!(matches!(ConnectionInfo::read(&path), Err(ConnectionFileError::Read { .. })));
}

#[test]
fn a_file_with_the_least_in_it_is_read_and_endpoints_follow_the_transport() {
    let ports = json!({"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5});
    let mut info: ConnectionInfo = serde_json::from_value(ports).expect("enough");
    assert_eq!(info.endpoint(Channel::Iopub).to_string(), "tcp://127.0.0.1:2");
    assert_eq!((info.key.as_str(), info.signature_scheme.as_str()), ("", "hmac-sha256"));
    (info.transport, info.ip) = (SocketTransport::Ipc, "/run/kernel".into());
    assert_eq!(info.endpoint(Channel::Control).to_string(), "ipc:///run/kernel-4");
    assert_eq!(info.heartbeat_endpoint().to_string(), "ipc:///run/kernel-5");
}

#[test]
fn what_we_do_not_speak_is_refused_with_its_name() {
    let mut info = ConnectionInfo::local(SocketTransport::Tcp, "127.0.0.1".into(), [1, 2, 3, 4, 5]);
    info.extra.insert("curve_publickey".into(), json!("rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"));
    let refused = |info: &ConnectionInfo| KernelClient::connect(info, MessageSession::new("tests")).err();
    assert!(matches!(refused(&info), Some(UnsupportedConnection::Encryption)));
    info.extra.clear();
    info.signature_scheme = "hmac-md5".into();
    assert!(
        matches!(refused(&info), Some(UnsupportedConnection::SignatureScheme(scheme)) if scheme == "hmac-md5")
    );
}

#[test]
fn a_kernels_folder_is_private_and_goes_and_is_elsewhere_when_its_place_is_too_deep() {
    let root = tempfile::tempdir().expect("a folder");
    for deep in [false, true] {
        let parent = if deep { root.path().join("x".repeat(100)) } else { root.path().join("runtime") };
        let folder = KernelFolder::new_in(&parent).expect("made");
        let path = folder.path().to_owned();
        assert_eq!(path.starts_with(&parent), !deep);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);
        assert!(
            ReservedAddresses::ipc(&folder)
                .expect("short enough")
                .info
                .ip
                .starts_with(path.to_str().expect("text"))
        );
        drop(folder);
        assert!(!path.exists());
    }
}

#[test]
fn what_a_killed_process_left_is_swept_and_what_others_use_is_not() {
    let root = tempfile::tempdir().expect("a folder");
    let held = KernelFolder::new_in(root.path()).expect("made");
    let make = |name: &str, files: &[&str]| {
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).expect("made");
        for file in files {
            std::fs::write(folder.join(file), "key").expect("written");
        }
        folder
    };
    // As after a SIGKILL: the files are there, and the lock is free.
    let left = make("kAbC123", &["kernel-1.json", "s-1", "s-5"]);
    let others = [make("kernels", &["mine.txt"]), make("gateway", &["kernel-1.json"])];
    let _next = KernelFolder::new_in(root.path()).expect("made");
    assert!(!left.exists());
    assert!(
        held.path().exists() && others.iter().all(|folder| folder.read_dir().expect("there").count() == 1)
    );
}
