//! The agents that are known to speak ACP: how to start and how to install each.

/// A program that speaks ACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownAgent {
    /// Its name in settings and magics.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Its program, which is searched for in `PATH`.
    pub program: &'static str,
    /// The arguments with which it speaks ACP.
    pub args: &'static [&'static str],
    /// The command that installs it.
    pub install: &'static str,
}

const fn known(
    name: &'static str,
    title: &'static str,
    program: &'static str,
    args: &'static [&'static str],
    install: &'static str,
) -> KnownAgent {
    KnownAgent { name, title, program, args, install }
}

/// The known agents, in order of preference.
pub const KNOWN: &[KnownAgent] = &[
    known(
        "claude",
        "Claude Agent",
        "claude-agent-acp",
        &[],
        "npm install -g @agentclientprotocol/claude-agent-acp",
    ),
    known("codex", "Codex", "codex-acp", &[], "npm install -g @agentclientprotocol/codex-acp"),
    known("gemini", "Gemini CLI", "gemini", &["--acp"], "npm install -g @google/gemini-cli"),
    known("opencode", "OpenCode", "opencode", &["acp"], "npm install -g opencode-ai"),
    known("qwen", "Qwen Code", "qwen", &["--acp"], "npm install -g @qwen-code/qwen-code"),
    known("copilot", "GitHub Copilot CLI", "copilot", &["--acp"], "npm install -g @github/copilot"),
    known("fast-agent", "fast-agent", "fast-agent-acp", &[], "uv tool install fast-agent-mcp"),
];

/// The known agents whose programs are installed.
pub fn installed(is_installed: impl Fn(&str) -> bool) -> Vec<&'static KnownAgent> {
    KNOWN.iter().filter(|agent| is_installed(agent.program)).collect()
}

/// The help for a user without an agent.
pub fn guidance() -> String {
    let width = KNOWN.iter().map(|agent| agent.title.len()).max().unwrap_or(0);
    let rows = KNOWN.iter().map(|agent| format!("  {:width$}  {}\n", agent.title, agent.install));
    format!(
        "No agent was found. Install one that speaks ACP, for example:\n\n{}\n\
         It is found when its program is in PATH. For another agent, put this into your settings\n\
         (`cellwright config` says where they are):\n\n\
         \x20 [agents.mine]\n  command = \"my-agent\"\n  args = [\"--acp\"]\n\n\
         or try one in a cell: %agent config my-agent --acp\n",
        rows.collect::<Vec<_>>().concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_run_without_an_agent_explains_what_to_install() {
        assert!(KNOWN.iter().all(|agent| guidance().contains(agent.install)));
        let names: Vec<_> =
            installed(|program| ["gemini", "qwen"].contains(&program)).iter().map(|a| a.name).collect();
        assert_eq!(names, ["gemini", "qwen"]);
    }
}
