//! Races as texts, and how they are run.
//!
//! A line has a key, a colon and a value:
//!
//! - `race`: the name.
//! - `steps`: the keys of the process's steps. `sign` is a signature, all others are texts.
//! - `rounds`: how often the race is run, each time for a tenant of its own. In every other round, a signing link was opened
//!   before.
//! - `request`, `3 requests`: a request that is sent at once with the others, to function instances whose clocks differ.
//!   `late`, `early`: the second request is answered while the first one's transaction is on its way, or the last read of a dry
//!   run.
//! - `end`: the right answers, one for each request; or `one` for any of them and another for all `others`; or one for `all`.
//! - `then`: a request after this end, and its answer.
//! - `events`: how many events a record has. The chains of all records are checked.
//!
//! A request is `METHOD path body`; paths that begin with `/sign` take a signing link. `{asset}` stands for the ID of an asset
//! that is created for the race, and so on, but `{instance}` and `{link}` for paths. An answer is a status, perhaps the code of
//! an error, and members: `409 PROCESS_RUNNING instance_id={won}`. `a|b` stands for either, `*` for any text, `{won}` and
//! `{data}` for the ID and the data of a request that succeeded.

use crate::support::processes::{create_process, start, start_movement};
use crate::support::samples::SIGNATURE;
use crate::support::signing::{Link, id_of, signature_step, step};
use crate::support::table::history::event_chain;
use crate::support::{Api, Client, Reply};
use dev_server::invariants::violations;
use futures_util::future::join_all;
use serde_json::{Value, json};

/// By how many milliseconds the clocks of function instances differ.
const SKEWS: [i64; 4] = [0, 700, -900, 0];

/// Requests that contend, and the ways in which that may end.
#[derive(Default)]
struct Race {
    text: &'static str,
    name: &'static str,
    steps: &'static str,
    rounds: usize,
    requests: Vec<&'static str>,
    is_overtaken: bool,
    /// The answers of each end, and the requests after it.
    ends: Vec<(&'static str, Vec<&'static str>)>,
    events: Vec<(&'static str, usize)>,
}

/// Runs the races of a text.
pub async fn run(races: &'static str) {
    let api = Api::start().await;
    for text in races.split("\n\n") {
        let race = Race::parse(text);
        for round in 0..race.rounds {
            race.run(&api, round % 2 == 1).await;
        }
    }
}

impl Race {
    fn parse(text: &'static str) -> Self {
        let mut race = Self { text, rounds: 1, ..Self::default() };
        for line in text.trim().lines() {
            let (key, value) = line.split_once(": ").unwrap_or_else(|| panic!("no key: {line}"));
            match key {
                "race" => race.name = value,
                "steps" => race.steps = value,
                "rounds" => race.rounds = value.parse().unwrap(),
                "request" => race.requests.push(value),
                "late" | "early" => {
                    race.requests.push(value);
                    race.is_overtaken = true;
                }
                "end" => race.ends.push((value, Vec::new())),
                "then" => race.ends.last_mut().unwrap().1.push(value),
                "events" => {
                    let (record, count) = value.split_once(' ').unwrap();
                    race.events.push((record, count.parse().unwrap()));
                }
                _ => {
                    let count = key.strip_suffix(" requests").unwrap_or_else(|| panic!("unknown key: {line}"));
                    race.requests.extend(std::iter::repeat_n(value, count.parse().unwrap()));
                }
            }
        }
        assert!(!race.name.is_empty() && race.requests.len() > 1 && !race.ends.is_empty(), "incomplete: {text}");
        race
    }

    async fn run(&self, api: &Api, opens_link: bool) {
        let client = api.tenant().await;
        let mut round = Round::begin(&client, self).await;
        if opens_link && round.signer.key != client.key {
            round.signer.session().await;
        }
        let replies = round.send(api, self).await;
        round.won = replies.iter().find(|reply| reply.status.is_success()).map(Reply::data).unwrap_or_default();
        let (_, then) = self.ends.iter().find(|(answers, _)| round.ends_with(&replies, answers)).unwrap_or_else(|| {
            let answers: Vec<String> = replies.iter().map(|reply| format!("{} {}", reply.status, reply.text())).collect();
            panic!("{} must not end with {answers:#?}", self.name)
        });
        for reply in replies.iter().filter(|reply| !reply.status.is_success()) {
            reply.problem(reply.status.as_u16(), reply.json()["code"].as_str().unwrap());
        }
        for then in then {
            let (request, answer) = then.split_once(" -> ").unwrap();
            let reply = round.request(&client, request).await;
            assert!(round.fits(&reply, answer), "{}: {then}, but {} {}", self.name, reply.status, reply.text());
        }
        for (name, record) in &round.records {
            let chain = event_chain(api, &client, id_of(record)).await;
            let count = self.events.iter().find(|(counted, _)| counted == name).map_or(chain.len(), |(_, count)| *count);
            assert_eq!(chain.len(), count, "{}: events of the {name}", self.name);
        }
        let found = violations(&api.store.tenant(client.tenant), &api.dynamo, &api.table).await.unwrap();
        assert!(found.is_empty(), "{}: {found:?}", self.name);
    }
}

/// A round of a race: its clients, and the values of the names in its text.
struct Round<'a> {
    client: &'a Client,
    signer: Client,
    /// IDs or paths.
    records: Vec<(&'static str, String)>,
    /// The data of a request that succeeded.
    won: Value,
}

impl<'a> Round<'a> {
    /// Creates the records that the race names.
    async fn begin(client: &'a Client, race: &Race) -> Self {
        client.use_key_once().await;
        let names = |name: &str| race.text.contains(name);
        let asset = client.asset(json!({"name": "x"})).await;
        let mut records = Vec::new();
        if names("{user}") {
            records.push(("user", client.user("Ada").await));
        }
        if names("{model}") {
            let laptop = client.asset_type("Laptop", "LAP", "physical").await;
            records.push(("model", client.model("Dell", "XPS", &laptop).await));
            records.push(("screen", client.asset_type("Screen", "SCR", "physical").await));
            records.push(("other", client.post("/catalog/manufacturers", json!({"name": "Other"})).await.id()));
        }
        let mut signer = client.clone();
        if !race.steps.is_empty() {
            let steps = race.steps.split(' ').map(|key| if key == "sign" { signature_step() } else { step("text", key) });
            let process = create_process(client, steps.collect()).await;
            let signs = names("{link}") || names(" /sign/");
            if names("{instance}") || signs {
                let path = format!("/processes/instances/{}", start(client, &process, &asset).await);
                if signs {
                    let link = Link::for_guest(client, &path).await;
                    signer = link.signer(client);
                    records.push(("link", link.path));
                }
                records.push(("instance", path));
            }
            if names("{movement}") {
                let movement = start_movement(client, &process, &client.assets(2).await).await;
                records.push(("movement", movement["id"].as_str().unwrap().to_owned()));
            }
            records.push(("process", process));
        }
        records.push(("asset", asset));
        Self { client, signer, records, won: Value::Null }
    }

    fn resolved(&self, text: &str) -> String {
        let data = self.won.to_string();
        let others = [("won", self.won["id"].as_str().unwrap_or_default()), ("data", &data), ("signature", SIGNATURE)];
        let values = self.records.iter().map(|(name, record)| (*name, record.as_str())).chain(others);
        values.fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    async fn send(&self, api: &Api, race: &Race) -> Vec<Reply> {
        if race.is_overtaken {
            let mut last_call = "TransactWriteItems";
            if race.requests[0].contains("dry_run=true") {
                // Its second batch reads what its conditions are about.
                last_call = "BatchGetItem";
                api.faults.hold(last_call).release();
            }
            let (late, early) = (self.request(self.client, race.requests[0]), self.request(self.client, race.requests[1]));
            let (late, early) = api.faults.overtake(last_call, late, early).await;
            return vec![late, early];
        }
        let instances = SKEWS.map(|skew| api.replica(skew, 1 << 20).client(self.client));
        let requests = race.requests.iter().enumerate();
        join_all(requests.map(|(n, request)| self.request(&instances[n % SKEWS.len()], request))).await
    }

    async fn request(&self, client: &Client, request: &str) -> Reply {
        let mut parts = request.splitn(3, ' ');
        let (method, path, body) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or_default());
        let signer = client.with_key(&self.signer.key);
        let client = if path.starts_with("/sign/") { &signer } else { client };
        let content_type = (!body.is_empty()).then_some("application/json");
        client.send(method, &self.resolved(path), content_type, self.resolved(body)).await
    }

    fn ends_with(&self, replies: &[Reply], answers: &str) -> bool {
        if let Some((one, others)) = answers.strip_prefix("one ").and_then(|answers| answers.split_once(", others ")) {
            let ones = replies.iter().filter(|reply| self.fits(reply, one)).count();
            return ones == 1 && replies.iter().all(|reply| self.fits(reply, one) || self.fits(reply, others));
        }
        if let Some(all) = answers.strip_prefix("all ") {
            return replies.iter().all(|reply| self.fits(reply, all));
        }
        let answers: Vec<&str> = answers.split(", ").collect();
        answers.len() == replies.len() && replies.iter().zip(answers).all(|(reply, answer)| self.fits(reply, answer))
    }

    fn fits(&self, reply: &Reply, answer: &str) -> bool {
        let (status, rest) = answer.split_once(' ').unwrap_or((answer, ""));
        let body: Value = serde_json::from_slice(&reply.bytes).unwrap_or_default();
        status.split('|').any(|status| reply.status.as_str() == status)
            && rest.split_whitespace().all(|word| match word.split_once('=') {
                None => reply.status.is_success() || word.split('|').any(|code| body["code"] == code),
                Some((member, wanted)) => body.pointer(&format!("/{member}")).is_some_and(|value| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    text == self.resolved(wanted) || wanted == "*" && value.is_string()
                }),
            })
    }
}
