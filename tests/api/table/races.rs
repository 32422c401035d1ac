//! Concurrent requests: no change is lost, unique values are given once, and exactly one contender succeeds.
//!
//! Races are written as text. Each line has a key, a colon and a value:
//!
//! - `race`: the name.
//! - `steps`: the keys of the process's steps. `sign` is a signature, and the others are texts.
//! - `rounds`: number of runs, each with a new tenant. The daily run uses a sample of races, at most twice each. In every other
//!   round, a signing link has been opened before.
//! - `request`, `3 requests`: requests that are sent concurrently to function instances with different clocks. `late`, `early`:
//!   the second request completes while the first one's transaction, or the last read of a dry run, is in flight.
//! - `end`: the expected responses, one per request; or `one` for any one of them and a different one for all `others`; or one
//!   for `all`.
//! - `then`: a request after this end, and its response.
//! - `events`: a record's number of events. The chains of all records are checked.
//!
//! A request is `METHOD path body`; paths with `/sign` use a signing link. `{asset}` stands for the ID of an asset created for
//! the race, and so on, but `{instance}` and `{link}` for paths. A response is a status, an optional error code, and members:
//! `409 PROCESS_RUNNING instance_id={won}`. `a|b` stands for either, `*` for any text, `{won}` and `{data}` for the ID and the
//! data of a successful request.

use crate::support::prelude::*;

const ASSETS: &str = r#"
race: deletions of an asset
4 requests: DELETE /assets/{asset}
end: one 200, others 404 NOT_FOUND

race: changes of different fields
rounds: 10
request: PATCH /assets/{asset} {"notes": "n"}
request: PATCH /assets/{asset} {"serial_number": "s"}
end: 200, 200
then: GET /assets/{asset} -> 200 data/notes=n data/serial_number=s
end: 200, 409 CONFLICT
then: GET /assets/{asset} -> 200 data/notes=n data/serial_number=null
end: 409 CONFLICT, 200
then: GET /assets/{asset} -> 200 data/notes=null data/serial_number=s

race: an assignment and the deletion of the user
rounds: 10
request: PATCH /assets/{asset} {"assigned_to": "{user}"}
request: DELETE /users/{user}
end: 200, 409 IN_USE
then: DELETE /assets/{asset} -> 200
then: DELETE /users/{user} -> 200
end: 422 errors/0/pointer=/assigned_to, 200
then: GET /assets/{asset} -> 200 data/assigned_to=null

race: users with one address
3 requests: POST /users {"email": "ada@example.com", "display_name": "Ada"}
3 requests: POST /users {"email": "ADA@example.com", "display_name": "Ada"}
end: one 201, others 409 DUPLICATE
then: GET /users -> 200 meta/total=1

race: upserts of a new serial number
8 requests: PUT /assets/by-serial/S%2F1 {"name": "a"}
8 requests: PUT /assets/by-serial/S%2F1 {"name": "b"}
8 requests: PUT /assets/by-serial/S%2F1 {"name": "c"}
8 requests: PUT /assets/by-serial/S%2F1 {"name": "d"}
end: one 201, others 200|409 CONFLICT
then: GET /assets?serial_number=S%2F1 -> 200 meta/total=1

race: an asset of a model that changes
late: POST /assets {"name": "x", "model_id": "{model}"}
early: PATCH /catalog/models/{model} {"asset_type_id": "{screen}", "manufacturer_id": "{other}"}
end: 201 data/asset_type_id={screen} data/manufacturer=Other, 200

race: an asset that gets a model that changes
late: PATCH /assets/{asset} {"model_id": "{model}"}
early: PATCH /catalog/models/{model} {"asset_type_id": "{screen}", "manufacturer_id": "{other}"}
end: 200 data/asset_type_id={screen} data/manufacturer=Other, 200

race: a dry run and a change
late: PATCH /assets/{asset}?dry_run=true {"name": "ours"}
early: PATCH /assets/{asset} {"notes": "theirs"}
end: 200 data/name=ours data/notes=theirs, 200
then: GET /assets/{asset} -> 200 data/name=x data/notes=theirs

race: a dry run of an assignment and the deactivation of the user
late: PATCH /assets/{asset}?dry_run=true {"assigned_to": "{user}"}
early: PATCH /users/{user} {"is_active": false}
end: 422 errors/0/pointer=/assigned_to, 200"#;

const PROCESSES: &str = r#"
race: starts on one asset
steps: a
rounds: 5
3 requests: POST /processes/{process}/start {"asset_id": "{asset}"}
end: one 201, others 409 PROCESS_RUNNING instance_id={won}
then: GET /processes/instances -> 200 meta/total=1

race: a start and a change of the status
steps: a
rounds: 8
request: POST /processes/{process}/start {"asset_id": "{asset}"}
request: PATCH /assets/{asset} {"status": "scrapped"}
end: 201, 409 PROCESS_RUNNING
end: 409 WRONG_ASSET_STATUS, 200

race: starts through different steps
steps: a b
rounds: 3
request: POST /processes/{process}/start {"asset_id": "{asset}", "through": "a"}
request: POST /processes/{process}/start {"asset_id": "{asset}", "through": "b"}
end: one 201, others 409 PROCESS_RUNNING|WRONG_ASSET_STATUS

race: a start and the deletion of the asset
steps: a
rounds: 8
request: POST /processes/{process}/start {"asset_id": "{asset}"}
request: DELETE /assets/{asset}
end: 201, 409
then: GET /processes/instances -> 200 meta/total=1
end: 409|422, 200
then: GET /processes/instances -> 200 meta/total=0

race: a cancellation and a change of the asset
steps: a
rounds: 8
request: POST {instance}/cancel {}
request: PATCH /assets/{asset} {"status": "scrapped"}
end: 200, 200
then: GET /assets/{asset} -> 200 data/status=scrapped
end: 200, 409
then: GET /assets/{asset} -> 200 data/status=in_stock
events: instance 2

race: submissions through different steps
steps: a b c
rounds: 3
request: POST {instance}/advance {"step_data": {}, "through": "b", "current_step": 0}
2 requests: POST {instance}/advance {"step_data": {}, "through": "c", "current_step": 0}
end: one 200, others 409 STEP_MOVED|INSTANCE_CLOSED

race: submissions of a step
steps: a b
rounds: 5
3 requests: POST {instance}/advance {"step_data": {}, "current_step": 0}
end: one 200, others 409 STEP_MOVED
events: instance 2

race: submissions of the last step
steps: a
rounds: 5
3 requests: POST {instance}/advance {"step_data": {}, "current_step": 0}
end: one 200, others 409 STEP_MOVED|INSTANCE_CLOSED
then: GET /assets/{asset} -> 200 data/status=in_use
events: instance 2

race: the last step and a cancellation
steps: a
rounds: 8
request: POST {instance}/advance {"step_data": {}}
request: POST {instance}/cancel {}
end: 200, 409
then: GET /assets/{asset} -> 200 data/status=in_use
end: 409, 200
then: GET /assets/{asset} -> 200 data/status=in_stock
events: asset 3

race: submissions of a movement's step
steps: a b
rounds: 4
3 requests: POST /movements/{movement}/advance {"step_data": {"a": "1"}, "current_step": 0}
end: one 200, others 409 STEP_MOVED

race: submissions of a movement's last step
steps: a
late: POST /movements/{movement}/advance {"step_data": {"a": "2"}}
early: POST /movements/{movement}/advance {"step_data": {"a": "1"}}
end: 409 STEP_MOVED current_step=0, 200"#;

const LINKS: &str = r#"
race: tabs that submit a step of a link
steps: note sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"note": "n"}, "current_step": 0}
end: one 200, others 409 STEP_MOVED
then: GET {instance} -> 200 data/current_step=1
events: instance 2

race: tabs that submit any step of a link, of which a late one lacks the value of the next step
steps: note sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"note": "n"}}
end: one 200, others 409|422 STEP_MOVED|VALIDATION_ERROR
then: GET {instance} -> 200 data/current_step=1
events: instance 2

race: tabs that submit the last step of a link, after which another stays open
steps: sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"sign": "{signature}"}, "current_step": 0}
end: one 200, others 401|409 STEP_MOVED|UNAUTHORIZED
then: GET {instance} -> 200 data/current_step=1
then: GET {link} -> 200 data/status=used
events: instance 2

race: tabs that submit any step of a link that has one
steps: sign after
rounds: 2
4 requests: POST /sign/advance {"step_data": {"sign": "{signature}"}}
end: one 200, others 401|409|422 STEP_MOVED|VALIDATION_ERROR|UNAUTHORIZED
then: GET {instance} -> 200 data/current_step=1
then: GET {link} -> 200 data/status=used
events: instance 2

race: a link and a key that submit one step
steps: note sign
rounds: 6
request: POST /sign/advance {"step_data": {"note": "n", "sign": "{signature}"}, "through": "sign", "current_step": 0}
request: POST {instance}/advance {"step_data": {"note": "n", "sign": "{signature}"}, "through": "sign", "current_step": 0}
end: 200, 409
then: GET {link} -> 200 data/status=used
end: 401 UNAUTHORIZED link_status=ended, 200
then: GET {link} -> 200 data/status=ended
end: 409, 200
then: GET {link} -> 200 data/status=ended data/used_at=null
events: instance 3

race: a link's last step and a cancellation
steps: sign
rounds: 8
request: POST /sign/advance {"step_data": {"sign": "{signature}"}}
request: POST {instance}/cancel {}
end: 200, 409
then: GET {link} -> 200 data/status=used
end: 401 UNAUTHORIZED link_status=ended, 200
then: GET {link} -> 200 data/status=ended
end: 409 INSTANCE_CLOSED, 200
then: GET {link} -> 200 data/status=ended
events: instance 2

race: a submission and the link's revocation, which is final
steps: note sign
rounds: 2
late: POST /sign/advance {"step_data": {"note": "n"}, "through": "note"}
early: DELETE {link}
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data={data} data/used_at=null
then: GET {instance} -> 200 data/current_step=0
events: instance 1

race: a submission of the link's last step and the link's revocation
steps: note sign
rounds: 2
late: POST /sign/advance {"step_data": {"note": "n", "sign": "{signature}"}, "through": "sign"}
early: DELETE {link}
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data={data} data/used_at=null
then: GET {instance} -> 200 data/current_step=0
events: instance 1

race: a submission of a link's last step and the link's revocation at once
steps: sign after
rounds: 10
request: POST /sign/advance {"step_data": {"sign": "{signature}"}}
request: DELETE {link}
end: 200, 200|409
then: GET {link} -> 200 data/used_at=*
then: GET {instance} -> 200 data/current_step=1
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data/used_at=null data/revoked_at=*
then: GET {instance} -> 200 data/current_step=0

race: a session and the link's revocation
steps: sign
late: GET /sign/session
early: DELETE {link}
end: 401 UNAUTHORIZED link_status=revoked, 200
then: GET {link} -> 200 data/status=revoked
events: link 2

race: sessions in 12 tabs, which open the link once
steps: sign
rounds: 4
12 requests: GET /sign/session
end: all 200 data/status=open
then: GET {link} -> 200 data/opened_at=*
events: link 2

race: revocations of a link
steps: sign
8 requests: DELETE {link}
end: all 200 data={data}
events: link 2"#;

/// Clock offsets of the function instances, in milliseconds.
const SKEWS: [i64; 4] = [0, 700, -900, 0];

#[derive(Default)]
struct Race {
    text: &'static str,
    name: &'static str,
    steps: &'static str,
    rounds: usize,
    requests: Vec<&'static str>,
    is_overtaken: bool,
    /// The responses of each outcome, and the requests after it.
    ends: Vec<(&'static str, Vec<&'static str>)>,
    events: Vec<(&'static str, usize)>,
}

async fn run(races: &'static str) {
    let api = Api::start().await;
    for text in sample(races.split("\n\n"), 6) {
        let race = Race::parse(text);
        let rounds = if full_tests() { race.rounds } else { race.rounds.min(2) };
        for round in 0..rounds {
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
        api.check_invariants(client.tenant, self.name).await;
    }
}

/// A round of a race: its clients, and the values of its placeholders.
struct Round<'a> {
    client: &'a Client,
    signer: Client,
    /// IDs or paths by placeholder.
    records: Vec<(&'static str, String)>,
    /// The data of a successful request.
    won: Value,
}

impl<'a> Round<'a> {
    /// Creates the records that the race mentions.
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
                // A dry run's second batch reads the items for its conditions.
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

#[tokio::test(start_paused = true)]
async fn races_of_assets_have_only_permitted_outcomes() {
    run(ASSETS).await;
}

#[tokio::test(start_paused = true)]
async fn races_of_processes_have_only_permitted_outcomes() {
    run(PROCESSES).await;
}

#[tokio::test(start_paused = true)]
async fn races_of_links_have_only_permitted_outcomes() {
    run(LINKS).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "two deletions must not end with")]
async fn other_outcomes_of_a_race_fail_the_test() {
    run("race: two deletions\n2 requests: DELETE /assets/{asset}\nend: 200, 200").await;
}

#[tokio::test(start_paused = true)]
async fn simultaneous_creations_get_different_tags() {
    let client = over_http().await;
    let laptop = client.asset_type("Laptop", "LAP", "physical").await;
    let made = join_all((0..24).map(|n| client.post("/assets", json!({"name": format!("a{n}"), "asset_type_id": laptop})))).await;
    let tags: BTreeSet<String> = made.iter().map(|reply| reply.data()["asset_tag"].as_str().unwrap().to_owned()).collect();
    assert_eq!(tags.len(), 24);
    assert_eq!(client.total("/assets").await, 24);
    let in_use = client.delete(&format!("/catalog/asset-types/{laptop}")).await.problem(409, "IN_USE");
    assert_eq!(in_use["count"], 24, "every reference is counted");
}

#[tokio::test(start_paused = true)]
async fn most_of_twenty_simultaneous_patches_succeed_and_leave_an_unbroken_chain() {
    let (api, client) = Api::with_tenant().await;
    let id = client.asset(json!({"name": "x"})).await;
    let path = format!("/assets/{id}");
    let replies = join_all((0..20).map(|n| client.patch(&path, json!({"name": format!("n{n}")})))).await;
    let succeeded = replies.iter().filter(|reply| reply.status == 200).count();
    assert!(succeeded >= 10, "{succeeded} of 20: retries should wait before they read again");
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        reply.problem(409, "CONFLICT");
    }
    assert_eq!(event_chain(&api, &client, &id).await.len(), 1 + succeeded);
}
