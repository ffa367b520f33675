//! `callgate proxy --listen`: the gateway's door over HTTP.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::ending::told_to_end;
use super::exit::Stop;
use super::output::{complain_of, note};
use crate::mcp::{Gateway, HttpDoor, IdentityFile, MOST_CLIENTS, MOST_CONVERSATIONS, SessionFrom};

/// How clients reach the gateway over HTTP, and who they are.
#[derive(clap::Args)]
pub(super) struct Listening {
    /// Serve clients over streamable HTTP at this address, such as `127.0.0.1:8080`, in the place of one on stdin; the path is `/mcp`
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Who may call, and who they are to policies: tokens that were given out, and issuers of tokens (JWT); see docs/gateway-http.md.
    /// Needed where other machines can reach the address
    #[arg(long, value_name = "FILE", requires = "listen")]
    auth: Option<PathBuf>,
    /// Let pages of this origin in, beside those of this machine
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,
    /// Where requests without a handshake say which session of their caller they belong to: `header:NAME` or `meta:KEY`. Without it each
    /// caller has one
    #[arg(long, value_name = "PLACE", requires = "listen")]
    session_from: Option<SessionFrom>,
    /// How many clients may be connected at once; of more, the one that was idle longest is closed
    #[arg(long, value_name = "NUMBER", requires = "listen", default_value_t = MOST_CLIENTS)]
    most_clients: usize,
    /// How many connections there may be at once: a third of them for each address, a half for each network. Without it, eight for each
    /// client that may be connected. Raise it behind a reverse proxy, whose address all connections come from
    #[arg(long, value_name = "NUMBER", requires = "listen")]
    most_connections: Option<usize>,
    /// How many conversations of each caller are remembered; of more, the one used least recently is evicted
    #[arg(long, value_name = "NUMBER", requires = "listen", default_value_t = MOST_CONVERSATIONS)]
    most_conversations: usize,
}

/// A door that is ready.
pub(super) struct Ready {
    address: SocketAddr,
    door: HttpDoor,
}

/// What is said of a door.
pub(super) enum Said {
    /// None is wanted.
    Nothing,
    /// It is ready.
    Door(Box<Ready>),
    /// The identity file holds errors, which are told.
    Errors,
}

impl Listening {
    /// Whether clients are let in over HTTP.
    pub(super) fn is_asked(&self) -> bool {
        self.listen.is_some()
    }

    /// The door to a gateway, if one is wanted.
    pub(super) fn door(&self, gateway: &Arc<Gateway>) -> Result<Said, Stop> {
        let Some(listen) = &self.listen else { return Ok(Said::Nothing) };
        let address = address(listen)?;
        let mut door = HttpDoor::new(Arc::clone(gateway)).with_most_clients(self.most_clients);
        door = door.with_most_conversations(self.most_conversations);
        if let Some(most) = self.most_connections {
            door = door.with_most_connections(most);
        }
        if let Some(file) = &self.auth {
            match IdentityFile::open(file) {
                Ok(file) => door = door.with_identity_file(file),
                Err(error) => {
                    complain_of(&error.diagnostics, &error.sources);
                    return Ok(Said::Errors);
                }
            }
        }
        for origin in &self.allow_origin {
            door = door.allowing_origin(origin);
        }
        if let Some(from) = &self.session_from {
            door = door.with_session_from(from.clone());
        }
        door.check(address).map_err(Stop::Trouble)?;
        Ok(Said::Door(Box::new(Ready { address, door })))
    }
}

impl Ready {
    /// Serves clients until the process is told to end.
    pub(super) async fn serve(self) -> Result<(), String> {
        let listener = TcpListener::bind(self.address).await;
        let listener =
            listener.map_err(|error| format!("`{}` can't be listened at: {error}", self.address))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        note(format!("listening at http://{address}/mcp"));
        self.door.serve(listener, told_to_end()).await
    }
}

fn address(text: &str) -> Result<SocketAddr, Stop> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| Stop::trouble(format!("`{text}` is no address; write for example `127.0.0.1:8080`")))
}
