//! Connections to the door: how many there may be, and how long a request may take to come.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// How long the headers of a request may take to come, counted from the connection or the request before. Then the connection is
/// closed, so that whoever opens connections and says nothing holds no place for long.
const HEADERS: Duration = Duration::from_secs(30);
/// Where connections can't be taken, because there are too many files open, it is tried again after this.
const AGAIN: Duration = Duration::from_secs(1);

/// Serves connections, so many at once and the others when there is room, until `end`. Returns when requests that were under way
/// are answered.
pub(super) async fn serve(
    listener: TcpListener,
    routes: Router,
    most: usize,
    end: impl Future<Output = ()> + Send,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let open = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(most));
    let mut end = pin!(end);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (accept(&listener).await, place)
        };
        let (stream, place) = tokio::select! {
            next = next => next,
            () = &mut end => break,
        };
        // An answer goes out when it is there.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(routes.clone());
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // Whoever breaks off, or takes too long, is served no more.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    open.shutdown().await;
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The peer is gone already.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                ) => {}
            Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}
