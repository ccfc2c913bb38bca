//! A shell that outlives us when we are killed, and ends the groups we started.
//!
//! One guard per process, started with the first child. It reads the groups to
//! watch from a pipe whose other end only we hold; when that end closes, however we died, it kills
//! what is still on its list, and the descendants of those groups that left them, as commands in a
//! session of their own do. Descendants that carry our mark in their environment are killed even when their
//! parents are gone. It runs in its own group and ignores polite signals, so a Ctrl-C or a
//! closing terminal does not take it first.

use std::collections::BTreeSet;
use std::io::{PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{io, thread};

/// Lines are `+GROUP`, `-GROUP` and `=MARK`. POSIX sh, its builtins and grep. Where there is no `/proc`, only
/// the groups end.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
PATH=/usr/bin:/bin
groups=' '
mark=
while read -r line; do
    group=${line#?}
    case $line in
        =*) mark=$group ;;
        +*) groups="$groups$group " ;;
        -*) case $groups in *" $group "*) groups="${groups%%" $group "*} ${groups#*" $group "}" ;; esac ;;
    esac
done
# The system closes our pipe before it takes the children from the process that dies. A group that is stopped when it
# loses its last parent of the session is sent HUP and CONT: its leader would end, and nobody could be found by it.
# So we wait until we have another parent ourselves. Where this cannot be seen, or takes long, we go on.
host=$1
tries=0
while [ $tries -lt 500 ] && read -r line 2>/dev/null </proc/self/stat; do
    set -- ${line##*) } # state, parent
    [ "$2" = "$host" ] || break
    tries=$((tries + 1))
    [ $tries -lt 50 ] || sleep 0.01 2>/dev/null || sleep 1
done
# Nothing starts or ends while the descendants are looked for.
for group in $groups; do kill -STOP "-$group" 2>/dev/null; done
members=' '
strayed=' '
found=yes
while [ "$groups" != ' ' ] && [ $found = yes ]; do
    found=no
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <"$stat" || continue
        pid=${line%% *}
        set -- ${line##*) } # state, parent, group
        case "$groups$strayed" in *" $pid "*) continue ;; esac
        case "$groups" in *" $3 "*) group=yes ;; *) group=no ;; esac
        case "$groups$strayed$members" in
            *" $2 "*) ;;
            *) [ $group = yes ] || continue ;;
        esac
        if [ $group = yes ]; then
            case "$members" in *" $pid "*) continue ;; esac
            members="$members$pid "
        else
            kill -STOP "$pid" 2>/dev/null
            strayed=" $pid$strayed"
        fi
        found=yes
    done
done
# Children before their parents, for the same reason.
for pid in $strayed; do kill -9 "$pid" 2>/dev/null; done
for group in $groups; do kill -9 "-$group" 2>/dev/null; done
# An agent that ends by itself when we die may be gone before its group was stopped. What it left running has no
# parent to be found by, but still our mark.
for round in 1 2 3 4 5; do
    [ -n "$mark" ] || break
    left=$(grep -lsF -- "$mark" /proc/[0-9]*/environ)
    [ -n "$left" ] || break
    for file in $left; do
        pid=${file#/proc/}
        kill -9 "${pid%/environ}" 2>/dev/null
    done
done
"#;

/// The environment variable that carries the mark of the process that started a child.
pub(crate) const MARK_VARIABLE: &str = "CELLWRIGHT_HOST_MARK";

/// What marks the descendants of this process, and of no other.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", process::id(), since.as_nanos())
});

static GUARD: Mutex<OrphanGuard> =
    Mutex::new(OrphanGuard { groups: BTreeSet::new(), is_marking: false, pipe: None });

struct OrphanGuard {
    groups: BTreeSet<u32>,
    /// Some child carries the mark.
    is_marking: bool,
    pipe: Option<PipeWriter>,
}

/// Makes the guard kill every process that has the returned mark in its environment if we die.
pub(crate) fn mark() -> &'static str {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if !guard.is_marking {
        guard.is_marking = true;
        guard.send(&mark_line());
    }
    &MARK
}

fn mark_line() -> String {
    format!("={MARK_VARIABLE}={}\n", *MARK)
}

/// Makes the guard kill `group` if we die.
pub(crate) fn watch(group: u32) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    guard.groups.insert(group);
    guard.send(&format!("+{group}\n"));
}

/// Takes `group` off the list. Call it before the group's leader is reaped: from then on its number
/// may belong to strangers.
pub(crate) fn forget(group: u32) {
    let mut guard = GUARD.lock().unwrap_or_else(PoisonError::into_inner);
    if guard.groups.remove(&group) {
        guard.send(&format!("-{group}\n"));
    }
}

impl OrphanGuard {
    fn send(&mut self, line: &str) {
        let sent = self.pipe.as_mut().is_some_and(|pipe| pipe.write_all(line.as_bytes()).is_ok());
        if !sent {
            // The first group, or somebody killed the guard: a new one learns the whole list.
            let (groups, is_marking) = (&self.groups, self.is_marking);
            self.pipe = start()
                .and_then(|mut pipe| {
                    if is_marking {
                        pipe.write_all(mark_line().as_bytes())?;
                    }
                    groups.iter().try_for_each(|group| writeln!(pipe, "+{group}"))?;
                    Ok(pipe)
                })
                .ok();
        }
    }
}

/// Returns when the shell has the pipe: what is written from then on reaches it even if we are killed at once.
fn start() -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    let guard = Command::new("/bin/sh")
        .args(["-c", SCRIPT, "guard", &process::id().to_string()])
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(reader)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut guard = guard.inspect_err(|error| {
        tracing::warn!(%error, "no guard: if this process is killed, its children live on");
    })?;
    // Ends with the guard, which it reaps.
    thread::Builder::new().name("process-guard".into()).stack_size(128 * 1024).spawn(move || match guard
        .wait()
    {
        Ok(status) => tracing::warn!(%status, "the guard of child processes ended early"),
        Err(error) => tracing::warn!(%error, "the guard of child processes is not ours to wait for"),
    })?;
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use std::process::Child;

    use super::*;

    fn group() -> Child {
        Command::new("/bin/sleep").arg("600").process_group(0).spawn().expect("every system has it")
    }

    #[test]
    fn the_guard_ends_the_groups_on_its_list_and_no_others() {
        let (mut listed, mut forgotten, mut twice) = (group(), group(), group());
        let mut guard = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "guard", "0"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("every system has a shell");
        let lines = format!(
            "+{}\n+{1}\n+{2}\n-{1}\n-{2}\n+{2}\n-1{0}\n-77\n",
            listed.id(),
            forgotten.id(),
            twice.id()
        );
        guard.stdin.take().expect("piped").write_all(lines.as_bytes()).expect("it reads");
        assert!(guard.wait().expect("it ends").success());
        assert!(!listed.wait().expect("it was killed").success());
        assert!(!twice.wait().expect("it was killed").success());
        assert!(forgotten.try_wait().expect("it is ours").is_none());
        forgotten.kill().expect("it is ours");
        forgotten.wait().expect("it was killed");
    }
}
