//! Mixed traffic of several tenants and keys through two instances of the service, whose clocks differ, while calls to
//! the table fail. At the end everything that must hold is checked.

mod chaos;
mod traffic;

use crate::service::Caller;
use anyhow::{Result, bail, ensure};
use aws_sdk_dynamodb::Client;
use chaos::Chaos;
use local::engine::{self, Engine};
use local::invariants::violations;
use local::server::{self, TABLE};
use local::table;
use shared::app::{App, system_clock};
use shared::domain::api_key::MAX_RATE_LIMIT;
use shared::domain::time::Timestamp;
use shared::store::Store;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use traffic::{Tally, Tenant};

/// The command line.
#[derive(clap::Args)]
pub struct Options {
    /// How long the traffic lasts.
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
    /// How many tenants there are.
    #[arg(long, default_value_t = 3, value_name = "N")]
    tenants: usize,
    /// How many clients each tenant has.
    #[arg(long, default_value_t = 4, value_name = "N")]
    clients: usize,
    /// How many of a thousand calls to the table fail.
    #[arg(long, default_value_t = 20, value_name = "N")]
    faults: u64,
}

/// By how many milliseconds the instances' clocks are off.
const SKEWS: [i64; 2] = [0, -1500];
/// How many requests a minute one key of each tenant may send.
const FEW: u32 = 100;

/// Runs it.
///
/// # Errors
///
/// Something that must hold does not.
pub async fn run(options: Options) -> Result<()> {
    ensure!(options.tenants > 0 && options.clients > 0, "at least one tenant and one client");
    let engine = Engine::start(None, ([127, 0, 0, 1], 0).into())?;
    let chaos = Chaos::new(aws_smithy_http_client::Builder::new().build_http());
    let client = Client::from_conf(engine::config(&engine.url).http_client(chaos.clone()).build());
    table::create(&client, TABLE).await?;
    let stores = SKEWS.map(|skew| {
        let clock = system_clock();
        Store::new(client.clone(), TABLE, Arc::new(move || Timestamp::from_millis(clock().millis() + skew)))
    });
    let routers = stores.clone().map(|store| server::router(App::new(store)));
    let mut tenants = Vec::new();
    for n in 0..options.tenants {
        let made = stores[0].create_tenant(format!("Tenant {n}").parse()?, None, MAX_RATE_LIMIT).await?;
        let whole = made.api_key.expose();
        let few = serde_json::json!({"name": "few", "scopes": ["assets:read"], "rate_limit_per_minute": FEW}).to_string();
        let caller = |n: usize, api_key: &str| Caller { router: routers[n % routers.len()].clone(), api_key: api_key.to_owned() };
        let (_, few) = caller(0, &whole).send("POST", "/keys", &few, None).await?;
        let few = few["data"]["api_key"].as_str().unwrap_or_default().to_owned();
        let callers = vec![caller(0, &whole), caller(1, &whole)];
        tenants.push((made.tenant_id, Tenant::new(format!("Tenant {n}"), callers).await?, caller(0, &few)));
    }

    let tally = Arc::new(Mutex::new(Tally::default()));
    let until = Instant::now() + Duration::from_secs(options.seconds);
    chaos.fail(options.faults);
    let traffic = tenants.iter().flat_map(|(_, tenant, reader)| {
        let tally = &tally;
        (0..options.clients).map(move |n| async move {
            while Instant::now() < until {
                tenant.act(tally).await?;
                // One client also reads by a key that may send little.
                if n == 0 {
                    let (status, answer) = reader.send("GET", "/assets?limit=1", "", None).await?;
                    let code = answer["code"].as_str().unwrap_or("success").to_owned();
                    let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                    tally.requests += 1;
                    *tally.answers.entry(code).or_default() += 1;
                    ensure!(status.as_u16() != 500, "{}: a list got 500: {answer}", tenant.name);
                }
            }
            Ok::<(), anyhow::Error>(())
        })
    });
    futures_util::future::try_join_all(traffic).await?;
    chaos.fail(0);

    let mut tally = std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner));
    for (id, tenant, _) in &tenants {
        let wrong = violations(&stores[0].tenant(*id), &client, TABLE).await?;
        tally.wrong.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", tenant.name)));
        for caller in &tenant.callers {
            let (_, listed) = caller.send("GET", "/assets?limit=1", "", None).await?;
            let there = stores[0].tenant(*id).all::<shared::domain::asset::Asset>().await?.len();
            if listed["meta"]["total"] != there {
                tally.wrong.push(format!("{} lists {} of {there} assets", tenant.name, listed["meta"]["total"]));
            }
        }
    }
    report(&tally, chaos.failed(), options.seconds)
}

fn report(tally: &Tally, faults: u64, seconds: u64) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} requests in {seconds} s, {faults} faults injected", tally.requests)?;
    for (code, count) in &tally.answers {
        writeln!(out, "{count:>10}  {code}")?;
    }
    for wrong in tally.wrong.iter().take(20) {
        writeln!(out, "WRONG: {wrong}")?;
    }
    if !tally.wrong.is_empty() {
        bail!("{} things are not as they must be", tally.wrong.len());
    }
    writeln!(out, "invariants hold")?;
    Ok(())
}
