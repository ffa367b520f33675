//! Accepts connections, with limits per address and network and a timeout for the headers of a request.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

use crate::tls::{ClientCertificate, Tls};
use callgate::host::{Account, BoxFuture};
use callgate::json::json;
use callgate::state::capacity::CapacityShares;

/// Timeout for the headers of a request, counted from the connection or the request before. Then the connection is closed, so that idle
/// connections (slowloris) can't hold slots for long.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay before accepting again after a failure, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Answers requests.
pub trait RequestHandler: Clone + Send + 'static {
    /// Answers one request. The future is on the heap, so that an idle connection needs no memory for it.
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'static, Response>;
}

impl RequestHandler for Router {
    fn answer(&self, request: Request<Incoming>) -> BoxFuture<'static, Response> {
        let answer = TowerToHyperService::new(self.clone()).call(request);
        Box::pin(async {
            match answer.await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        })
    }
}

/// Serves connections, at most `most` at once, until `end`. Each network and each address has a share of the slots; connections beyond
/// it are closed at once. With TLS, requests have the [`ClientCertificate`] of their connection as an extension, if the client has one.
/// Returns when pending requests are answered.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    handler: impl RequestHandler,
    most: usize,
    end: impl Future<Output = ()> + Send,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    let open = GracefulShutdown::new();
    let slots = Arc::new(Mutex::new(ConnectionSlots::new(most)));
    let mut end = pin!(end);
    loop {
        let (stream, address) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = &mut end => break,
        };
        let Some(slot) = ConnectionSlot::acquire(&slots, address) else { continue };
        // Send responses without delay.
        let _ = stream.set_nodelay(true);
        let connection =
            Connection { http: http.clone(), handler: handler.clone(), slot, watcher: open.watcher() };
        let acceptor = tls.as_ref().map(|tls| tls.acceptor());
        tokio::spawn(async move {
            let Some(acceptor) = acceptor else { return connection.serve(stream, None).await };
            // Errors mean a client without TLS, or without an accepted certificate.
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                let certificate = chain.first().map(ClientCertificate::from_der);
                connection.serve(stream, certificate).await;
            }
        });
    }
    drop(listener);
    open.shutdown().await;
}

/// An accepted connection.
struct Connection<H> {
    http: http1::Builder,
    handler: H,
    slot: ConnectionSlot,
    watcher: Watcher,
}

impl<H: RequestHandler> Connection<H> {
    /// Serves its requests until it is closed.
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        certificate: Option<ClientCertificate>,
    ) {
        let Self { http, handler, slot, watcher } = self;
        let slot = Arc::new(slot);
        let used = Arc::clone(&slot);
        let service = service_fn(move |mut request: Request<Incoming>| {
            used.request_arrived();
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let answer = handler.answer(request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        // Errors mean a disconnect or a timeout.
        let _ = watcher.watch(http.serve_connection(TokioIo::new(stream), service)).await;
        drop(slot);
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address.ip()),
            // The peer is gone already.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                ) => {}
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// The connection slots.
struct ConnectionSlots {
    open: CapacityShares,
    /// Connections without a request yet. Limited to half of the slots, so that addresses that only connect leave slots for active ones.
    half_open: CapacityShares,
}

impl ConnectionSlots {
    fn new(most: usize) -> Self {
        Self { open: CapacityShares::new(most), half_open: CapacityShares::new(most.div_ceil(2)) }
    }
}

/// The slot of one connection, released on drop.
struct ConnectionSlot {
    slots: Arc<Mutex<ConnectionSlots>>,
    account: Account,
    is_half_open: Mutex<bool>,
}

impl ConnectionSlot {
    /// Returns `None` if the share of the address, or of its network, is used up.
    fn acquire(slots: &Arc<Mutex<ConnectionSlots>>, address: IpAddr) -> Option<Self> {
        let account = account(address);
        let mut all = lock(slots);
        if !all.open.admits(&account, 1) || !all.half_open.admits(&account, 1) {
            return None;
        }
        all.open.charge(&account, 1);
        all.half_open.charge(&account, 1);
        Some(Self { slots: Arc::clone(slots), account, is_half_open: Mutex::new(true) })
    }

    fn request_arrived(&self) {
        if std::mem::take(&mut *lock(&self.is_half_open)) {
            lock(&self.slots).half_open.release(&self.account, 1);
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.request_arrived();
        lock(&self.slots).open.release(&self.account, 1);
    }
}

/// Ignores poisoning: every update is a single step that leaves the sums consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The account that a connection is charged to. The network is the tenant: 24 bits of IPv4, 48 bits of IPv6. The caller is the IPv4
/// address, or 64 bits of IPv6, as one subscriber commonly has a whole /64.
fn account(address: IpAddr) -> Account {
    let (network, caller) = match address.to_canonical() {
        IpAddr::V4(address) => {
            let network = Ipv4Addr::from_bits(address.to_bits() & !0xff);
            (IpAddr::V4(network), IpAddr::V4(address))
        }
        IpAddr::V6(address) => {
            let first =
                |bits: u32| IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - bits))));
            (first(48), first(64))
        }
    };
    Account::from_context(&json!({ "tenant": network.to_string(), "principal": caller.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(most: usize) -> Arc<Mutex<ConnectionSlots>> {
        Arc::new(Mutex::new(ConnectionSlots::new(most)))
    }

    /// Connects until no slot is left.
    fn flood(slots: &Arc<Mutex<ConnectionSlots>>, address: &str, sends: bool) -> Vec<ConnectionSlot> {
        let connect = || ConnectionSlot::acquire(slots, address.parse().unwrap());
        let sent = |slot: ConnectionSlot| {
            if sends {
                slot.request_arrived();
            }
            slot
        };
        std::iter::from_fn(connect).map(sent).collect()
    }

    #[test]
    fn a_flooding_address_leaves_slots_to_others() {
        for (hostile, honest) in
            [("192.0.2.1", "198.51.100.1"), ("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8:1::1")]
        {
            for sends in [false, true] {
                let slots = slots(120);
                let held = flood(&slots, hostile, sends);
                assert_eq!(held.len(), if sends { 40 } else { 20 }, "{hostile}");
                assert!(flood(&slots, honest, sends).len() >= 6, "{honest}");
            }
        }
    }

    #[test]
    fn addresses_of_one_subscriber_share_an_account() {
        for (one, other) in [("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"), ("::ffff:192.0.2.1", "192.0.2.1")] {
            let (one, other): (IpAddr, IpAddr) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(account(one), account(other));
        }
    }

    #[test]
    fn slots_are_released() {
        let slots = slots(12);
        for sends in [false, true, false] {
            drop(flood(&slots, "192.0.2.1", sends));
            let all = lock(&slots);
            assert_eq!((all.open.used(), all.half_open.used()), (0, 0));
        }
    }
}
