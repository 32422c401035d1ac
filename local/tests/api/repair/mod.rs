//! Transactions of which a restore has only a part: each item of each kind of transaction in turn is removed or put back
//! to what it was before. The check must find and repair it, and touch nothing else.

mod caution;
mod damage;
mod pairs;
mod parts;
mod processes;
mod records;
mod transaction;

use crate::support::full_tests;
use damage::{Damage, check_damage, check_undamaged};
use transaction::Transaction;

/// How many items of a transaction are damaged without `FULL_TESTS=1`.
const SHORT: usize = 4;

/// Damages each item of a transaction in turn.
async fn check_each_item(transaction: Transaction) {
    check_undamaged(&transaction).await;
    let damages = transaction.damages();
    let step = if full_tests() { 1 } else { damages.len().div_ceil(SHORT) };
    for damage in damages.into_iter().step_by(step) {
        check_damage(&transaction, &[damage]).await;
    }
}

/// Makes a test of each kind of transaction: a function that commits it.
macro_rules! test_each_item {
    ($($kind:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $kind() {
            crate::repair::check_each_item(transactions::$kind().await).await;
        }
    )*};
}
use test_each_item;
