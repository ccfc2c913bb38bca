//! What cells must not find.

use std::os::unix::fs::PermissionsExt as _;

use super::{SharedHost, shown};

#[test]
fn a_cell_cannot_read_the_variables_that_it_does_not_get_from_our_process() {
    let Some(host) = SharedHost::new() else { return };
    let probe = "import os\n\
                 def read(pid):\n\
                 \x20   try: return open(f'/proc/{pid}/environ', 'rb').read()\n\
                 \x20   except OSError as error: return type(error).__name__\n\
                 (read(os.getppid()), b'HOME=' in read(os.getpid()), os.environ.get('OPENAI_API_KEY'))";
    for session in [&[][..], &["--session", "s"]] {
        let arguments = [&["run"], session, &["-c", probe]].concat();
        let output = host.command(&arguments).env("OPENAI_API_KEY", "s3cret-key").output().unwrap();
        assert_eq!(
            shown(&output),
            (0, "('PermissionError', True, None)\n".into(), String::new()),
            "{session:?}"
        );
    }
}

#[test]
fn addresses_with_tokens_stay_here() {
    let code = "import os\n[name for name in os.environ if 's3cret' in os.environ[name]]";
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = std::process::Command::new(super::BINARY);
    command.args(["run", "-c", code]).env("HOME", home.path()).current_dir(home.path());
    command
        .env("CELLWRIGHT_GATEWAY_URL", "http://h/?token=s3cret")
        .env("CELLWRIGHT_AGENT_ARGS", "--key s3cret");
    command.env("JUPYTER_GATEWAY_HEADERS", "s3cret").env("PI_PYTHON_URL", "https://me:s3cret@h/x");
    command.env("CELLWRIGHT_KERNEL", "runner").env("CELLWRIGHT_NOTE", "about s3cret things");
    assert_eq!(shown(&command.output().unwrap()).1, "['CELLWRIGHT_NOTE']\n");
}
