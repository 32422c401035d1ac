//! Figures of both builds, round by round.

use anyhow::Result;
use std::io::Write;

/// The figures, in the order in which they were first added.
#[derive(Default)]
pub struct Figures(Vec<(String, [Vec<f64>; 2])>);

impl Figures {
    /// Adds the figure of a round: side 0 is the old build, side 1 the new one.
    pub fn add(&mut self, label: &str, side: usize, value: f64) {
        let known = self.0.iter().position(|(known, _)| known == label);
        let index = known.unwrap_or_else(|| {
            self.0.push((label.to_owned(), Default::default()));
            self.0.len() - 1
        });
        self.0[index].1[side].push(value);
    }

    pub fn median(&self, label: &str, side: usize) -> Option<f64> {
        self.0.iter().find(|(known, _)| known == label).map(|(_, sides)| quantile(&sides[side], 0.5))
    }

    /// Prints a line for each figure: the medians of both builds, and the ratios of the rounds.
    pub fn print(&self, title: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{title}; medians, and new divided by old with its quartiles")?;
        writeln!(out, "{:<30}{:>10}{:>10}{:>8}   quartiles", "", "old", "new", "ratio")?;
        for (label, [old, new]) in &self.0 {
            let (ratio, [first, third]) = ratios(old, new);
            let [old, new] = [old, new].map(|values| quantile(values, 0.5));
            writeln!(out, "{label:<30}{old:>10.3}{new:>10.3}{ratio:>8.2}   {first:.2}–{third:.2}")?;
        }
        Ok(())
    }
}

/// The median and the quartiles of new divided by old, round by round.
fn ratios(old: &[f64], new: &[f64]) -> (f64, [f64; 2]) {
    let ratios: Vec<f64> = old.iter().zip(new).map(|(old, new)| new / old).collect();
    (quantile(&ratios, 0.5), [0.25, 0.75].map(|share| quantile(&ratios, share)))
}

/// Interpolated between its neighbours.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = share * sorted.len().saturating_sub(1) as f64;
    let at = |index: f64| sorted.get(index as usize).copied().unwrap_or_default();
    at(position.floor()) + (at(position.ceil()) - at(position.floor())) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_the_rounds() {
        // A round with other load on the machine slows both down.
        let (ratio, quartiles) = ratios(&[1.0, 10.0, 2.0, 4.0, 8.0], &[2.0, 20.0, 2.0, 6.0, 16.0]);
        assert_eq!((ratio, quartiles), (2.0, [1.5, 2.0]));
        assert_eq!(quantile(&[1.0, 2.0], 0.5), 1.5);
    }
}
