//! `assetctl handover`.

pub mod args;
mod code;
pub mod order;
pub mod running;
mod values;
mod wait;

use crate::config::Connection;
use crate::error::{CliError, EXIT_SUCCESS, Result};
use crate::handover::args::Handover;
use crate::handover::order::{Order, State};
use crate::handover::running::Running;
use crate::handover::values::{is_of_type, steps_of, values};
use crate::http::client::Client;
use crate::http::request::{new_run_id, post_data};
use crate::interrupt::Interrupt;
use crate::lookup::{person, tag_and_name, text};
use crate::output::{print, print_json};
use reqwest::Url;
use serde_json::{Map, Value, json};
use terminal::{clean, print_note, print_styled, style};

/// Looks at the assets: again after a preparation, and after somebody else was faster.
const MAX_LOOKS: u32 = 4;

/// Hands assets over, or goes on after an interruption.
pub async fn handover(options: &Handover, connection: &Connection, is_json: bool) -> Result<u8> {
    let (mut interrupt, client) = (Interrupt::listen(), Client::new(connection)?);
    tokio::select! {
        biased;
        _ = interrupt.next() => Err(CliError::Interrupted("Interrupted. To go on, repeat the command; a link stays valid.".into())),
        done = hand_over(&client, options, is_json) => done,
    }
}

/// Starts the process or continues it, and makes a link for the signature.
async fn hand_over(client: &Client, options: &Handover, is_json: bool) -> Result<u8> {
    let order = Order::read(client, options, new_run_id()?).await?;
    let mut running = order.begin().await?;
    if !options.dry_run {
        running = running.complete(client).await?;
    }
    if options.dry_run || running.0["status"] == "completed" {
        return order.show(&running, None, is_json);
    }
    let is_signature = |step: &Value| is_of_type(step, "signature");
    if running.steps().iter().any(is_signature) && !running.open_steps().iter().any(is_signature) {
        return Err(left_open(&running));
    }
    let url = client.url(&format!("{}/links", running.path()), &[] as &[(&str, &str)])?;
    // Without an idempotency key: a repeated response would lack the secret.
    let link = post_data(client, &url, &json!({"signer": {"user_id": order.user["id"]}}), None).await?;
    let shown = order.show(&running, Some(&link), is_json)?;
    if !options.wait {
        return Ok(shown);
    }
    wait::until_signed(client, &running.path(), &link, options.timeout).await?;
    let signed = Running::read(client, &running.path()).await?.complete(client).await?;
    if signed.0["status"] == "completed" { order.show(&signed, None, is_json) } else { Err(left_open(&signed)) }
}

fn left_open(running: &Running) -> CliError {
    CliError::Failed(match running.0["status"].as_str() {
        Some("in_progress") => format!("signed, but this command can't submit the rest: {}", running.open_labels()),
        status => clean(&format!("the handover is {}", status.unwrap_or("unreadable"))),
    })
}

impl Order<'_> {
    fn query(&self) -> &[(&str, &str)] {
        if self.options.dry_run { &[("dry_run", "true")] } else { &[] }
    }

    /// Starts the process or goes on with it. In a dry run, perhaps the preparation.
    pub async fn begin(&self) -> Result<Running> {
        for number in 1..=MAX_LOOKS {
            let begun = match self.look().await? {
                State::Done(running) => Ok(running),
                State::Running(running) => self.go_on(running).await,
                State::New => self.start(&self.process, &self.assets).await,
                State::Unprepared(assets) => {
                    match self.start(self.preparation.as_ref().unwrap_or(&self.process), &assets).await {
                        Ok(prepared) if !self.options.dry_run => {
                            let ticks = if self.options.tick.is_empty() { "; none of its entries are ticked" } else { "" };
                            print_note(&clean(&format!("{}: done{ticks}", text(&prepared.0["process_name"]))));
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
        let (values, ready) = values(steps_of(process), 0, &self.user["id"], &self.options.tick);
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
        while let (false, [step, ..]) = (self.options.dry_run, running.open_steps()) {
            let key = text(&step["key"]).to_owned();
            running = running.advance(self.client, &key, values.clone(), &[]).await?;
            if key == through {
                break;
            }
        }
        Ok(running)
    }

    async fn go_on(&self, running: Running) -> Result<Running> {
        let (values, through) = values(running.steps(), running.current_step(), &self.user["id"], &self.options.tick);
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
        let (is_dry_run, is_completed) = (self.options.dry_run, running.0["status"] == "completed");
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
        let members = [
            ("Process", Some(text(&running.0["process_name"]).to_owned())),
            ("Assets", Some(tags(&self.assets))),
            ("To", Some(person(&self.user))),
            ("Steps left", Some(running.open_labels()).filter(|labels| !labels.is_empty())),
            ("Link", until),
            ("Receipt", (is_completed && !is_dry_run).then(|| "to open it takes an API key".to_owned())),
        ];
        let members = members.into_iter().filter_map(|(title, text)| Some((title, text?)));
        let summary = terminal::record(members, terminal::width());
        let Some(link) = link else {
            let would_be = if is_completed { "This would be completed first." } else { "It would be at this point." };
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
        if terminal::is_terminal() || self.options.qr {
            let code = code::code(&address, style::is_output_coloured());
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
