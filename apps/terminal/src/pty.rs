//! Pseudoterminals for tests of programs' output.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A text with control sequences: sets the title, clears the screen, hides the rest, starts a colour with a single character,
/// deletes, and changes the text direction.
pub const HOSTILE: &str = "A\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[8m\u{9b}31m\u{7f}\u{202e}\u{2067}\u{200e}\u{200f}\u{61c}Z";

/// Time limit for a program to show an expected text or to exit. The test fails after it.
const TIMEOUT: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(10);

/// A program on a separate terminal. Dropping the session kills the program.
#[derive(Debug)]
pub struct Session {
    child: Child,
    keyboard: File,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Session {
    /// Starts a program on a terminal with this many columns.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no terminal, or if the program can't be started.
    pub fn start(mut command: Command, columns: u16) -> io::Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        let path = ptsname(&terminal, Vec::new())?.into_string().map_err(io::Error::other)?;
        let end = OpenOptions::new().read(true).write(true).open(path)?;
        tcsetwinsize(&end, Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
        let stream = || end.try_clone().map(OwnedFd::from);
        let child = command.stdin(stream()?).stdout(stream()?).stderr(stream()?).spawn()?;
        let keyboard = File::from(terminal);
        let (mut screen, shown) = (keyboard.try_clone()?, Arc::<Mutex<Vec<u8>>>::default());
        let sink = Arc::clone(&shown);
        // Reading ends once nobody has the terminal open: this drops the command's handles.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = screen.read(&mut buffer) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&buffer[..length]);
            }
        });
        Ok(Self { child, keyboard, shown })
    }

    #[must_use]
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap_or_else(PoisonError::into_inner)).replace("\r\n", "\n")
    }

    /// Waits until the program has shown the text, and returns all its output.
    ///
    /// # Errors
    ///
    /// Returns an error with the program's output if the text doesn't appear in time.
    pub fn wait_for(&self, text: &str) -> io::Result<String> {
        let shown = poll(|| Ok(Some(self.shown()).filter(|shown| shown.contains(text))))?;
        shown.ok_or_else(|| io::Error::other(format!("{text:?} does not appear in:\n{}", self.shown())))
    }

    /// # Errors
    ///
    /// Returns an error if the program no longer reads its input.
    pub fn type_text(&mut self, text: &str) -> io::Result<()> {
        self.keyboard.write_all(text.as_bytes())
    }

    /// # Errors
    ///
    /// Returns an error with the program's output if it doesn't exit in time.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = poll(|| self.child.try_wait())?;
        // The last output may not have arrived yet.
        std::thread::sleep(10 * INTERVAL);
        status.ok_or_else(|| io::Error::other(format!("the program does not end:\n{}", self.shown())))
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Looks until something is found; `None` after [`TIMEOUT`].
fn poll<T>(mut look: impl FnMut() -> io::Result<Option<T>>) -> io::Result<Option<T>> {
    let start = Instant::now();
    while start.elapsed() <= TIMEOUT {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        std::thread::sleep(INTERVAL);
    }
    Ok(None)
}

impl Drop for Session {
    fn drop(&mut self) {
        // The program may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
