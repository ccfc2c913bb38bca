//! Our sockets, against libzmq's and against peers that break the rules.

mod hostile;
mod interop;
