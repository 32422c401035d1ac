//! A client of a tenant: one random action after the other.

use super::service::Service;
use super::tenant::Tenant;
use super::{assets, lists, processes, users};
use crate::faulty_table::SeededRandom;
use std::time::Duration;
use tokio::time::sleep;

/// The time from the beginning of a write to a list that is to see it half done, in milliseconds.
const LIST_DELAY_MILLIS: u64 = 60;

/// Twice in three times, lists assets during the action.
async fn beside_a_list(service: &Service, tenant: &Tenant, random: &SeededRandom, action: impl Future<Output = ()>) {
    let list = async {
        if random.below(3) > 0 {
            sleep(Duration::from_millis(random.below(LIST_DELAY_MILLIS))).await;
            lists::list_assets(service, tenant, random).await;
        }
    };
    futures_util::join!(action, list);
}

/// Sends traffic until the simulation is over.
pub async fn run(service: &Service, tenant: &Tenant, random: SeededRandom, number: usize) {
    while !service.is_over() {
        service.wait_while_idle().await;
        match random.below(27) {
            0..5 => beside_a_list(service, tenant, &random, assets::create(service, tenant, &random)).await,
            5..7 => beside_a_list(service, tenant, &random, assets::change(service, tenant, &random)).await,
            7 => assets::change_at_once(service, tenant, &random).await,
            8 | 9 => beside_a_list(service, tenant, &random, assets::delete(service, tenant, &random)).await,
            10 => assets::read(service, tenant, &random).await,
            11..15 => processes::start(service, tenant, &random).await,
            15..18 => processes::advance_or_cancel(service, tenant, &random).await,
            18 => users::write(service, tenant, &random).await,
            19 => lists::list_users(service, tenant).await,
            20 => lists::list_instances(service, tenant, &random).await,
            21..24 => assets::verify_history(service, tenant, &random).await,
            _ => lists::list_assets(service, tenant, &random).await,
        }
        // Sometimes all clients of an instance are silent for a while.
        let longest = if random.below(10) == 0 { 12_000 } else { 2_000 };
        sleep(Duration::from_millis(random.below(longest) + number as u64)).await;
    }
}
