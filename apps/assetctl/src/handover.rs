//! `assetctl handover` and `assetctl return`: start or continue a process on assets, create a signing link, wait for the
//! signature, and submit the remaining steps.

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::http::{Client, new_run_id, unreadable};
use crate::interrupt::Interrupt;
use crate::lookup::{self, items, person, person_with, tag_and_name, text};
use crate::output::{duration, folded, print_json, quote};
use clap::Args;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use terminal::{clean, print, print_note, print_styled, style, time};

/// Maximum number of times that the assets are read before the command fails: they are read again after a preparation and after a
/// concurrent change.
const MAX_LOOKS: u32 = 4;
/// Slug of the process that prepares assets in stock.
const PREPARE: &str = "prepare";
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
    /// Run the process `prepare` first on assets that are still in stock
    #[arg(long)]
    pub prepare: bool,
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
    /// Slug of the process that takes the assets back
    #[arg(long, value_name = "SLUG", default_value = RETURN)]
    pub process: String,
    #[command(flatten)]
    pub run: RunOptions,
}

#[derive(Debug, Default, Args)]
pub struct RunOptions {
    /// Tick a checklist entry (case-insensitive), or `all`; without this option, the signer ticks the entries
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

/// A handover or a return, from the arguments.
#[derive(Clone, Copy)]
pub struct Errand<'a> {
    assets: &'a [String],
    /// Slug of the process.
    process: &'a str,
    run: &'a RunOptions,
    is_return: bool,
    /// User who gets the assets, or gives them back; `None` for the assets' current user.
    user: Option<&'a str>,
    prepare: bool,
    condition: Option<&'a str>,
}

impl Handover {
    pub fn errand(&self) -> Errand<'_> {
        let Self { assets, to, process, prepare, run } = self;
        Errand { assets, process, run, is_return: false, user: Some(to), prepare: *prepare, condition: None }
    }
}

impl Return {
    pub fn errand(&self) -> Errand<'_> {
        let Self { assets, from, condition, process, run } = self;
        let (user, condition) = (from.as_deref(), condition.as_deref());
        Errand { assets, process, run, is_return: true, user, prepare: false, condition }
    }
}

/// Hands assets over or takes them back, or continues after an interruption.
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
    let (order, run) = (Order::read(client, errand, new_run_id()?).await?, errand.run);
    let running = order.finish(order.begin().await?).await?;
    if run.dry_run || running.is_completed() {
        return order.show(&running, None, is_json);
    }
    let is_signature = |step: &Value| is_of_type(step, "signature");
    if running.steps().iter().any(is_signature) && !running.open_steps().iter().any(is_signature) {
        return Err(order.unfinished(&running));
    }
    let path = running.path();
    // No idempotency key, because a replayed response would lack the link's secret.
    let link = client.post(&format!("{path}/links"), &[], &json!({"signer": {"user_id": order.user["id"]}}), None).await?;
    let shown = order.show(&running, Some(&link), is_json)?;
    if !run.wait {
        return Ok(shown);
    }
    until_signed(client, &path, &link, run.timeout).await?;
    let signed = order.finish(Running::read(client, &path).await?).await?;
    if signed.is_completed() { order.show(&signed, None, is_json) } else { Err(order.unfinished(&signed)) }
}

/// Assets to hand over or to take back, and the process to run on them.
pub struct Order<'a> {
    client: &'a Client,
    errand: Errand<'a>,
    /// The signer; null for a return of assets that have no user or several users.
    pub user: Value,
    pub process: Value,
    preparation: Option<Value>,
    pub assets: Vec<Value>,
    /// Prefix of the idempotency keys.
    run: String,
}

enum State {
    /// The process can start.
    New,
    /// These assets must be prepared first.
    Unprepared(Vec<Value>),
    /// The process was started for the same user.
    Running(Running),
    Done(Running),
}

impl<'a> Order<'a> {
    /// Reads the assets, the user and the process.
    ///
    /// # Errors
    ///
    /// Returns an error if one of them doesn't exist, the recipient is inactive, the process lacks a step for the user or the
    /// condition, or no checklist has an entry to tick.
    pub async fn read(client: &'a Client, errand: Errand<'a>, run: String) -> Result<Self> {
        let mut user = Value::Null;
        if let (false, Some(name)) = (errand.is_return, errand.user) {
            user = lookup::user(client, name).await?;
            if user["is_active"] != true {
                return Err(CliError::Failed(format!("{} is inactive: activate the user first", person(&user))));
            }
        }
        let process = lookup::process(client, errand.process).await?;
        let steps = steps_of(&process);
        let lacks = |step: &str| Err(CliError::Usage(format!("the process {} has no {step}", errand.process)));
        if !errand.is_return && picker(steps).is_none() {
            return lacks("step that picks a user, so it can't hand anything over");
        }
        if errand.condition.is_some() && !steps.iter().any(|step| step["key"] == CONDITION) {
            return lacks("step `condition`, so --condition can't be used");
        }
        let preparation = if errand.prepare { Some(lookup::process(client, PREPARE).await?) } else { None };
        check_labels(&errand.run.tick, steps.iter().chain(preparation.iter().flat_map(steps_of))).map_err(CliError::Usage)?;
        let mut assets: Vec<Value> = Vec::new();
        for name in errand.assets {
            let asset = lookup::asset(client, name).await?;
            if !assets.iter().any(|known| known["id"] == asset["id"]) {
                assets.push(asset);
            }
        }
        if errand.is_return {
            let users: BTreeSet<&str> = assets.iter().filter_map(|asset| asset["assigned_to"].as_str()).collect();
            let only = users.first().copied().filter(|_| users.len() == 1);
            if let Some(name) = errand.user.or(only) {
                user = lookup::user(client, name).await?;
            }
        }
        Ok(Self { client, errand, user, process, preparation, assets, run })
    }

    fn noun(&self) -> &'static str {
        if self.errand.is_return { "return" } else { "handover" }
    }

    fn query(&self) -> &'static [(&'static str, &'static str)] {
        if self.errand.run.dry_run { &[("dry_run", "true")] } else { &[] }
    }

    /// Returns the values that the options give for these steps, except ticks.
    fn given(&self, steps: &[Value]) -> Map<String, Value> {
        let given = match self.errand.is_return {
            true => self.errand.condition.map(|text| (CONDITION, text.into())),
            false => picker(steps).map(|key| (key, self.user["id"].clone())),
        };
        given.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    /// Fails if one of these steps is a signature and there is no signer.
    fn check_signer(&self, open: &[Value]) -> Result<()> {
        if self.user.is_object() || !open.iter().any(|step| is_of_type(step, "signature")) {
            return Ok(());
        }
        let why = if self.assets.len() == 1 { "nobody" } else { "nobody, or to different users" };
        let tags = tags(&self.assets, "asset_tag");
        Err(CliError::Usage(format!("{tags}: assigned to {why}; name the person who returns and signs: --from USER")))
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
        if !running.can_finish(self.errand.is_return) {
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
                State::Unprepared(assets) => {
                    match self.start(self.preparation.as_ref().unwrap_or(&self.process), &assets).await {
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
        let (values, ready) = values(steps, 0, &self.given(steps), &self.errand.run.tick);
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

    async fn go_on(&self, running: Running) -> Result<Running> {
        let given = self.given(running.steps());
        let (values, through) = values(running.steps(), running.current_step(), &given, &self.errand.run.tick);
        match through.map(str::to_owned) {
            None => Ok(running),
            Some(through) => self.advance(running, &through, &values).await,
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
            let is_prepare = |process: &&Value| process["slug"] == PREPARE && process["can_start"] == true;
            let helps = all.iter().find(is_prepare).is_some_and(|prepare| prepare["target_status"] == own["trigger_status"]);
            let because = |advice: &str| clean(&format!("{}: {} {advice}", tag_and_name(asset), text(&own["detail"])));
            match own["code"].as_str() {
                None => {}
                Some("PROCESS_RUNNING") => running.push(self.same(text(&own["instance_id"])).await?),
                Some("WRONG_ASSET_STATUS") => match self.finished(text(&asset["id"])).await? {
                    Some(instance) => done.push(instance),
                    None if helps && self.preparation.is_some() => unprepared.push(asset.clone()),
                    None if helps => wrong.push(because("The option prepare runs the process prepare first.")),
                    None => wrong.push(because(&self.advice(asset, all).await?)),
                },
                Some(_) => wrong.push(because("")),
            }
        }
        match (running.len(), done.len()) {
            _ if !wrong.is_empty() => Err(CliError::Failed(wrong.join("\n"))),
            (0, 0) if unprepared.is_empty() => Ok(State::New),
            (0, 0) => Ok(State::Unprepared(unprepared)),
            (begun, 0) if begun == self.assets.len() => self.together(running.swap_remove(0)).await.map(State::Running),
            (0, all) if all == self.assets.len() => self.together(done.swap_remove(0)).await.map(State::Done),
            _ => {
                let begun = tags(running.iter().chain(&done), "asset_tag");
                Err(CliError::Failed(format!("{begun} is already in progress or done: use a separate command for it")))
            }
        }
    }

    /// Returns advice for an asset whose status prevents the start of the process.
    async fn advice(&self, asset: &Value, processes: &[Value]) -> Result<String> {
        let startable = processes.iter().filter(|process| process["can_start"] == true);
        let slugs: Vec<&str> = startable.map(|process| text(&process["slug"])).collect();
        let change = match slugs.as_slice() {
            [] => "No process can start. Change its status first: import a file with the columns asset_tag and status, with \
                 --match asset_tag."
                .to_owned(),
            slugs => format!("Change its status first; these processes can start: {}", slugs.join(", ")),
        };
        let holder = asset["assigned_to"].as_str().filter(|holder| !self.errand.is_return && self.user["id"] != **holder);
        let Some(holder) = holder else { return Ok(change) };
        let holder = person_with(self.client, holder).await?;
        Ok(match slugs.contains(&RETURN) {
            true => format!("{holder} has it: take it back first, assetctl return {}", quote(text(&asset["asset_tag"]))),
            false => format!("{holder} has it. {change}"),
        })
    }

    /// Whether the instance runs the same process and, in a handover, for the same user.
    fn is_own(&self, instance: &Value) -> bool {
        instance["process_id"] == self.process["id"] && (self.errand.is_return || *recipient(instance) == self.user["id"])
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
        let is_there = self.errand.is_return || now["assigned_to"] == self.user["id"];
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
        let direction = if self.errand.is_return { "From" } else { "To" };
        let assets = if let [one] = self.assets.as_slice() { tag_and_name(one) } else { tags(&self.assets, "asset_tag") };
        let repeats = link.is_some() && self.errand.is_return && !self.errand.run.wait;
        let members = [
            ("Process", Some(text(&running.0["process_name"]).to_owned())),
            ("Assets", Some(assets)),
            (direction, self.user.is_object().then(|| person(&self.user))),
            ("Left open", Some(running.left_open()).filter(|left| !is_own && !left.is_empty())),
            ("Steps left", Some(running.open_labels()).filter(|labels| !labels.is_empty())),
            ("Link", until),
            ("Then", repeats.then(|| "repeat the command once it is signed and here".to_owned())),
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
            print(receipt.as_str())?;
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

fn is_same(label: &str, entry: &str) -> bool {
    folded(label.trim()) == folded(entry)
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

/// Returns the step whose user gets the asset: the last user picker.
fn picker(steps: &[Value]) -> Option<&str> {
    steps.iter().rfind(|step| is_of_type(step, "user_picker")).map(|step| text(&step["key"]))
}

/// Returns the values of the steps from `first` on, by step key, and the key of the last step to submit: all steps up to it have
/// values. Uses the `given` values, and ticks `labels` in checklists.
fn values<'a>(
    steps: &'a [Value],
    first: usize,
    given: &Map<String, Value>,
    labels: &[String],
) -> (Map<String, Value>, Option<&'a str>) {
    let open = steps.get(first..).unwrap_or_default();
    let value = |step: &Value| {
        let ticked: Vec<Value> =
            entries(step).filter(|entry| labels.iter().any(|label| ticks(label, entry, step))).map(Value::from).collect();
        given.get(text(&step["key"])).cloned().or_else(|| Some(ticked).filter(|list| !list.is_empty()).map(Value::from))
    };
    let values = open.iter().filter_map(|step| Some((text(&step["key"]).to_owned(), value(step)?))).collect();
    let last = open.iter().take_while(|step| value(step).is_some()).last();
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
        let (values, through) = values(&steps, first, &given, &labels);
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
