//! A TCP proxy in front of a server that delays what it passes on, and cuts connections.

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
    delay_micros: AtomicU64,
    /// Each so-manyth passage, of a request or of a reply, cuts its connection instead. Zero for never.
    cut_every: AtomicU64,
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
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", server))) else {
                    continue;
                };
                for (from, to, is_reply) in [
                    (client.try_clone().unwrap(), server.try_clone().unwrap(), false),
                    (server, client, true),
                ] {
                    let faults = Arc::clone(&shared);
                    std::thread::spawn(move || pass_on((from, to), is_reply, &faults));
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

    pub fn cut_every(&self, passages: u64) {
        self.faults.cut_every.store(passages, Ordering::SeqCst);
    }

    /// How many requests were passed on.
    pub fn requests(&self) -> u64 {
        self.faults.requests.load(Ordering::SeqCst)
    }
}

fn pass_on((mut from, mut to): (TcpStream, TcpStream), is_reply: bool, faults: &Faults) {
    let mut buffer = [0; 65_536];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        std::thread::sleep(Duration::from_micros(faults.delay_micros.load(Ordering::SeqCst)));
        let every = faults.cut_every.load(Ordering::SeqCst);
        faults.requests.fetch_add(u64::from(!is_reply), Ordering::SeqCst);
        let number = faults.passages.fetch_add(1, Ordering::SeqCst);
        let is_cut = every > 0 && number % every == every - 1;
        if is_reply && faults.cuts_replies.load(Ordering::SeqCst) || is_cut {
            break;
        }
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    for stream in [&from, &to] {
        let _ = stream.shutdown(Shutdown::Both);
    }
}
