//! Build dependencies are only considered where there is a build script.

fn main() {}
