//! Erasures whose calls fail, or that are killed at any point.

use crate::support::people::{MARK, erase, erase_all, items_with, leaves, person};
use crate::support::{Api, Disturbance, at_each_place};
use dev_server::faulty_table::Weaknesses;
use dev_server::faulty_table::planned::CallFailure;

#[tokio::test]
async fn an_erasure_can_end_anywhere_and_goes_on() {
    let case = async |place, way: Disturbance| {
        let (api, client) = Api::with_tenant().await;
        let ada = person(&client).await;
        leaves(&api, &client, &ada).await;
        let (_, is_disturbed) = way.at(&api, place, async || erase(&client, &ada.id).await).await;
        erase_all(&client, &ada.id).await;
        assert_eq!(items_with(&api, MARK).await, Vec::<String>::new(), "{way:?} at {place}");
        let verified = api.store.tenant(client.tenant).verify_chains(|_, _| {}).await.unwrap();
        assert_eq!(verified.broken_links, [], "{way:?} at {place}");
        is_disturbed
    };
    let failures = [CallFailure::TimedOutBefore, CallFailure::TimedOutAfter].map(Disturbance::Fails);
    at_each_place(&failures, 40, 3, case).await;
    at_each_place(&[Disturbance::IsDropped], 20, 2, case).await;
}

#[tokio::test(start_paused = true)]
async fn a_weak_table_only_delays_an_erasure() {
    let api = Api::on_faulty_table(7, Weaknesses::ordinary()).await;
    let client = api.tenant().await;
    let ada = person(&client).await;
    leaves(&api, &client, &ada).await;
    erase_all(&client, &ada.id).await;
    assert_eq!(items_with(&api, MARK).await, Vec::<String>::new());
}
