//! Transactions of which a restore has only a part: each item of each kind of transaction in turn is removed or put back to its
//! earlier state. The check must find it; a repair makes again what follows from the records, and touches nothing else.

mod caution;
mod damage;
mod parts;
mod processes;
mod records;
mod transaction;

use crate::support::sample;
use damage::{Damage, check_damage, check_undamaged};
use transaction::Transaction;

/// Items of a transaction that are damaged every day.
const SHORT: usize = 2;

/// Damages each item of a transaction in turn.
async fn check_each_item(transaction: Transaction) {
    check_undamaged(&transaction).await;
    for damage in sample(transaction.damages(), SHORT) {
        check_damage(&transaction, &[damage]).await;
    }
}

/// Makes a test of each kind of transaction: a function that commits it.
macro_rules! test_each_item {
    ($($kind:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $kind() {
            crate::table::repair::check_each_item(transactions::$kind().await).await;
        }
    )*};
}
use test_each_item;
