//! The runner transport on real Python: what users of systems like this one saw break, and does not
//! break here. Tests are named after `K` numbers where the list of hazards has one.

mod death;
mod language;
mod output;
mod start;
mod stop;
mod support;
mod waiting;
