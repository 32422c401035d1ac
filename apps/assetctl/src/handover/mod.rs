//! `assetctl handover` and `assetctl return`: their options, and what they do and print.

pub mod order;
pub mod running;

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::handover::order::{Order, State, is_of_type, steps_of, values};
use crate::handover::running::Running;
use crate::http::client::Client;
use crate::http::request::{new_run_id, post_data};
use crate::interrupt::Interrupt;
use crate::lookup::{person, tag_and_name, text};
use crate::output::{print, print_json};
use clap::Args;
use qrcode::render::unicode::Dense1x2;
use qrcode::{EcLevel, QrCode};
use reqwest::Url;
use serde_json::{Map, Value, json};
use terminal::{clean, print_note, print_styled, style};

/// Looks at the assets: again after a preparation, and after somebody else was faster.
const MAX_LOOKS: u32 = 4;

/// Hands assets over or takes them back, or goes on after an interruption.
pub async fn handover(errand: Errand<'_>, connection: &Connection, is_json: bool) -> Result<u8> {
    let (mut interrupt, client) = (Interrupt::listen(), Client::new(connection)?);
    tokio::select! {
        biased;
        _ = interrupt.next() => Err(CliError::Interrupted("Interrupted. To go on, repeat the command; a link stays valid.".into())),
        done = carry_out(&client, errand, is_json) => done,
    }
}

/// Starts the process or continues it, and makes a link for the signature. After the signature, submits what is left.
async fn carry_out(client: &Client, errand: Errand<'_>, is_json: bool) -> Result<u8> {
    let (order, run) = (Order::read(client, errand, new_run_id()?).await?, errand.run);
    let running = order.finish(order.begin().await?).await?;
    if run.dry_run || running.0["status"] == "completed" {
        return order.show(&running, None, is_json);
    }
    let is_signature = |step: &Value| is_of_type(step, "signature");
    if running.steps().iter().any(is_signature) && !running.open_steps().iter().any(is_signature) {
        return Err(order.unfinished(&running));
    }
    let url = client.url(&format!("{}/links", running.path()), &[] as &[(&str, &str)])?;
    // Without an idempotency key: a repeated response would lack the secret.
    let link = post_data(client, &url, &json!({"signer": {"user_id": order.user["id"]}}), None).await?;
    let shown = order.show(&running, Some(&link), is_json)?;
    if !run.wait {
        return Ok(shown);
    }
    running::until_signed(client, &running.path(), &link, run.timeout).await?;
    let signed = order.finish(Running::read(client, &running.path()).await?).await?;
    if signed.0["status"] == "completed" { order.show(&signed, None, is_json) } else { Err(order.unfinished(&signed)) }
}

impl Order<'_> {
    fn query(&self) -> &[(&str, &str)] {
        if self.errand.run.dry_run { &[("dry_run", "true")] } else { &[] }
    }

    fn unfinished(&self, running: &Running) -> CliError {
        CliError::Failed(match running.0["status"].as_str() {
            Some("in_progress") => format!("signed, but this command can't submit the rest: {}", running.open_labels()),
            status => clean(&format!("the {} is {}", self.noun(), status.unwrap_or("unreadable"))),
        })
    }

    /// Submits what is left after the signature. In a return, that it was received.
    async fn finish(&self, running: Running) -> Result<Running> {
        // A dry run can't go on from where another one would end.
        let is_there = async || match self.errand.run.dry_run {
            true if running.0["id"].is_null() => Ok::<_, CliError>(false),
            true => Ok(Running::read(self.client, &running.path()).await?.current_step() == running.current_step()),
            false => Ok(true),
        };
        if running.can_finish(self.is_return()) && is_there().await? {
            running.finish(self.client, self.is_return(), self.query()).await
        } else {
            Ok(running)
        }
    }

    /// Starts the process or goes on with it. In a dry run, perhaps the preparation.
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
                            let left = Some(prepared.left_open()).filter(|left| !left.is_empty());
                            let left = left.map_or(String::new(), |left| format!("; left open: {left}"));
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
        Err(CliError::Failed("others change the assets at the same time; try again".into()))
    }

    /// Starts a process on assets, and submits what can be submitted: all of a preparation, which would else be in the way.
    async fn start(&self, process: &Value, assets: &[Value]) -> Result<Running> {
        let steps = steps_of(process);
        let (values, ready) = values(steps, 0, &self.given(steps), &self.errand.run.tick);
        let last = steps_of(process).last().map(|step| text(&step["key"]));
        let mut body = json!({"step_data": values});
        if let Some(key) = if process["id"] == self.process["id"] { ready } else { last } {
            body["through"] = key.into();
        }
        match assets {
            [asset] => body["asset_id"] = asset["id"].clone(),
            assets => body["asset_ids"] = assets.iter().map(|asset| asset["id"].clone()).collect(),
        }
        let url = self.client.url(&format!("processes/{}/start", text(&process["id"])), self.query())?;
        match self.post(&url, &body).await {
            Err(error) if error.is_too_many_steps() => {
                let through = body["through"].take();
                let values = body["step_data"].take();
                let started = self.post(&url, &json!({"asset_ids": body["asset_ids"]})).await?;
                self.advance_singly(started, text(&through), values.as_object().cloned().unwrap_or_default()).await
            }
            started => started,
        }
    }

    async fn post(&self, url: &Url, body: &Value) -> Result<Running> {
        Ok(Running(post_data(self.client, url, body, self.key(url, body).as_deref()).await?))
    }

    /// One step after the other up to `through`, where all are too many changes for one transaction. A dry run stays at the first.
    async fn advance_singly(&self, mut running: Running, through: &str, values: Map<String, Value>) -> Result<Running> {
        while let (false, [step, ..]) = (self.errand.run.dry_run, running.open_steps()) {
            let key = text(&step["key"]).to_owned();
            running = running.advance(self.client, &key, values.clone(), &[]).await?;
            if key == through {
                break;
            }
        }
        Ok(running)
    }

    async fn go_on(&self, running: Running) -> Result<Running> {
        let given = self.given(running.steps());
        let (values, through) = values(running.steps(), running.current_step(), &given, &self.errand.run.tick);
        match through {
            None => Ok(running),
            Some(through) => match running.advance(self.client, through, values.clone(), self.query()).await {
                Err(error) if error.is_too_many_steps() => {
                    let through = through.to_owned();
                    self.advance_singly(running, &through, values).await
                }
                advanced => advanced,
            },
        }
    }

    /// For people, the address of the link or the receipt is on standard output, and everything else on standard error.
    fn show(&self, running: &Running, link: Option<&Value>, is_json: bool) -> Result<u8> {
        let (is_dry_run, is_completed) = (self.errand.run.dry_run, running.0["status"] == "completed");
        let receipt = self.client.url(&format!("{}/receipt", running.path()), &[("format", "html")])?;
        if is_json {
            print_json(&json!({
                "user": self.user, "process": self.process, "assets": self.assets, "status": running.0["status"],
                "path": (!is_dry_run).then(|| running.path()), "open_steps": running.open_steps(), "link": link,
                "receipt": (is_completed && !is_dry_run).then(|| receipt.as_str()), "dry_run": is_dry_run
            }))?;
            return Ok(EXIT_SUCCESS);
        }
        let until = link.map(|link| format!("until {} UTC; whoever has it can sign", terminal::time(text(&link["expires_at"]))));
        let is_own = running.0["process_id"] == self.process["id"];
        let direction = if self.is_return() { "From" } else { "To" };
        let members = [
            ("Process", Some(text(&running.0["process_name"]).to_owned())),
            ("Assets", Some(tags(&self.assets))),
            (direction, self.user.is_object().then(|| person(&self.user))),
            ("Left open", Some(running.left_open()).filter(|left| !is_own && !left.is_empty())),
            ("Steps left", Some(running.open_labels()).filter(|labels| !labels.is_empty())),
            ("Link", until),
            (
                "Then",
                link.filter(|_| self.is_return() && !self.errand.run.wait)
                    .map(|_| "repeat the command once it is signed and here".to_owned()),
            ),
            ("Receipt", (is_completed && !is_dry_run).then(|| "to open it takes an API key".to_owned())),
        ];
        let members = members.into_iter().filter_map(|(title, text)| Some((title, text?)));
        let summary = terminal::record(members, terminal::width());
        let Some(link) = link else {
            let would_be = match (is_completed, is_own) {
                (true, true) => "This would be completed.",
                (true, false) => "This would be completed first.",
                _ => "It would be at this point.",
            };
            if is_dry_run {
                print(&format!("{summary}\n\n{would_be}"))?;
            } else {
                print_note(&summary);
                print(receipt.as_str())?;
            }
            return Ok(EXIT_SUCCESS);
        };
        print_note(&summary);
        let address = clean(text(&link["url"]));
        print(&address)?;
        if terminal::is_terminal() || self.errand.run.qr {
            let code = qr_code(&address, style::is_output_coloured());
            print_styled(&code.unwrap_or_else(|| "(too long for a QR code)".to_owned()))?;
        }
        Ok(EXIT_SUCCESS)
    }
}

/// One line.
fn tags(assets: &[Value]) -> String {
    match assets {
        [one] => tag_and_name(one),
        several => clean(&several.iter().map(|asset| text(&asset["asset_tag"])).collect::<Vec<_>>().join(", ")),
    }
}

/// Options of `handover`.
#[derive(Debug, Args)]
pub struct Handover {
    /// Assets to hand over, up to 20: tags, ids or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// Who gets it: an e-mail address, a name or an id
    #[arg(long, value_name = "USER")]
    pub to: String,
    /// The process that hands it over, by its slug
    #[arg(long, value_name = "SLUG", default_value = "employee-onboarding")]
    pub process: String,
    /// Run the process `prepare` first on what is still in stock
    #[arg(long)]
    pub prepare: bool,
    /// How it runs
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of `return`.
#[derive(Debug, Args)]
pub struct Return {
    /// Assets to take back, up to 20: tags, ids or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// Who gives it back and signs: an e-mail address, a name or an id; otherwise, its user
    #[arg(long, value_name = "USER")]
    pub from: Option<String>,
    /// Condition and damage; otherwise, the signer can write it
    #[arg(long, value_name = "TEXT")]
    pub condition: Option<String>,
    /// The process that takes it back, by its slug
    #[arg(long, value_name = "SLUG", default_value = "device-return")]
    pub process: String,
    /// How it runs
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options that both have.
#[derive(Debug, Default, Args)]
pub struct RunOptions {
    /// Tick an entry of the checklists, in upper or lower case, or `all`; otherwise, the signer ticks them
    #[arg(long, value_name = "LABEL")]
    pub tick: Vec<String>,
    /// Wait until it is signed, and submit the steps that are left
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Maximum number of seconds to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, requires = "wait")]
    pub timeout: u64,
    /// Show the QR code of the link even if the output is no terminal
    #[arg(long)]
    pub qr: bool,
    /// Show what would happen, and write nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What a command asks for.
#[derive(Clone, Copy)]
pub struct Errand<'a> {
    pub assets: &'a [String],
    /// Slug of the process.
    pub process: &'a str,
    pub run: &'a RunOptions,
    pub way: Way<'a>,
}

#[derive(Clone, Copy)]
pub enum Way<'a> {
    To {
        user: &'a str,
        prepare: bool,
    },
    /// From the user of the assets, unless it is said.
    Back {
        from: Option<&'a str>,
        condition: Option<&'a str>,
    },
}

impl Handover {
    pub fn errand(&self) -> Errand<'_> {
        let way = Way::To { user: &self.to, prepare: self.prepare };
        Errand { assets: &self.assets, process: &self.process, run: &self.run, way }
    }
}

impl Return {
    pub fn errand(&self) -> Errand<'_> {
        let way = Way::Back { from: self.from.as_deref(), condition: self.condition.as_deref() };
        Errand { assets: &self.assets, process: &self.process, run: &self.run, way }
    }
}

/// A line of half blocks for every two rows of modules, with the quiet zone; `None` for a text that no code has room for. Light
/// modules are drawn, and dark ones left out, because most terminals are dark; with colours, any terminal shows it so.
#[must_use]
fn qr_code(text: &str, is_coloured: bool) -> Option<String> {
    // On a screen nothing is smudged: the smallest code is the best.
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let drawn = code.render().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).module_dimensions(1, 1).build();
    Some(drawn.lines().map(|line| style::paint(line, style::CODE, is_coloured)).collect::<Vec<_>>().join("\n"))
}
