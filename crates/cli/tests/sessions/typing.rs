//! `cellwright repl` as a person meets it.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cellwright_testkit::Door;

use super::UserHome;
use super::person::Person;

#[test]
fn code_is_edited_indented_and_run_and_a_name_is_completed_and_explained() {
    let home = UserHome::new();
    let mut person = Person::at(&home, &["repl"], &[]);
    // The body is indented by the editor, an empty line ends it.
    person.enters(1, "def twice(number):\rreturn 2 * numbr\x1b[De\x05\r");
    person.enters(2, "twice(21)");
    person.sees("\n42\nIn [");
    person.enters(3, "import sys");
    person.sees("In [4]:");
    person.types("sys.getrec\t");
    person.sees("In [4]: sys.getrecursionlimit");
    person.types("\x1bOP");
    person.sees("Return the current value of the recursion limit");
    person.types("\x03");
    person.enters(4, "twice?");
    person.sees("twice(number)\n");
    person.enters(5, "!echo $((6 * 7)) from a shell");
    person.sees("42 from a shell");
    person.enters(6, "%time 1");
    person.sees("Wall time");
    person.sees("In [7]:");
    person.types("\x04");
    assert_eq!(person.leaves(), 0);
}

#[test]
fn the_prompt_keeps_what_is_typed_while_a_thread_prints() {
    let (home, door) = (UserHome::new(), Door::new());
    let mut person = Person::at(&home, &["repl"], &[]);
    person.enters(1, "import threading");
    let late = format!(
        "def late(door={}):\rdoor.recv(1); door.send(b'.')\rprint('from', 'a thread'); print('and more', end='')\r\r",
        door.knock()
    );
    person.sees("In [2]:");
    person.types(&late);
    person.enters(3, "threading.Thread(target=late).start()");
    person.sees("In [4]:");
    person.types("x = 'half typed");
    person.sees("half typed");
    door.let_in_blocking();
    person.looks_until("both", |screen| screen.ends_with("from a thread\nand more\nIn [4]: x = 'half typed"));
    person.types("'; x\r");
    person.sees("\n'half typed'\nIn [");
}

#[test]
fn ctrl_c_interrupts_the_cell_and_keeps_variables_and_what_was_typed_ahead() {
    let (home, door) = (UserHome::new(), Door::new());
    let mut person = Person::at(&home, &["repl"], &[]);
    person.enters(1, "x = 5");
    person.enters(2, &format!("import time; {}; time.sleep(600)", door.knock()));
    door.knocked_blocking();
    person.types("x + 1\r\x03");
    person.sees("KeyboardInterrupt");
    person.sees("\n6\nIn [");
    // At the prompt it drops the text.
    person.sees("In [4]:");
    person.types("nonsense\x03");
    person.sees("^C");
    person.enters(4, "x + 2");
    person.sees("\n7\nIn [");
}

#[test]
fn input_getpass_and_pdb_ask_the_person() {
    let home = UserHome::new();
    let mut person = Person::at(&home, &["repl"], &[]);
    person.enters(1, "print('your', end=' '); name = input('name? ')");
    person.sees("your\nname?");
    person.types("Adx\x7fa\r");
    person.enters(2, "import getpass; len(getpass.getpass('secret? ')), name");
    person.sees("secret?");
    person.types("hunter2\r");
    person.sees("\n(7, 'Ada')\nIn [");
    assert!(!person.screen().contains("hunter"), "{}", person.screen());
    person.enters(3, "import pdb; pdb.run('y = 1\\nz = 2')");
    person.sees("(Pdb)");
    person.types("n\rp y + 40\r");
    person.sees("\n41\n");
    person.types("c\r");
    person.enters(4, "input()");
    person.looks_until("the question", |screen| screen.ends_with("input()"));
    person.types("\x04");
    person.sees("EOFError");
}

#[test]
fn a_narrower_window_shows_the_text_once() {
    let home = UserHome::new();
    let mut person = Person::at(&home, &["repl"], &[]);
    person.enters(1, "x = 1");
    person.sees("In [2]:");
    let text = "print('a text that is longer than half of a window')";
    person.types(text);
    person.sees(text);
    person.resizes(40);
    person.types(" # seen");
    person
        .looks_until("the text on two rows", |screen| screen.replace('\n', "").ends_with("window') # seen"));
    assert_eq!(person.screen().matches("In [2]:").count(), 1, "{}", person.screen());
    person.types("\r");
    person.sees("a text that is longer than half of a win");
}

#[test]
fn a_jupyter_kernel_is_typed_at_too() {
    let home = UserHome::new();
    let folder = home.work().join("kernels/spoken");
    fs::create_dir_all(&folder).unwrap();
    let spec = serde_json::json!({
        "argv": [cellwright_testkit::python(), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Spoken", "language": "spoken",
    });
    fs::write(folder.join("kernel.json"), spec.to_string()).unwrap();
    let variables = [("JUPYTER_PATH", home.work().to_str().unwrap().to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut person = Person::at(&home, &["repl", "--kernel", "jupyter:spoken"], &variables);
    person.enters(1, "def f():\rreturn 6 * 7\r");
    person.enters(2, "f()");
    person.sees("\n42\nIn [");
    person.enters(3, "name = input('who? ')");
    person.sees("who?");
    person.types("Ada\r");
    person.enters(4, "name");
    person.sees("\n'Ada'\nIn [");
}

#[test]
fn history_is_there_in_the_next_run_and_is_private() {
    let home = UserHome::new();
    let mut first = Person::at(&home, &["repl"], &[]);
    first.enters(1, "value = 20 + 3");
    first.sees("In [2]:");
    first.types("exit\r");
    assert_eq!(first.leaves(), 0);
    let mut second = Person::at(&home, &["repl"], &[]);
    second.sees("In [1]:");
    second.types("\x12+ 3");
    second.sees("(earlier `+ 3`) value = 20 + 3");
    second.types("\r");
    second.enters(2, "value");
    second.sees("\n23\nIn [");
    let file = home.folder.path().join(".local/state/cellwright/repl_history");
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_picture_reaches_the_terminal_byte_for_byte() {
    let home = UserHome::new();
    // Noise, so that it takes several of kitty's pieces.
    let draw = "import os, struct, zlib\n\
        part = lambda kind, data: struct.pack('>I', len(data)) + kind + data \\\n\
        \x20   + struct.pack('>I', zlib.crc32(kind + data))\n\
        rows = b''.join(b'\\0' + os.urandom(192) for _ in range(64))\n\
        open('plot.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', \\\n\
        \x20   struct.pack('>2I5B', 64, 64, 8, 2, 0, 0, 0)) + part(b'IDAT', zlib.compress(rows)) + part(b'IEND', b''))";
    let mut python = Command::new(cellwright_testkit::python());
    assert!(python.args(["-c", draw]).current_dir(home.work()).status().unwrap().success());
    let png = fs::read(home.work().join("plot.png")).unwrap();
    for (variables, drawn) in [
        (&[("TERM", "xterm-kitty")], kitty as fn(&str) -> Vec<u8>),
        (&[("TERM_PROGRAM", "iTerm.app")], iterm),
    ] {
        let mut person = Person::at(&home, &["repl"], variables);
        person.enters(1, "class Picture:\r_repr_png_ = lambda self: open('plot.png', 'rb').read()\r");
        person.enters(2, "Picture()");
        person.sees("In [3]:");
        assert_eq!(drawn(&String::from_utf8_lossy(&person.sent)), png);
    }
}

/// The picture in kitty's sequences.
fn kitty(sent: &str) -> Vec<u8> {
    let pieces = sent.split("\x1b_G").skip(1).map(|piece| piece.split("\x1b\\").next().unwrap());
    let data: String = pieces.map(|piece| piece.split_once(';').unwrap().1).collect();
    BASE64_STANDARD.decode(data).unwrap()
}

/// The picture in iTerm2's sequence.
fn iterm(sent: &str) -> Vec<u8> {
    let sequence = sent.split("\x1b]1337;File=").nth(1).unwrap().split('\x07').next().unwrap();
    BASE64_STANDARD.decode(sequence.split_once(':').unwrap().1).unwrap()
}

#[test]
fn the_session_is_saved_as_a_notebook_that_nbformat_accepts() {
    let home = UserHome::new();
    let mut person = Person::at(&home, &["repl"], &[]);
    person.enters(1, "print('hello')");
    person.enters(2, "6 * 7");
    person.enters(3, "1 / 0");
    person.sees("ZeroDivisionError");
    person.enters(4, "%save kept.ipynb");
    person.sees("saved 3 cells in kept.ipynb");
    let check = "import nbformat, sys\n\
                 nb = nbformat.read('kept.ipynb', 4); nbformat.validate(nb)\n\
                 print([(c.source, [o.output_type for o in c.outputs], c.execution_count) for c in nb.cells])";
    let mut python = Command::new(cellwright_testkit::python());
    let checked = python.args(["-c", check]).current_dir(home.work()).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&checked.stdout),
        "[(\"print('hello')\", ['stream'], 1), ('6 * 7', ['execute_result'], 2), ('1 / 0', ['error'], 3)]\n",
        "{}",
        String::from_utf8_lossy(&checked.stderr)
    );
    // Its own file it may replace, another one it leaves alone.
    person.enters(4, "8 * 8");
    person.enters(5, "%save kept.ipynb");
    person.sees("saved 4 cells in kept.ipynb");
    let other = fs::read_to_string(home.work().join("kept.ipynb")).unwrap().replace("hello", "bye");
    fs::write(home.work().join("other.ipynb"), other).unwrap();
    person.types("%save other.ipynb\r");
    person.sees("not saved: other.ipynb has cells already");
}

#[test]
fn lines_from_a_pipe_run_as_texts_that_belong_together() {
    let home = UserHome::new();
    let mut command = home.command(&["repl"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = "def f(x):\n    return x * 2\n\nf(4)\nname = input('who? ')\nAda\nname\n1 / 0\n'after'";
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let ended = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(ended.stdout).unwrap();
    assert!(stdout.starts_with("8\nwho? 'Ada'\nTraceback"), "{stdout}");
    assert!(stdout.contains("ZeroDivisionError: division by zero\n'after'\n"), "{stdout}");
    assert_eq!(ended.status.code(), Some(1), "a cell failed");
}

#[test]
fn the_prompt_is_there_before_a_kernel_that_never_starts() {
    let home = UserHome::new();
    let python = home.work().join("python3");
    fs::write(&python, "#!/bin/sh\nsleep 600\n").unwrap();
    fs::set_permissions(&python, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let begun = Instant::now();
    let mut person = Person::at(&home, &["repl", "--python", python.to_str().unwrap()], &[]);
    person.types("x = 1");
    person.sees("In [1]: x = 1");
    // A kernel has ten seconds and more to start.
    assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
    person.types("\x15\x04");
    assert_eq!(person.leaves(), 0);
}
