//! What a project may not undo: restrictions that the user has set.

use cellwright_tools::RunMode;
use toml::Value;

/// A setting that both set, as far as both permit. A project can restrict more, and never less.
pub(super) fn narrower(key: &str, user: &Value, project: Value) -> Value {
    let mode = |value: &Value| value.as_str().and_then(|word| word.parse::<RunMode>().ok());
    match key {
        "tools.mode" => match (mode(user), mode(&project)) {
            (Some(user), Some(project)) => user.and(project).to_string().into(),
            (None, _) | (_, None) => project, // refused before
        },
        "environment.deny" => {
            let patterns = |value: &Value| value.as_array().cloned().unwrap_or_default();
            let mut all = patterns(user);
            all.extend(patterns(&project).into_iter().filter(|pattern| !patterns(user).contains(pattern)));
            Value::Array(all)
        }
        // Others on the machine can read what passes through TCP.
        "kernel.link" if user.as_str() == Some("ipc") => user.clone(),
        _ => project,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_restrictions_hold_together() {
        let both =
            |key: &str, user: &str, project: &str| narrower(key, &user.into(), project.into()).to_string();
        assert_eq!(both("tools.mode", "edit-only", "both"), "\"edit-only\"");
        assert_eq!(both("tools.mode", "both", "py-only"), "\"py-only\"");
        assert_eq!(both("tools.mode", "py-only", "bash-only"), "\"edit-only\"");
        assert_eq!(both("kernel.link", "ipc", "tcp"), "\"ipc\"");
        assert_eq!(both("kernel.link", "auto", "tcp"), "\"tcp\"");
        assert_eq!(both("kernel.default", "runner", "gateway"), "\"gateway\"");
        let names = |names: &[&str]| Value::Array(names.iter().map(|name| (*name).into()).collect());
        let all = narrower("environment.deny", &names(&["A", "B"]), names(&["B", "C"]));
        assert_eq!(all, names(&["A", "B", "C"]));
    }
}
