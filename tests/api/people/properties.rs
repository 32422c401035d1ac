//! Random histories of several people, with erasures between the changes: every chain holds, nothing of an erased person is left,
//! and everything of others is as it was.

use crate::support::people::{items_with, steps};
use crate::support::processes::create_process;
use crate::support::property::{check, runtime};
use crate::support::samples::SIGNATURE;
use crate::support::signing::Link;
use crate::support::{Api, Client};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PEOPLE: usize = 3;

#[derive(Debug, Clone)]
enum Change {
    Rename(usize),
    /// By the key of one, for another.
    Assign(usize, usize),
    Note(usize),
    Return,
    /// One starts the process for another, who is picked, types and signs, through a link or not.
    Sign(usize, usize, bool),
    Cancel(usize),
    Erase(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let who = 0..PEOPLE;
    prop_oneof![
        2 => who.clone().prop_map(Change::Rename),
        3 => (who.clone(), who.clone()).prop_map(|(by, to)| Change::Assign(by, to)),
        3 => who.clone().prop_map(Change::Note),
        2 => Just(Change::Return),
        3 => (who.clone(), who.clone(), any::<bool>()).prop_map(|(by, to, link)| Change::Sign(by, to, link)),
        1 => who.clone().prop_map(Change::Cancel),
        2 => who.prop_map(Change::Erase),
    ]
}

struct Human {
    id: String,
    mark: String,
    client: Client,
    is_erased: bool,
}

struct World {
    api: Api,
    client: Client,
    people: Vec<Human>,
    asset: String,
    process: String,
    /// The user that has the asset, and whose notes it has.
    holder: Option<usize>,
    notes: Option<(usize, String)>,
    /// The texts in completed processes, by instance: whose, and what.
    typed: BTreeMap<String, (usize, String)>,
    count: usize,
}

impl World {
    async fn new() -> Self {
        let (api, client) = Api::with_tenant().await;
        let mut people = Vec::new();
        for n in 0..PEOPLE {
            let mark = format!("Mk{n}Person");
            let body = json!({"email": format!("{mark}@example.com"), "display_name": mark, "role": "technician"});
            let id = client.post("/users", body).await.id();
            let scopes = ["assets:read", "assets:write", "processes:read", "processes:write"];
            let key = json!({"name": format!("{mark} key"), "user_id": id, "scopes": scopes});
            let own = client.with_key_of(&client.post("/keys", key).await.data());
            people.push(Human { id, mark, client: own, is_erased: false });
        }
        let asset = client.asset(json!({"name": "Laptop"})).await;
        let process = create_process(&client, steps()).await;
        Self { api, client, people, asset, process, holder: None, notes: None, typed: BTreeMap::new(), count: 0 }
    }

    /// Unique, and with the mark of this person.
    fn text(&mut self, who: usize) -> String {
        self.count += 1;
        format!("{} text {}", self.people[who].mark, self.count)
    }

    async fn patch_asset(&self, client: &Client, body: Value) {
        client.patch(&format!("/assets/{}", self.asset), body).await.data();
    }

    async fn apply(&mut self, change: &Change) {
        let live = |who: usize| !self.people[who].is_erased;
        match *change {
            Change::Rename(who) if live(who) => {
                let name = self.text(who);
                self.client.patch(&format!("/users/{}", self.people[who].id), json!({"display_name": name})).await.data();
            }
            Change::Assign(by, to) if live(by) && live(to) => {
                let notes = self.text(to);
                let body = json!({"assigned_to": self.people[to].id, "notes": notes});
                self.patch_asset(&self.people[by].client, body).await;
                (self.holder, self.notes) = (Some(to), Some((to, notes)));
            }
            Change::Note(by) if live(by) => {
                let Some(to) = self.holder else { return };
                let notes = self.text(to);
                self.patch_asset(&self.people[by].client, json!({"notes": notes})).await;
                self.notes = Some((to, notes));
            }
            Change::Return => {
                self.patch_asset(&self.client, json!({"assigned_to": null})).await;
                self.holder = None;
            }
            Change::Sign(by, to, by_link) if live(by) && live(to) => self.sign(by, to, by_link).await,
            Change::Cancel(to) if live(to) => {
                let (asset, reason) = (self.client.asset(json!({"name": "x"})).await, self.text(to));
                let path = format!("/processes/{}/start", self.process);
                let instance = self.client.post(&path, json!({"asset_id": asset})).await.id();
                let path = format!("/processes/instances/{instance}");
                self.client.post(&format!("{path}/advance"), json!({"step_data": {"who": self.people[to].id}})).await.data();
                self.client.post(&format!("{path}/cancel"), json!({"reason": reason})).await.data();
            }
            Change::Erase(who) if live(who) => self.erase(who).await,
            _ => {}
        }
    }

    async fn sign(&mut self, by: usize, to: usize, by_link: bool) {
        let asset = self.client.asset(json!({"name": "x"})).await;
        let (starter, user) = (self.people[by].client.clone(), self.people[to].id.clone());
        let path = format!("/processes/{}/start", self.process);
        let instance = starter.post(&path, json!({"asset_id": asset})).await.id();
        let path = format!("/processes/instances/{instance}");
        let (note, story) = (self.text(to), self.text(to));
        starter.post(&format!("{path}/advance"), json!({"step_data": {"who": user}})).await.data();
        starter.post(&format!("{path}/advance"), json!({"step_data": {"note": note}})).await.data();
        let rest = [json!({"story": story}), json!({"sign": SIGNATURE})];
        let link = Link::create(&self.client, &path, json!({"signer": {"user_id": user}, "until": "sign"})).await;
        for data in rest {
            let body = json!({"step_data": data});
            let reply = if by_link {
                link.signer(&self.client).sign(body).await
            } else {
                starter.post(&format!("{path}/advance"), body).await
            };
            reply.data();
        }
        for data in [json!({}), json!({})] {
            self.client.post(&format!("{path}/advance"), json!({"step_data": data})).await.data();
        }
        // The process gives the asset to the person who is picked; an erasure would be refused.
        self.client.patch(&format!("/assets/{asset}"), json!({"assigned_to": null})).await.data();
        self.typed.insert(path, (to, note));
    }

    async fn erase(&mut self, who: usize) {
        if self.holder == Some(who) {
            self.patch_asset(&self.client, json!({"assigned_to": null})).await;
            self.holder = None;
        }
        let id = self.people[who].id.clone();
        self.client.patch(&format!("/users/{id}"), json!({"is_active": false})).await.data();
        self.api.advance_clock(60);
        let client =
            if who.is_multiple_of(2) { self.client.clone() } else { self.api.replica(1_000, 1 << 20).client(&self.client) };
        assert_eq!(client.post(&format!("/users/{id}/erase"), json!({})).await.data()["done"], true);
        self.people[who].is_erased = true;
    }

    async fn check(&self) {
        let store = self.api.store.tenant(self.client.tenant);
        assert_eq!(store.verify_chains(|_, _| {}).await.unwrap().broken_links, []);
        for human in &self.people {
            let left = items_with(&self.api, &human.mark).await;
            assert_eq!(left.is_empty(), human.is_erased, "{}: {left:?}", human.mark);
        }
        let notes = self.client.get(&format!("/assets/{}", self.asset)).await.data()["notes"].clone();
        if let Some((who, expected)) = &self.notes {
            assert_eq!(notes == **expected, !self.people[*who].is_erased, "{notes}");
        }
        for (path, (who, expected)) in &self.typed {
            let instance = self.client.get(path).await.data();
            assert_eq!(instance["step_data"]["note"] == **expected, !self.people[*who].is_erased, "{instance}");
        }
    }
}

#[test]
fn erasures_take_everything_of_one_and_nothing_of_others() {
    check(&runtime(), 3, &vec(change(), 1..12), async |changes: Vec<Change>| {
        let mut world = World::new().await;
        for change in &changes {
            world.apply(change).await;
        }
        world.check().await;
        Ok(())
    });
}
