//! What sessions promise, on scripted kernels and a paused clock.

mod background;
mod calls;
mod keeping;
mod recovery;
mod support;
