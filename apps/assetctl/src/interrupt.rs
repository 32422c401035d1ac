//! Ctrl-C, and the signal by which a system ends programs.

use tokio::sync::watch;

/// Tells whether the program was asked to end.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<u32>);

impl Interrupt {
    /// Listens from now on: the first time, the program ends in order; the second time, at once.
    #[must_use]
    pub fn listen() -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            while !sender.is_closed() && next_signal().await {
                sender.send_modify(|count| *count += 1);
            }
        });
        Self(receiver)
    }

    /// Returns how often the program was asked to end.
    #[must_use]
    pub fn count(&self) -> u32 {
        *self.0.borrow()
    }

    /// Waits until the program is asked to end once more.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
async fn next_signal() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return tokio::signal::ctrl_c().await.is_ok() };
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.is_ok(),
        signal = terminate.recv() => signal.is_some(),
    }
}

#[cfg(not(unix))]
async fn next_signal() -> bool {
    tokio::signal::ctrl_c().await.is_ok()
}
