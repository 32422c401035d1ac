//! The phases of a simulation: with faults and without, and the minutes between them.

use super::service::Service;
use crate::faulty_table::{SeededRandom, Weaknesses};
use std::time::Duration;
use tokio::time::sleep;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Two phases with faults, of about two minutes each.
    Full,
    /// A phase with faults of half a minute.
    Short,
}

/// Sets the weaknesses until the simulation is over.
pub async fn run(service: &Service, random: SeededRandom, length: Length) {
    // Behaviour without a guarantee by DynamoDB may differ from seed to seed.
    let pick = |choices: &[u64]| choices[random.below(choices.len() as u64) as usize];
    let ordinary = Weaknesses {
        torn_millis: pick(&[0, 5, 20, 100]),
        list_index_lag_millis: pick(&[0, 200, 5_000, 60_000]),
        history_lag_millis: pick(&[0, 5_000, 60_000, 75_000, 1_800_000, 3_500_000]),
        cut_page_per_mille: pick(&[0, 200, 900]),
        ..Weaknesses::ordinary()
    };
    let (storms, share) = if length == Length::Full { (2, 1) } else { (1, 3) };
    let pause = |seconds: u64| sleep(Duration::from_secs(seconds / share));
    for _ in 0..storms {
        service.table.set(ordinary.clone().with_faults());
        service.set_kills(30);
        pause(15 + random.below(20)).await;
        service.table.set(ordinary.clone());
        service.set_kills(0);
        pause(20 + random.below(15)).await;
        // Records without changes for hours are old in every comparison of times.
        service.idle(Duration::from_secs(pick(&[1, 120, 3_000, 7_200]))).await;
        pause(10).await;
    }
    service.end();
}
