//! `assetctl handover`, `return` and `run`: start or continue a process on assets, create a signing link, wait for the signature,
//! and submit the remaining steps.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id, unreadable};
use crate::interrupt::Interrupt;
use crate::lookup::{self, id_of, items, person, person_with, tag_and_name, text};
use crate::output::{duration, print_json, quote};
use crate::selection::normal;
use crate::set::{Change, accepted};
use clap::Args;
use domain::import::Kind;
use domain::processes::process::Step;
use fields::compared::lower;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use terminal::{clean, print, print_note, print_styled, style, time};

/// Maximum number of times that the assets are read before the command fails: they are read again after a preparation and after a
/// concurrent change.
const MAX_LOOKS: u32 = 5;
/// Slugs of the processes that lead to a handover, the last one first: one prepares assets in stock, the other puts returned ones
/// into stock.
const PREPARATIONS: [&str; 2] = ["prepare", "restock"];
/// Default process of `assetctl return`.
pub const RETURN: &str = "device-return";
/// Key of the step for the assets' condition in a return.
const CONDITION: &str = "condition";
/// First pause between two requests for the link's status. The pauses grow up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub struct Handover {
    /// Assets to hand over, up to 20: tags, IDs or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// Recipient of the assets: an e-mail address, a name or an ID
    #[arg(long, value_name = "USER")]
    pub to: String,
    /// Slug of the process that hands the assets over
    #[arg(long, value_name = "SLUG", default_value = "employee-onboarding")]
    pub process: String,
    /// Run the process `prepare` first on assets that are still in stock, and before it `restock` on returned ones
    #[arg(long)]
    pub prepare: bool,
    /// Place where the assets will be, recorded once the process has started
    #[arg(long, value_name = "PLACE")]
    pub location: Option<String>,
    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Debug, Args)]
pub struct Return {
    /// Assets to take back, up to 20: tags, IDs or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// Person who gives the assets back and signs: an e-mail address, a name or an ID [default: their user]
    #[arg(long, value_name = "USER")]
    pub from: Option<String>,
    /// Condition of the assets, and any damage; without this option, the signer can describe it
    #[arg(long, value_name = "TEXT")]
    pub condition: Option<String>,
    /// Place where the assets will be, recorded once the process has started
    #[arg(long, value_name = "PLACE")]
    pub location: Option<String>,
    /// Slug of the process that takes the assets back
    #[arg(long, value_name = "SLUG", default_value = RETURN)]
    pub process: String,
    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Debug, Args)]
pub struct Run {
    /// Slug of the process
    pub process: String,
    /// Assets, up to 20: tags, IDs or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// The user to pick, or else the signer: an e-mail address, a name or an ID [default: the user of the assets signs]
    #[arg(long, value_name = "USER")]
    pub to: Option<String>,
    /// Value of a step, by its key: --value reason=Defective; `true` for a confirmation, a user for a step that picks one
    #[arg(long = "value", value_name = "STEP=VALUE", value_parser = step_value)]
    pub values: Vec<(String, String)>,
    #[command(flatten)]
    pub run: RunOptions,
}

fn step_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be STEP=VALUE, such as reason=Defective")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Default, Args)]
pub struct RunOptions {
    /// Tick a checklist entry (case-insensitive), or `all`; without this option, a signer ticks the entries
    #[arg(long, value_name = "LABEL")]
    pub tick: Vec<String>,
    /// Wait for the signature, then submit the remaining steps
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Maximum number of seconds to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, requires = "wait")]
    pub timeout: u64,
    /// Show the QR code of the link even if the output isn't a terminal
    #[arg(long)]
    pub qr: bool,
    /// Show what would happen, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Deed {
    Handover,
    Return,
    /// Any process.
    Run,
}

/// A handover, a return or another process, from the arguments.
pub struct Errand<'a> {
    assets: &'a [String],
    /// Slug of the process.
    process: &'a str,
    run: &'a RunOptions,
    deed: Deed,
    /// User who gets the assets, or gives them back; `None` for the assets' current user.
    user: Option<&'a str>,
    prepare: bool,
    /// Values of steps by key.
    values: Vec<(&'a str, &'a str)>,
    location: Option<&'a str>,
}

impl Handover {
    pub fn errand(&self) -> Errand<'_> {
        let Self { assets, to, process, prepare, location, run } = self;
        let (user, location) = (Some(to.as_str()), location.as_deref());
        Errand { assets, process, run, deed: Deed::Handover, user, prepare: *prepare, values: Vec::new(), location }
    }
}

impl Return {
    pub fn errand(&self) -> Errand<'_> {
        let Self { assets, from, condition, location, process, run } = self;
        let (user, location) = (from.as_deref(), location.as_deref());
        let values = condition.iter().map(|text| (CONDITION, text.as_str())).collect();
        Errand { assets, process, run, deed: Deed::Return, user, prepare: false, values, location }
    }
}

impl Run {
    pub fn errand(&self) -> Errand<'_> {
        let Self { process, assets, to, values, run } = self;
        let values = values.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Errand { assets, process, run, deed: Deed::Run, user: to.as_deref(), prepare: false, values, location: None }
    }
}

/// Runs a process on assets, or continues after an interruption.
pub async fn handover(errand: Errand<'_>, connection: &Connection, is_json: bool) -> Result<u8> {
    let (mut interrupt, client) = (Interrupt::listen(), Client::new(connection)?);
    tokio::select! {
        biased;
        _ = interrupt.next() => Err(CliError::Interrupted("Interrupted. To continue, repeat the command; a link stays valid.".into())),
        done = carry_out(&client, errand, is_json) => done,
    }
}

/// Starts or continues the process, and creates a signing link. Once the user has signed, submits the remaining steps.
async fn carry_out(client: &Client, errand: Errand<'_>, is_json: bool) -> Result<u8> {
    let mut order = Order::read(client, errand, new_run_id()?).await?;
    let (running, run) = (order.finish(order.begin().await?).await?, order.errand.run);
    order.place().await?;
    if run.dry_run || running.is_completed() {
        return order.show(&running, None, is_json);
    }
    if !has_signature(running.open_steps()) {
        match order.errand.deed {
            Deed::Run => return order.show(&running, None, is_json),
            _ if has_signature(running.steps()) => return Err(order.unfinished(&running)),
            _ => {}
        }
    }
    let path = running.path();
    // No idempotency key, because a replayed response would lack the link's secret.
    let link = client.post(&format!("{path}/links"), &[], &json!({"signer": {"user_id": order.user["id"]}}), None).await?;
    let shown = order.show(&running, Some(&link), is_json)?;
    if !run.wait {
        return Ok(shown);
    }
    until_signed(client, &path, &link, run.timeout).await?;
    let signed = order.go_on(Running::read(client, &path).await?).await?;
    let signed = order.finish(signed).await?;
    if signed.is_completed() { order.show(&signed, None, is_json) } else { Err(order.unfinished(&signed)) }
}

/// Assets, and the process to run on them.
pub struct Order<'a> {
    client: &'a Client,
    errand: Errand<'a>,
    /// The picked user, or else the signer; null if the assets have no user or several users.
    pub user: Value,
    pub process: Value,
    /// The processes of [`PREPARATIONS`]; empty without `--prepare`.
    preparations: Vec<Value>,
    pub assets: Vec<Value>,
    /// Values of steps by key, from the options.
    values: Map<String, Value>,
    /// Prefix of the idempotency keys.
    run: String,
}

enum State {
    /// The process can start.
    New,
    /// The process with this slug must run on these assets first.
    Unprepared(&'static str, Vec<Value>),
    /// The process was started for the same user.
    Running(Running),
    Done(Running),
}

impl<'a> Order<'a> {
    /// Reads the assets, the user and the process.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them doesn't exist, the recipient is inactive, the process lacks a step for the user or for a
    /// value, no checklist has an entry to tick, or the assets can't get the place.
    pub async fn read(client: &'a Client, errand: Errand<'a>, run: String) -> Result<Self> {
        let process = lookup::process(client, errand.process).await?;
        let steps = steps_of(&process);
        let picks = errand.deed != Deed::Return && picker(steps).is_some();
        if errand.deed == Deed::Handover && !picks {
            let detail = "has no step that picks a user, so it can't hand anything over";
            return Err(CliError::Usage(format!("the process {} {detail}", errand.process)));
        }
        let mut user = Value::Null;
        if let (true, Some(name)) = (picks, errand.user) {
            user = active_user(client, name).await?;
        }
        let values = step_values(client, &errand, steps).await?;
        let mut preparations = Vec::new();
        for slug in PREPARATIONS.iter().filter(|_| errand.prepare) {
            preparations.push(lookup::process(client, slug).await?);
        }
        check_labels(&errand.run.tick, steps.iter().chain(preparations.iter().flat_map(steps_of))).map_err(CliError::Usage)?;
        let assets = lookup::assets(client, errand.assets).await?;
        if !picks {
            let users: BTreeSet<&str> = assets.iter().filter_map(|asset| asset["assigned_to"].as_str()).collect();
            let only = users.first().copied().filter(|_| users.len() == 1);
            if let Some(name) = errand.user.or(only) {
                user = lookup::user(client, name).await?;
            }
        }
        let order = Self { client, errand, user, process, preparations, assets, values, run };
        if let Some(place) = order.errand.location {
            accepted(&order.change_of_place(place), None).await?;
        }
        Ok(order)
    }

    fn change_of_place(&self, place: &str) -> Change<'a> {
        // Without `updated_at`, because a preparation changes the assets first.
        let asset = |asset: &Value| json!({"id": asset["id"], "asset_tag": asset["asset_tag"]});
        let cells = vec![("location".to_owned(), place.to_owned())];
        Change::to(self.client, Kind::Assets, self.assets.iter().map(asset).collect(), cells)
    }

    /// Records the place of the assets, and reads them again.
    pub async fn place(&mut self) -> Result<()> {
        let Some(place) = self.errand.location.filter(|_| !self.errand.run.dry_run) else { return Ok(()) };
        accepted(&self.change_of_place(place), Some(&format!("{}-place", self.run))).await?;
        for asset in &mut self.assets {
            *asset = self.client.object(&format!("assets/{}", id_of(asset)), &[]).await?;
        }
        Ok(())
    }

    fn noun(&self) -> &'static str {
        match self.errand.deed {
            Deed::Handover => "handover",
            Deed::Return => "return",
            Deed::Run => "process",
        }
    }

    fn query(&self) -> &'static [(&'static str, &'static str)] {
        if self.errand.run.dry_run { &[("dry_run", "true")] } else { &[] }
    }

    /// Whether the process gives the assets to the user.
    fn picks(&self) -> bool {
        self.errand.deed != Deed::Return && self.user.is_object() && picker(steps_of(&self.process)).is_some()
    }

    /// Returns the values that the options give for these steps, except ticks.
    fn given(&self, steps: &[Value]) -> Map<String, Value> {
        let picked = picker(steps).filter(|_| self.picks()).map(|key| (key.to_owned(), self.user["id"].clone()));
        let has_step = |key: &str| steps.iter().any(|step| step["key"] == key);
        let values = self.values.iter().filter(|(key, _)| has_step(key)).map(|(key, value)| (key.clone(), value.clone()));
        values.chain(picked).collect()
    }

    /// Returns the values of the steps from `first` on, and the key of the last step to submit. If nobody signs, `run` skips
    /// optional steps without a value.
    fn ready<'s>(&self, steps: &'s [Value], first: usize) -> (Map<String, Value>, Option<&'s str>) {
        let skips = self.errand.deed == Deed::Run && !has_signature(steps.get(first..).unwrap_or_default());
        values(steps, first, &self.given(steps), &self.errand.run.tick, skips)
    }

    /// Fails if one of these steps is a signature and there is no signer.
    fn check_signer(&self, open: &[Value]) -> Result<()> {
        if self.user.is_object() || !has_signature(open) {
            return Ok(());
        }
        let who = match (self.errand.deed, picker(steps_of(&self.process))) {
            (Deed::Return, _) => "name the person who returns and signs: --from USER",
            (_, None) => "name the person who signs: --to USER",
            (_, Some(_)) => return Err(CliError::Usage("name the user whom the process picks, and who signs: --to USER".into())),
        };
        let why = if self.assets.len() == 1 { "nobody" } else { "nobody, or to different users" };
        let tags = tags(&self.assets, "asset_tag");
        Err(CliError::Usage(format!("{tags}: assigned to {why}; {who}")))
    }

    /// Sends a POST request. The idempotency key depends only on the run, the path and the body, so a retry has the same key even
    /// after other requests.
    async fn post(&self, path: &str, body: &Value) -> Result<Running> {
        let mut hash = DefaultHasher::new();
        (path, body.to_string()).hash(&mut hash);
        let key = (!self.errand.run.dry_run).then(|| format!("{}-{:016x}", self.run, hash.finish()));
        Ok(Running(self.client.post(path, self.query(), body, key.as_deref()).await?))
    }

    fn unfinished(&self, running: &Running) -> CliError {
        CliError::Failed(match running.0["status"].as_str() {
            Some("in_progress") => format!("signed, but this command can't submit the rest: {}", running.open_labels()),
            status => clean(&format!("the {} is {}", self.noun(), status.unwrap_or("unreadable"))),
        })
    }

    /// Submits the open steps after the signature if they take no value. In a return, confirms that the assets were received.
    pub async fn finish(&self, running: Running) -> Result<Running> {
        if !running.can_finish(self.errand.deed == Deed::Return) {
            return Ok(running);
        }
        let path = running.path();
        // A dry run changes nothing, so the next dry run can't continue from its result.
        if self.errand.run.dry_run
            && (running.0["id"].is_null() || Running::read(self.client, &path).await?.current_step() != running.current_step())
        {
            return Ok(running);
        }
        let confirmations = running.open_steps().iter().filter(|step| is_of_type(step, "confirmation"));
        let values: Map<String, Value> = confirmations.map(|step| (text(&step["key"]).to_owned(), true.into())).collect();
        let last = running.open_steps().last().map(|step| text(&step["key"]).to_owned()).unwrap_or_default();
        match self.advance(running, &last, &values).await {
            // Another client has started it first.
            Err(error) if error.is_conflict() => Running::read(self.client, &path).await,
            finished => finished,
        }
    }

    /// Starts or continues the process, and returns it. If the assets still need preparation, a dry run returns the preparation
    /// process instead.
    pub async fn begin(&self) -> Result<Running> {
        for number in 1..=MAX_LOOKS {
            let begun = match self.look().await? {
                State::Done(running) => Ok(running),
                State::Running(running) => {
                    self.check_signer(running.open_steps())?;
                    self.go_on(running).await
                }
                State::New => {
                    self.check_signer(steps_of(&self.process))?;
                    self.start(&self.process, &self.assets).await
                }
                State::Unprepared(slug, assets) => {
                    let preparation = self.preparations.iter().find(|process| process["slug"] == slug);
                    let preparation = preparation.unwrap_or(&self.process);
                    check_ticks(preparation, &self.errand.run.tick)?;
                    match self.start(preparation, &assets).await {
                        Ok(prepared) if !self.errand.run.dry_run => {
                            let left = prepared.left_open();
                            let left = if left.is_empty() { left } else { format!("; left open: {left}") };
                            print_note(&clean(&format!("{}: done{left}", text(&prepared.0["process_name"]))));
                            continue;
                        }
                        prepared => prepared,
                    }
                }
            };
            match begun {
                Err(error) if error.is_conflict() && number < MAX_LOOKS => {}
                begun => return begun,
            }
        }
        Err(CliError::Failed("others are changing the assets at the same time; try again".into()))
    }

    /// Starts a process on assets, and submits the steps with values. Completes a preparation, because a preparation in progress
    /// would block the handover.
    async fn start(&self, process: &Value, assets: &[Value]) -> Result<Running> {
        let steps = steps_of(process);
        let (values, ready) = self.ready(steps, 0);
        let last = steps.last().map(|step| text(&step["key"]));
        let through = if process["id"] == self.process["id"] { ready } else { last };
        let only_start = match assets {
            [asset] => json!({"asset_id": asset["id"]}),
            assets => json!({"asset_ids": assets.iter().map(|asset| &asset["id"]).collect::<Vec<_>>()}),
        };
        let mut body = only_start.clone();
        body["step_data"] = values.clone().into();
        if let Some(key) = through {
            body["through"] = key.into();
        }
        let path = format!("processes/{}/start", text(&process["id"]));
        match self.post(&path, &body).await {
            Err(error) if error.is_too_many_steps() => {
                let started = self.post(&path, &only_start).await?;
                self.advance_singly(started, through.unwrap_or_default(), &values).await
            }
            started => started,
        }
    }

    /// Submits the open steps that have values.
    async fn go_on(&self, running: Running) -> Result<Running> {
        let (values, through) = self.ready(running.steps(), running.current_step());
        match through.map(str::to_owned) {
            Some(through) if !running.open_steps().is_empty() => self.advance(running, &through, &values).await,
            _ => Ok(running),
        }
    }

    /// Submits the open steps up to `through` together, or singly if they make too many changes for one transaction.
    async fn advance(&self, running: Running, through: &str, values: &Map<String, Value>) -> Result<Running> {
        match self.submit(&running, through, values).await {
            Err(error) if error.is_too_many_steps() => self.advance_singly(running, through, values).await,
            advanced => advanced,
        }
    }

    /// Submits the open steps up to `through` in separate requests; none in a dry run, because the steps would stay open.
    async fn advance_singly(&self, mut running: Running, through: &str, values: &Map<String, Value>) -> Result<Running> {
        while let (false, [step, ..]) = (self.errand.run.dry_run, running.open_steps()) {
            let key = text(&step["key"]).to_owned();
            running = self.submit(&running, &key, values).await?;
            if key == through {
                break;
            }
        }
        Ok(running)
    }

    async fn submit(&self, running: &Running, through: &str, values: &Map<String, Value>) -> Result<Running> {
        let body = json!({"current_step": running.current_step(), "through": through, "step_data": values});
        self.post(&format!("{}/advance", running.path()), &body).await
    }

    /// Reads the state of the assets. Fails with advice if the process can't run on one of the assets, or on all of them
    /// together.
    async fn look(&self) -> Result<State> {
        let (mut running, mut done, mut unprepared, mut wrong) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for asset in &self.assets {
            let processes = self.client.data(&format!("assets/{}/processes", text(&asset["id"])), &[]).await?;
            let all = items(&processes);
            let own = all.iter().find(|process| process["id"] == self.process["id"]).unwrap_or(&Value::Null);
            let first = if self.errand.deed == Deed::Handover { preparation_of(all, own) } else { None };
            let because = |advice: &str| clean(&format!("{}: {} {advice}", tag_and_name(asset), text(&own["detail"])));
            match own["code"].as_str() {
                None => {}
                Some("PROCESS_RUNNING") => running.push(self.same(text(&own["instance_id"])).await?),
                Some("WRONG_ASSET_STATUS") => match self.finished(text(&asset["id"])).await? {
                    Some(instance) => done.push(instance),
                    None => match first {
                        Some(slug) if self.errand.prepare => unprepared.push((slug, asset.clone())),
                        Some(slug) if slug == PREPARATIONS[0] => {
                            wrong.push(because("The option prepare runs the process prepare first."))
                        }
                        Some(slug) => wrong.push(because(&format!("The option prepare runs {slug} and prepare first."))),
                        None => wrong.push(because(&self.advice(asset, all, own).await?)),
                    },
                },
                Some(_) => wrong.push(because("")),
            }
        }
        match (running.len(), done.len()) {
            _ if !wrong.is_empty() => Err(CliError::Failed(wrong.join("\n"))),
            (0, 0) if unprepared.is_empty() => Ok(State::New),
            (0, 0) => {
                // Returned assets come first, so that all are prepared together.
                let is_needed = |slug: &&&str| unprepared.iter().any(|(own, _)| own == *slug);
                let slug = PREPARATIONS.iter().rev().find(is_needed).copied().unwrap_or_default();
                let assets = unprepared.into_iter().filter(|(own, _)| *own == slug).map(|(_, asset)| asset).collect();
                Ok(State::Unprepared(slug, assets))
            }
            (begun, 0) if begun == self.assets.len() => self.together(running.swap_remove(0)).await.map(State::Running),
            (0, all) if all == self.assets.len() => self.together(done.swap_remove(0)).await.map(State::Done),
            _ => {
                let begun = tags(running.iter().chain(&done), "asset_tag");
                Err(CliError::Failed(format!("{begun} is already in progress or done: use a separate command for it")))
            }
        }
    }

    /// Returns advice for an asset whose status prevents the start of the process.
    async fn advice(&self, asset: &Value, processes: &[Value], own: &Value) -> Result<String> {
        let startable = processes.iter().filter(|process| process["can_start"] == true);
        let slugs: Vec<&str> = startable.map(|process| text(&process["slug"])).collect();
        let change = match slugs.as_slice() {
            [] => {
                let (tag, status) = (quote(text(&asset["asset_tag"])), text(&own["trigger_status"]));
                format!("No process can start. Change its status first: assetctl set {tag} status={status}")
            }
            slugs => format!("Change its status first; these processes can start: {}", slugs.join(", ")),
        };
        let holder = asset["assigned_to"].as_str().filter(|holder| self.picks() && self.user["id"] != **holder);
        let Some(holder) = holder else { return Ok(change) };
        let holder = person_with(self.client, holder).await?;
        Ok(match slugs.contains(&RETURN) {
            true => format!("{holder} has it: take it back first, assetctl return {}", quote(text(&asset["asset_tag"]))),
            false => format!("{holder} has it. {change}"),
        })
    }

    /// Whether the instance runs the same process and, if the process picks the user, for the same user.
    fn is_own(&self, instance: &Value) -> bool {
        instance["process_id"] == self.process["id"] && (!self.picks() || *recipient(instance) == self.user["id"])
    }

    async fn same(&self, id: &str) -> Result<Value> {
        let Running(instance) = Running::read(self.client, &format!("processes/instances/{id}")).await?;
        if self.is_own(&instance) {
            return Ok(instance);
        }
        let to = match recipient(&instance).as_str() {
            Some(user) => format!(" for {}", person_with(self.client, user).await?),
            None => String::new(),
        };
        let [tag, process, by, at] =
            ["asset_tag", "process_name", "started_by_name", "started_at"].map(|name| text(&instance[name]));
        let at = time(at);
        let text = format!("{tag}: {process}{to} is in progress, started by {by} at {at} UTC; complete or cancel it first");
        Err(CliError::Failed(clean(&text)))
    }

    /// Returns the asset's latest completed instance if it ran this process for the user, and the asset still has the resulting
    /// status and user.
    async fn finished(&self, asset: &str) -> Result<Option<Value>> {
        let now = self.client.data(&format!("assets/{asset}"), &[]).await?;
        let is_there = !self.picks() || now["assigned_to"] == self.user["id"];
        if now["status"] != self.process["target_status"] || !is_there {
            return Ok(None);
        }
        let query = [("asset_id", asset), ("status", "completed"), ("limit", "1"), ("omit", "signatures")];
        let instances = self.client.data("processes/instances", &query).await?;
        Ok(instances.get(0).filter(|instance| self.is_own(instance)).cloned())
    }

    /// Returns the instance, or its movement, which must contain exactly these assets.
    async fn together(&self, instance: Value) -> Result<Running> {
        let running = match instance["movement_id"].as_str() {
            Some(movement) => Running::read(self.client, &format!("movements/{movement}")).await?,
            None => Running(instance),
        };
        let (named, moved) = (self.assets.iter().map(|asset| text(&asset["id"])), running.members("asset_id"));
        if named.collect::<BTreeSet<_>>() == moved.into_iter().collect() {
            return Ok(running);
        }
        let tags = clean(&running.members("asset_tag").join(" "));
        Err(CliError::Failed(format!("the {} has {tags}: name exactly these assets", self.noun())))
    }

    /// Returns the places that a handover doesn't change, with advice.
    fn left_places(&self) -> Option<String> {
        let places: BTreeSet<&str> = self.assets.iter().filter_map(|asset| asset["location"].as_str()).collect();
        let is_told = self.errand.deed == Deed::Handover && self.errand.location.is_none() && !places.is_empty();
        let places = places.into_iter().collect::<Vec<_>>().join(", ");
        is_told.then(|| format!("{places}; --location PLACE records where it goes"))
    }

    /// Prints the URL of the link or of the receipt on standard output, and everything else on standard error.
    fn show(&self, running: &Running, link: Option<&Value>, is_json: bool) -> Result<u8> {
        let (is_dry_run, is_completed) = (self.errand.run.dry_run, running.is_completed());
        let receipt = self.client.url(&format!("{}/receipt", running.path()), &[("format", "html")])?;
        if is_json {
            print_json(&json!({
                "user": self.user, "process": self.process, "assets": self.assets, "status": running.0["status"],
                "path": (!is_dry_run).then(|| running.path()), "open_steps": running.open_steps(), "link": link,
                "receipt": (is_completed && !is_dry_run).then(|| receipt.as_str()), "dry_run": is_dry_run
            }))?;
            return Ok(EXIT_SUCCESS);
        }
        let until = link.map(|link| format!("until {} UTC; anyone with the link can sign", time(text(&link["expires_at"]))));
        let is_own = running.0["process_id"] == self.process["id"];
        let direction = match self.errand.deed {
            Deed::Handover => "To",
            Deed::Return => "From",
            Deed::Run => "User",
        };
        // A preparation runs only on the assets that need it.
        let tags_here = running.members("asset_tag");
        let is_here = |asset: &&Value| is_own || tags_here.contains(&text(&asset["asset_tag"]));
        let assets: Vec<&Value> = self.assets.iter().filter(is_here).collect();
        let assets = if let [one] = assets.as_slice() { tag_and_name(one) } else { tags(assets, "asset_tag") };
        let then = match link {
            // The link ends with the signature, unless only the last step follows.
            Some(_) if self.errand.run.wait || running.ends_with_signature() => None,
            Some(_) => Some("repeat the command once it is signed and here".to_owned()),
            None if is_completed || is_dry_run => None,
            None => running.open_steps().first().map(|step| format!("repeat the command with {}", option_for(step))),
        };
        let members = [
            ("Process", Some(text(&running.0["process_name"]).to_owned())),
            ("Assets", Some(assets)),
            (direction, self.user.is_object().then(|| person(&self.user))),
            ("Location", self.errand.location.map(normal)),
            ("Still at", self.left_places()),
            ("Left open", Some(running.left_open()).filter(|left| !is_own && !left.is_empty())),
            ("Steps left", Some(running.open_labels()).filter(|labels| !labels.is_empty())),
            ("Link", until),
            ("Then", then),
            ("Receipt", (is_completed && !is_dry_run).then(|| "needs an API key to open".to_owned())),
        ];
        let members = members.into_iter().filter_map(|(title, text)| Some((title, text?)));
        let summary = terminal::record(members, terminal::width());
        if is_dry_run {
            let would_be = match (is_completed, is_own) {
                (true, true) => "This would be completed.",
                (true, false) => "This would be completed first.",
                _ => "The process would have reached this state.",
            };
            print(&format!("{summary}\n\n{would_be}"))?;
            return Ok(EXIT_SUCCESS);
        }
        print_note(&summary);
        let Some(link) = link else {
            if is_completed {
                print(receipt.as_str())?;
            }
            return Ok(EXIT_SUCCESS);
        };
        let address = clean(text(&link["url"]));
        print(&address)?;
        if terminal::is_terminal() || self.errand.run.qr {
            let code = qr_code(&address, style::is_output_coloured());
            print_styled(&code.unwrap_or_else(|| "(too long for a QR code)".to_owned()))?;
        }
        Ok(EXIT_SUCCESS)
    }
}

async fn active_user(client: &Client, name: &str) -> Result<Value> {
    let user = lookup::user(client, name).await?;
    match user["is_active"] == true {
        true => Ok(user),
        false => Err(CliError::Failed(format!("{} is inactive: activate the user first", person(&user)))),
    }
}

/// Returns the values from the options by step, in the form of the step's type.
async fn step_values(client: &Client, errand: &Errand<'_>, steps: &[Value]) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for (key, value) in &errand.values {
        let Some(step) = steps.iter().find(|step| step["key"] == *key) else {
            let option = if errand.deed == Deed::Return { "condition" } else { "value" };
            let known = steps.iter().map(|step| text(&step["key"])).collect::<Vec<_>>().join(", ");
            let detail = format!("has no step `{key}`, so --{option} can't be used; its steps: {known}");
            return Err(CliError::Usage(clean(&format!("the process {} {detail}", errand.process))));
        };
        let value = match text(&step["type"]) {
            "user_picker" => active_user(client, value).await?["id"].clone(),
            "confirmation" if *value == "true" => true.into(),
            "checklist" => return Err(CliError::Usage(format!("--value {key}: use --tick for the entries of a checklist"))),
            _ => (*value).into(),
        };
        values.insert((*key).to_owned(), value);
    }
    Ok(values)
}

/// Returns the slug of the process to run on an asset first, so that the process `own` can start on it afterwards. `all` are the
/// asset's processes.
fn preparation_of(all: &[Value], own: &Value) -> Option<&'static str> {
    let mut needed = &own["trigger_status"];
    for slug in PREPARATIONS {
        let process = all.iter().find(|process| process["slug"] == slug && process["target_status"] == *needed)?;
        if process["can_start"] == true {
            return Some(slug);
        }
        needed = &process["trigger_status"];
    }
    None
}

/// Returns the option that gives this step a value.
fn option_for(step: &Value) -> String {
    let key = text(&step["key"]);
    match text(&step["type"]) {
        "checklist" => "--tick all".to_owned(),
        "user_picker" => "--to USER".to_owned(),
        "confirmation" => format!("--value {key}=true"),
        _ => format!("--value {key}=TEXT"),
    }
}

/// Lists a field of the records on one line.
fn tags<'v>(records: impl IntoIterator<Item = &'v Value>, name: &str) -> String {
    clean(&records.into_iter().map(|record| text(&record[name])).collect::<Vec<_>>().join(", "))
}

/// Draws a QR code with half blocks, two rows of modules per line, including the quiet zone. `None` if the text is too long for a
/// code. Draws the light modules, because most terminals are dark. With colours, the code can be scanned on any terminal.
fn qr_code(text: &str, is_coloured: bool) -> Option<String> {
    // Screens need no error correction, so this uses the smallest code.
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let drawn = code.render().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).module_dimensions(1, 1).build();
    Some(drawn.lines().map(|line| style::paint(line, style::CODE, is_coloured)).collect::<Vec<_>>().join("\n"))
}

/// Returns the user who will get an instance's asset; null if not set yet.
fn recipient(instance: &Value) -> &Value {
    &instance["step_data"][picker(steps_of(instance)).unwrap_or_default()]
}

/// Fails for a label that is neither `all` nor a checklist entry.
fn check_labels<'s>(labels: &[String], steps: impl Iterator<Item = &'s Value>) -> Result<(), String> {
    let known: Vec<&str> = steps.flat_map(entries).collect();
    match labels.iter().find(|label| !is_same(label, "all") && !known.iter().any(|entry| is_same(label, entry))) {
        None => Ok(()),
        Some(label) => {
            // Quotation marks in an entry must not end the quotation.
            let known = known.iter().map(|entry| clean(entry).replace('"', "'")).collect::<Vec<_>>();
            Err(format!("tick \"{label}\": the checklists have \"{}\"", known.join("\", \"")))
        }
    }
}

/// Fails if a required checklist of a preparation would stay incomplete.
fn check_ticks(process: &Value, labels: &[String]) -> Result<()> {
    let required = steps_of(process).iter().filter(|step| is_of_type(step, "checklist") && !is_optional(step));
    let unticked = required.flat_map(|step| entries(step).filter(|entry| !labels.iter().any(|label| ticks(label, entry, step))));
    let unticked: Vec<String> = unticked.map(|entry| clean(entry).replace('"', "'")).collect();
    if unticked.is_empty() {
        return Ok(());
    }
    let (name, unticked) = (clean(text(&process["name"])), unticked.join("\", \""));
    Err(CliError::Usage(format!("{name} comes first, and needs \"{unticked}\": tick each, or all")))
}

fn is_same(label: &str, entry: &str) -> bool {
    lower(label.trim()) == lower(entry)
}

/// Whether a label ticks an entry. Ignores case, unless another entry of the checklist equals the label.
fn ticks(label: &str, entry: &str, checklist: &Value) -> bool {
    is_same(label, "all") || label == entry || is_same(label, entry) && entries(checklist).all(|other| other != label)
}

fn entries(step: &Value) -> impl Iterator<Item = &str> {
    items(&step["items"]).iter().filter_map(Value::as_str)
}

/// Returns the steps of a process definition or an instance.
fn steps_of(process: &Value) -> &[Value] {
    items(&process["steps"])
}

fn is_of_type(step: &Value, kind: &str) -> bool {
    step["type"] == kind
}

fn has_signature(steps: &[Value]) -> bool {
    steps.iter().any(|step| is_of_type(step, "signature"))
}

fn is_optional(step: &Value) -> bool {
    serde_json::from_value::<Step>(step.clone()).is_ok_and(|step| !step.is_required())
}

/// Returns the step whose user gets the asset: the last user picker.
fn picker(steps: &[Value]) -> Option<&str> {
    steps.iter().rfind(|step| is_of_type(step, "user_picker")).map(|step| text(&step["key"]))
}

/// Returns the values of the steps from `first` on, by step key, and the key of the last step to submit: all steps up to it have
/// values, or are optional and skipped. Uses the `given` values, and ticks `labels` in checklists.
fn values<'a>(
    steps: &'a [Value],
    first: usize,
    given: &Map<String, Value>,
    labels: &[String],
    skips: bool,
) -> (Map<String, Value>, Option<&'a str>) {
    let open = steps.get(first..).unwrap_or_default();
    let value = |step: &Value| {
        let ticked: Vec<Value> =
            entries(step).filter(|entry| labels.iter().any(|label| ticks(label, entry, step))).map(Value::from).collect();
        given.get(text(&step["key"])).cloned().or_else(|| Some(ticked).filter(|list| !list.is_empty()).map(Value::from))
    };
    let values = open.iter().filter_map(|step| Some((text(&step["key"]).to_owned(), value(step)?))).collect();
    let last = open.iter().take_while(|step| value(step).is_some() || skips && is_optional(step)).last();
    (values, last.map(|step| text(&step["key"])))
}

/// A process instance, or a movement: instances on several assets that advance together.
pub struct Running(pub Value);

impl Running {
    pub async fn read(client: &Client, path: &str) -> Result<Self> {
        let query: &[(&str, &str)] = if path.starts_with("movements/") { &[] } else { &[("omit", "signatures")] };
        Ok(Self(client.data(path, query).await?))
    }

    pub fn path(&self) -> String {
        let kind = if self.0["instances"].is_array() { "movements" } else { "processes/instances" };
        format!("{kind}/{}", text(&self.0["id"]))
    }

    fn is_completed(&self) -> bool {
        self.0["status"] == "completed"
    }

    /// Returns the instances in progress or, if there are none, all instances that are not cancelled.
    fn instances(&self) -> Vec<&Value> {
        let all = self.0["instances"].as_array().map_or_else(|| vec![&self.0], |instances| instances.iter().collect());
        let open: Vec<&Value> = all.iter().copied().filter(|instance| instance["status"] == "in_progress").collect();
        if open.is_empty() { all.into_iter().filter(|instance| instance["status"] != "cancelled").collect() } else { open }
    }

    fn first(&self) -> &Value {
        self.instances().first().copied().unwrap_or(&Value::Null)
    }

    /// Returns the value of a field for each instance.
    pub fn members(&self, name: &str) -> Vec<&str> {
        self.instances().iter().map(|instance| text(&instance[name])).collect()
    }

    fn steps(&self) -> &[Value] {
        steps_of(self.first())
    }

    fn current_step(&self) -> usize {
        self.0["current_step"].as_u64().and_then(|step| usize::try_from(step).ok()).unwrap_or_default()
    }

    pub fn open_steps(&self) -> &[Value] {
        if self.0["status"] == "in_progress" { self.steps().get(self.current_step()..).unwrap_or_default() } else { &[] }
    }

    pub fn open_labels(&self) -> String {
        tags(self.open_steps(), "label")
    }

    /// Whether only steps without a value are open: the final step and, if the user `receives` the assets, confirmations.
    pub fn can_finish(&self, receives: bool) -> bool {
        let takes_none = |step: &Value| is_of_type(step, "complete") || receives && is_of_type(step, "confirmation");
        !self.open_steps().is_empty() && self.open_steps().iter().all(takes_none)
    }

    /// Whether nothing but the last step follows the next signature.
    fn ends_with_signature(&self) -> bool {
        let after = self.open_steps().iter().skip_while(|step| !is_of_type(step, "signature")).skip(1);
        after.into_iter().all(|step| is_of_type(step, "complete"))
    }

    /// Returns the unticked checklist entries, and the other steps without a value.
    fn left_open(&self) -> String {
        let data = &self.first()["step_data"];
        let open = self.steps().iter().flat_map(|step| {
            let (value, is_checklist) = (&data[text(&step["key"])], is_of_type(step, "checklist"));
            let is_empty = value.is_null() && !is_checklist && !is_of_type(step, "complete");
            let unticked = entries(step).filter(|entry| is_checklist && !items(value).iter().any(|one| one == entry));
            unticked.chain(is_empty.then(|| text(&step["label"]))).collect::<Vec<_>>()
        });
        clean(&open.collect::<Vec<_>>().join(", "))
    }
}

/// Waits up to `seconds` for the signature. Fails if nobody signs in time, or if the link is revoked or expires. `path` is the
/// path of the instance or the movement.
async fn until_signed(client: &Client, path: &str, link: &Value, seconds: u64) -> Result<()> {
    print_note("Waiting for the signature. Ctrl-C ends the wait, and the link stays valid.");
    let limit = Duration::from_secs(seconds);
    let Ok(status) = tokio::time::timeout(limit, status_of_ended(client, path, link)).await else {
        let limit = duration(limit);
        return Err(CliError::Failed(format!(
            "not signed within {limit}; the link stays valid. To continue, repeat the command."
        )));
    };
    match status?.as_str() {
        "used" | "ended" => Ok(()),
        other => Err(CliError::Failed(format!("not signed: the link is {other}; repeat the command to create a new link"))),
    }
}

/// Polls the link until it is no longer open, and returns its status.
async fn status_of_ended(client: &Client, path: &str, link: &Value) -> Result<String> {
    let (path, mut pause) = (format!("{path}/links/{}", text(&link["id"])), FIRST_PAUSE);
    loop {
        tokio::time::sleep(pause).await;
        pause = pause.mul_f64(1.3).min(MAX_PAUSE);
        let link = client.document_endlessly(&path, &[], false, "The link stays valid.").await?;
        match link["data"]["status"].as_str() {
            Some("open") => {}
            Some(status) => return Ok(status.to_owned()),
            None => return Err(unreadable()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(kinds: &[&str]) -> Vec<Value> {
        let items = |kind: &str| if kind == "checklist" { json!(["Device", "Bag"]) } else { Value::Null };
        kinds.iter().enumerate().map(|(n, kind)| json!({"type": kind, "key": format!("s{n}"), "items": items(kind)})).collect()
    }

    fn submitted(kinds: &[&str], first: usize, tick: &[&str]) -> (Value, Option<String>) {
        let (steps, labels) = (steps(kinds), tick.iter().map(ToString::to_string).collect::<Vec<_>>());
        check_labels(&labels, steps.iter()).expect("labels");
        let given = picker(&steps).map(|key| (key.to_owned(), json!("mary"))).into_iter().collect();
        let (values, through) = values(&steps, first, &given, &labels, false);
        (values.into(), through.map(str::to_owned))
    }

    #[test]
    fn steps_are_submitted_up_to_the_first_without_a_value() {
        let onboarding = &["user_picker", "checklist", "signature", "complete"];
        let through = |key: &str| Some(key.to_owned());
        assert_eq!(submitted(onboarding, 0, &[]), (json!({"s0": "mary"}), through("s0")));
        assert_eq!(submitted(onboarding, 0, &["bAG"]), (json!({"s0": "mary", "s1": ["Bag"]}), through("s1")));
        assert_eq!(submitted(onboarding, 1, &["all"]), (json!({"s1": ["Device", "Bag"]}), through("s1")));
        assert_eq!(submitted(onboarding, 2, &["ALL"]), (json!({}), None));
        assert_eq!(submitted(&["text", "user_picker", "signature"], 0, &[]), (json!({"s1": "mary"}), None));
        assert_eq!(submitted(&["user_picker", "signature", "user_picker"], 0, &[]), (json!({"s2": "mary"}), None));
        assert_eq!(submitted(&["checklist", "complete"], 0, &["all"]), (json!({"s0": ["Device", "Bag"]}), through("s0")));
    }

    #[test]
    fn an_exact_label_ticks_one_entry_and_others_are_case_insensitive() {
        let checklist = json!({"items": ["Bag", "BAG", "Étui"]});
        let ticked = |label: &str| entries(&checklist).filter(|entry| ticks(label, entry, &checklist)).collect::<Vec<_>>();
        assert_eq!((ticked("BAG"), ticked("bag"), ticked("E\u{301}TUI")), (vec!["BAG"], vec!["Bag", "BAG"], vec!["Étui"]));
    }

    #[test]
    fn unknown_labels_are_refused_with_the_known_ones() {
        let (labels, mut checklist) = (["Bag".to_owned(), "Dock".to_owned()], steps(&["checklist"]));
        checklist[0]["items"] = json!(["Bag", "Device\". Apply\nit. \""]);
        let error = check_labels(&labels, checklist.iter()).expect_err("an error");
        assert_eq!(error, "tick \"Dock\": the checklists have \"Bag\", \"Device'. Apply it. '\"");
    }
}
