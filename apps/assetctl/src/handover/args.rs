//! The command lines of `handover` and `return`.

use clap::Args;

/// Options of `handover`.
#[derive(Debug, Args)]
pub struct Handover {
    /// What is handed over, 20 assets at most: tags, ids or serial numbers
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
    /// What comes back, 20 assets at most: tags, ids or serial numbers
    #[arg(required = true, value_name = "TAG")]
    pub assets: Vec<String>,
    /// Who gives it back and signs: an e-mail address, a name or an id; its user without
    #[arg(long, value_name = "USER")]
    pub from: Option<String>,
    /// Condition and damage; without, whoever signs can write it
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
    /// Tick an entry of the checklists, in any case, or `all`; without, whoever signs ticks them
    #[arg(long, value_name = "LABEL")]
    pub tick: Vec<String>,
    /// Wait until it is signed, and submit the steps that are left
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// The longest wait
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, requires = "wait")]
    pub timeout: u64,
    /// Show the QR code of the link even if the output is no terminal
    #[arg(long)]
    pub qr: bool,
    /// Say what would happen, and write nothing
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
