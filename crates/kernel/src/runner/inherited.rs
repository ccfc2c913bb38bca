//! What a runner inherited of its caller's environment, for calls that come with another one.

use std::collections::BTreeSet;

use crate::environment::{EnvVars, VariableRules};
use crate::setup::Setup;

/// Variables that say which Python runs and where: the kernel's own are right for every caller.
const KERNELS_OWN: &[&str] = &["PATH", "PWD", "VIRTUAL_ENV"];
const KERNELS_OWN_PREFIXES: &[&str] = &["CONDA_", "PYTHON"];

/// What the kernel was started with.
#[derive(Debug)]
pub(super) struct InheritedVariables {
    variables: EnvVars,
    rules: VariableRules,
    /// What we set for the kernel ourselves.
    set: BTreeSet<String>,
}

impl InheritedVariables {
    pub(super) fn new(variables: &EnvVars, rules: &VariableRules, setup: &Setup) -> Self {
        Self { variables: variables.clone(), rules: rules.clone(), set: setup.env.keys().cloned().collect() }
    }

    /// Leaves what a cell of this caller has to find set: what may pass and differs from what the kernel has.
    pub(super) fn keep_what_differs(&self, variables: &mut EnvVars) {
        variables.retain(|name, value| {
            self.variables.get(name) != Some(value)
                && name.to_str().is_some_and(|name| self.rules.passes(name) && !self.is_kernels_own(name))
        });
    }

    fn is_kernels_own(&self, name: &str) -> bool {
        self.set.contains(name)
            || KERNELS_OWN.contains(&name)
            || KERNELS_OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_gets_what_its_caller_has_and_the_kernel_does_not() {
        let variables =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let setup = Setup { env: [("PI_SESSION_FILE".into(), None)].into(), ..Setup::default() };
        let started = variables(&[("LANG", "C"), ("TZ", "UTC"), ("PATH", "/bin"), ("HOME", "/a")]);
        let inherited = InheritedVariables::new(&started, &VariableRules::default(), &setup);
        let mut called = variables(&[
            ("LANG", "de_DE"),
            ("TZ", "UTC"),
            ("PATH", "/usr/bin"),
            ("PYTHONPATH", "/x"),
            ("MPLBACKEND", "agg"),
            ("API_TOKEN", "secret"),
            ("UNHEARD_OF", "1"),
            ("PI_SESSION_FILE", "/theirs"),
        ]);
        inherited.keep_what_differs(&mut called);
        assert_eq!(called, variables(&[("LANG", "de_DE"), ("MPLBACKEND", "agg")]));
    }
}
