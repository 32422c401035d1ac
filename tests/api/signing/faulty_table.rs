//! Several tabs, the maker of a link and somebody who revokes it, at random times on a faulty table: afterwards the link, its
//! process and the responses agree.

use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, signature_step, started, step};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, paused_runtime, sample};
use dev_server::faulty_table::Weaknesses;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Within this time the requests of a round are sent.
const ROUND_MILLIS: u64 = 150;
/// Within this time the link is revoked: a signature needs more calls, and shall win as often.
const REVOKED_MILLIS: u64 = 4 * ROUND_MILLIS;
/// By then, every index has caught up.
const CAUGHT_UP: Duration = Duration::from_secs(5);

/// The result of a round for a link and its process.
struct Outcome {
    is_revoked: bool,
    /// A submission of the link's last step got a 200.
    is_signed: bool,
}

async fn play(api: &Api, client: &Client, path: &str, link: &Link, random: &mut fastrand::Rng) -> Outcome {
    let mut within = |millis| sleep(Duration::from_millis(random.u64(0..millis)));
    let tabs = [api.replica(0, 1 << 20), api.replica(-700, 1 << 20)].map(|replica| replica.client(&link.signer(client)));
    let submit = async |wait: tokio::time::Sleep, tab: &Client, data: Value, through: &str| {
        wait.await;
        tab.sign(json!({"step_data": data, "through": through})).await
    };
    let note = || json!({"note": "n"});
    let both = || json!({"note": "n", "sign": SIGNATURE});
    let revokes = async |wait: tokio::time::Sleep| {
        wait.await;
        client.delete(&link.path).await
    };
    let advances = async |wait: tokio::time::Sleep| {
        wait.await;
        client.post(&format!("{path}/advance"), json!({"step_data": {"note": "n"}, "current_step": 0})).await
    };
    let opens = async |wait: tokio::time::Sleep, tab: &Client| {
        wait.await;
        tab.get("/sign/session").await
    };
    let (first, second, third, revoked, ..) = tokio::join!(
        submit(within(ROUND_MILLIS), &tabs[0], note(), "note"),
        submit(within(ROUND_MILLIS), &tabs[0], both(), "sign"),
        submit(within(ROUND_MILLIS), &tabs[1], both(), "sign"),
        revokes(within(REVOKED_MILLIS)),
        advances(within(ROUND_MILLIS)),
        opens(within(ROUND_MILLIS), &tabs[1]),
        opens(within(ROUND_MILLIS), &tabs[0]),
    );
    for reply in [&first, &second, &third] {
        assert!([200, 401, 409, 503].contains(&reply.status.as_u16()), "{}", reply.text());
    }
    let signed = [&second, &third].iter().filter(|reply| reply.status == 200).count();
    assert!(signed <= 1, "both tabs have signed");
    Outcome { is_revoked: revoked.status == 200, is_signed: signed == 1 }
}

async fn check(api: &Api, client: &Client, path: &str, link: &Link, outcome: &Outcome) {
    sleep(CAUGHT_UP).await;
    let chain = event_chain(api, client, id_of(path)).await;
    let shown = link.shown(client).await;
    let instance = client.get(path).await.data();
    assert_eq!(instance["current_step"], chain.len() - 1, "{instance}");
    let is_by_link = |event: &Value| event["actor"]["link_id"] == link.id.as_str();
    assert_eq!(shown["used_at"].is_string(), chain.get(2).is_some_and(is_by_link), "{shown}");
    assert!(!outcome.is_signed || shown["used_at"].is_string(), "{shown}");
    assert!(!outcome.is_revoked || shown["revoked_at"].is_string() || shown["used_at"].is_string(), "{shown}");
    let of_link = event_chain(api, client, &link.id).await;
    assert!((1..=4).contains(&of_link.len()), "{of_link:?}");
    if outcome.is_revoked || outcome.is_signed {
        let late = link.signer(client).sign(json!({"step_data": {"sign": SIGNATURE}, "through": "sign"})).await;
        late.problem(401, "UNAUTHORIZED");
        assert_eq!(client.get(path).await.data(), instance);
    }
}

#[test]
fn whatever_happens_at_once_a_link_and_its_process_agree() {
    let mut outcomes = [0; 4];
    for seed in sample(1..=12, 3) {
        paused_runtime().block_on(async {
            let weaknesses = Weaknesses { latency_millis: 15, ..Weaknesses::ordinary() };
            let api = Api::on_faulty_table(seed, weaknesses).await;
            let client = api.tenant().await;
            let mut random = fastrand::Rng::with_seed(seed);
            for _ in 0..8 {
                let path = started(&client, json!([step("text", "note"), signature_step(), step("text", "after")])).await;
                let link = Link::for_guest(&client, &path).await;
                let outcome = play(&api, &client, &path, &link, &mut random).await;
                check(&api, &client, &path, &link, &outcome).await;
                outcomes[usize::from(outcome.is_revoked) * 2 + usize::from(outcome.is_signed)] += 1;
            }
        });
    }
    let [_, _, revoked, revoked_after] = outcomes;
    assert!(revoked > 0 && revoked_after + outcomes[1] > 0, "{outcomes:?}");
}
