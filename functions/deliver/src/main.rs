//! Runs when messages arrive in the queue of deliveries.

fn main() {}
