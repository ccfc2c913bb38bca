//! What must hold for every notebook: over generated ones, over the committed corpus, over mangled files.

mod corpus;
mod generated;
mod law;
