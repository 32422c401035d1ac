//! Receipt handles.

use anyhow::{Context, Error, Result};
use std::fmt::{self, Display};
use std::str::FromStr;

/// The contents of a receipt handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipt {
    pub id: i64,
    pub receives: u32,
}

impl Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.id, self.receives)
    }
}

impl FromStr for Receipt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once('-').and_then(|(id, receives)| Some((id.parse().ok()?, receives.parse().ok()?)));
        let (id, receives) = parts.context("this is no receipt handle")?;
        Ok(Self { id, receives })
    }
}
