//! A service whose answers don't end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The end of an answer after all, so that a client that reads everything doesn't fill this computer's memory.
const END: u64 = 64 << 20;

pub struct Endless {
    sent: Arc<AtomicU64>,
    pub url: String,
}

impl Endless {
    /// All answers have a body of this type, with its length in a header if `is_announced`.
    pub fn start(content_type: &'static str, is_announced: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let sent = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&sent);
        let length = if is_announced { "content-length: 3000000000" } else { "connection: close" };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{length}\r\n\r\n");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // The client closes the connection.
                let _ = answer(&mut stream.unwrap(), &head, &counter);
            }
        });
        Self { sent, url }
    }

    /// A client has closed a connection before the end.
    pub fn is_cut_off(&self) -> bool {
        self.sent.load(Relaxed) < END
    }
}

fn answer(stream: &mut TcpStream, head: &str, sent: &AtomicU64) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request)?;
    stream.write_all(head.as_bytes())?;
    let block = [b' '; 1 << 16];
    while sent.load(Relaxed) < END {
        stream.write_all(&block)?;
        sent.fetch_add(block.len() as u64, Relaxed);
    }
    Ok(())
}
