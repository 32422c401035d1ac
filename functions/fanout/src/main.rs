//! Runs when records arrive in the table's stream.

fn main() {}
