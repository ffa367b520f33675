//! A TCP proxy in front of a server that delays what it passes on, cuts connections, and falls silent.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub struct CuttingProxy {
    pub port: u16,
    faults: Arc<Faults>,
}

#[derive(Default)]
struct Faults {
    /// Replies are not passed on; the connection is cut in their place.
    cuts_replies: AtomicBool,
    /// Connections that are used now never pass on anything again, and stay open: so a link behaves whose other end is gone.
    is_silent: AtomicBool,
    delay_micros: AtomicU64,
    /// Each so-manyth passage, of a request or of a reply, cuts its connection instead. Zero for never.
    cut_every: AtomicU64,
    /// The passage with this number, from one, cuts its connection.
    cut_at: AtomicU64,
    passages: AtomicU64,
    requests: AtomicU64,
}

impl CuttingProxy {
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let faults = Arc::new(Faults::default());
        let shared = Arc::clone(&faults);
        std::thread::spawn(move || {
            let mut silent_clients = Vec::new();
            for client in listener.incoming() {
                if shared.is_silent.load(Ordering::SeqCst) {
                    silent_clients.push(client);
                    continue;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", server))) else {
                    continue;
                };
                let silenced = Arc::new(AtomicBool::new(false));
                for (from, to, is_reply) in [
                    (client.try_clone().unwrap(), server.try_clone().unwrap(), false),
                    (server, client, true),
                ] {
                    let direction = Direction { from, to, is_reply, silenced: Arc::clone(&silenced) };
                    let faults = Arc::clone(&shared);
                    std::thread::spawn(move || direction.pass_on(&faults));
                }
            }
        });
        Self { port, faults }
    }

    pub fn cut_replies(&self, cut: bool) {
        self.faults.cuts_replies.store(cut, Ordering::SeqCst);
    }

    pub fn delay(&self, delay: Duration) {
        self.faults.delay_micros.store(delay.as_micros() as u64, Ordering::SeqCst);
    }

    /// Silences connections for good that are used until this is ended.
    pub fn silence(&self, silent: bool) {
        self.faults.is_silent.store(silent, Ordering::SeqCst);
    }

    pub fn cut_every(&self, passages: u64) {
        self.faults.cut_every.store(passages, Ordering::SeqCst);
    }

    /// Cuts the connection of the passage that comes so many from now.
    pub fn cut_after(&self, passages: u64) {
        self.faults.cut_at.store(self.faults.passages.load(Ordering::SeqCst) + passages, Ordering::SeqCst);
    }

    /// How many requests were passed on.
    pub fn requests(&self) -> u64 {
        self.faults.requests.load(Ordering::SeqCst)
    }
}

/// One direction of a connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    is_reply: bool,
    /// Whether the connection, in both directions, fell silent.
    silenced: Arc<AtomicBool>,
}

impl Direction {
    fn pass_on(mut self, faults: &Faults) {
        let mut buffer = [0; 65_536];
        while let Ok(length @ 1..) = self.from.read(&mut buffer) {
            if self.is_silent(faults) {
                continue;
            }
            std::thread::sleep(Duration::from_micros(faults.delay_micros.load(Ordering::SeqCst)));
            let every = faults.cut_every.load(Ordering::SeqCst);
            faults.requests.fetch_add(u64::from(!self.is_reply), Ordering::SeqCst);
            let number = faults.passages.fetch_add(1, Ordering::SeqCst);
            let is_cut = every > 0 && number % every == every - 1
                || number + 1 == faults.cut_at.load(Ordering::SeqCst);
            if self.is_reply && faults.cuts_replies.load(Ordering::SeqCst) || is_cut {
                break;
            }
            if self.to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // Whoever is at the other end of a silent connection does not learn that it has ended. The other direction keeps it open.
        if !self.is_silent(faults) {
            for stream in [&self.from, &self.to] {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    fn is_silent(&self, faults: &Faults) -> bool {
        if faults.is_silent.load(Ordering::SeqCst) {
            self.silenced.store(true, Ordering::SeqCst);
        }
        self.silenced.load(Ordering::SeqCst)
    }
}
