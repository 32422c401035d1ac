//! Two items of a transaction that are lost together.

use super::damage::{Damage, check_damage};
use super::processes::transactions;
use super::transaction::Transaction;
use crate::support::sample;

/// Damages pairs of a transaction's items: every fifth in the full run.
async fn check_each_pair(transaction: Transaction) {
    let damages = transaction.damages();
    let pairs = (0..damages.len()).flat_map(|first| (first + 1..damages.len()).map(move |second| (first, second)));
    let pairs = pairs.filter(|(first, second)| damages[*first].key != damages[*second].key);
    for (first, second) in sample(pairs.step_by(5), 2) {
        check_damage(&transaction, &[damages[first].clone(), damages[second].clone()] as &[Damage]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_start() {
    check_each_pair(transactions::start().await).await;
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_last_advance() {
    check_each_pair(transactions::last_advance().await).await;
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_cancellation() {
    check_each_pair(transactions::cancellation().await).await;
}

#[tokio::test(start_paused = true)]
async fn pairs_of_a_movement_start() {
    check_each_pair(transactions::movement_start().await).await;
}
