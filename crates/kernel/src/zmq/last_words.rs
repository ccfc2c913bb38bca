//! What a kernel's standard error says about its end.

use cellwright_process::ChildProcess;

/// What kernels say at every start, whatever becomes of them. ipykernel's warning is about networks: we talk through the
/// loopback interface, signed, and through Unix sockets by default.
const NOISE: &[&str] = &["Kernel is running over TCP without encryption."];

/// The end of what the kernel wrote to its standard error, without what it writes at every start.
pub(super) fn last_words(child: &ChildProcess) -> String {
    telling(&child.stderr_tail())
}

fn telling(stderr: &str) -> String {
    let is_noise = |line: &&str| NOISE.iter().any(|noise| line.contains(noise));
    let lines: Vec<_> = stderr.lines().filter(|line| !is_noise(line)).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_kernel_says_is_left_out_and_the_rest_stays() {
        let warning =
            "[IPKernelApp] WARNING | Kernel is running over TCP without encryption. All communication …\n";
        assert_eq!(telling(warning), "");
        assert_eq!(
            telling(&format!("{warning}Fatal Python error\n\n  at <module>\n")),
            "Fatal Python error\n\n  at <module>"
        );
    }
}
