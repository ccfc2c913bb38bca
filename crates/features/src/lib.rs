//! Nothing: its dependencies are the point. They name the features that the workspace as a whole enables of other people's
//! crates, and every crate's tests depend on it. So `-p one-crate` builds what `--workspace` has built already, instead of
//! fifty crates once more with fewer features. What is shipped does not depend on it.
//!
//! `scripts/features.py` writes the list.
