//! Handles Ctrl-C and SIGTERM.

use tokio::sync::watch;

/// Counts requests to shut the program down.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<u32>);

impl Interrupt {
    /// Starts listening: the first request shuts the program down cleanly, the second one at once.
    pub fn listen() -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            while !sender.is_closed() && next_signal().await {
                sender.send_modify(|count| *count += 1);
            }
        });
        Self(receiver)
    }

    pub fn count(&self) -> u32 {
        *self.0.borrow()
    }

    /// Waits for the next request, and returns the number of requests so far. [`count`](Self::count) can include a request before
    /// this method returns it.
    pub async fn next(&mut self) -> u32 {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.0.borrow_and_update()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_first_request_that_was_counted_before_it_was_awaited_is_still_the_first() {
        let (sender, receiver) = watch::channel(0);
        let mut interrupt = Interrupt(receiver);
        sender.send_modify(|count| *count += 1);
        assert_eq!(interrupt.count(), 1);
        assert_eq!(interrupt.next().await, 1);
        sender.send_modify(|count| *count += 1);
        assert_eq!(interrupt.next().await, 2);
    }
}
