//! A receiver by e-mail: message → one e-mail for each approver, with links of their own, over SMTP with TLS.

use std::error::Error;
use std::time::{Duration, SystemTime};

use callgate::json::Value;
use callgate::message::Approver;
use callgate_http::{Caller, install_cryptography, is_this_machine};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message as Email, Tokio1Executor};
use reqwest::Url;

use super::email_text::{html_text, plain_text};
use super::envelope::{DeliveryError, Envelope};
use crate::approver::approver;

/// How long an attempt may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The ports of submission with STARTTLS and with TLS from the start (RFC 8314).
const STARTTLS_PORT: u16 = 587;
const TLS_PORT: u16 = 465;

/// A mail server, and the approvers to whom it delivers.
pub(super) struct EmailReceiver {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    host: String,
    from: Mailbox,
    pub(super) approvers: Vec<EmailApprover>,
}

/// An approver with an e-mail address.
pub(super) struct EmailApprover {
    pub(super) address: String,
    mailbox: Mailbox,
    pub(super) identity: Approver,
    pub(super) caller: Caller,
}

impl EmailApprover {
    /// An approver with this address.
    ///
    /// # Errors
    /// The address is invalid, or the approver has no name: a text for the operator.
    pub(super) fn new(address: &str, caller: Caller) -> Result<Self, String> {
        let invalid = "this is not an e-mail address such as `ann@example.com`";
        let mailbox = Mailbox::new(None, address.parse::<Address>().map_err(|_| invalid.to_owned())?);
        let identity = approver(&caller).ok_or("the approver has no `principal`")?;
        Ok(Self { address: address.to_owned(), mailbox, identity, caller })
    }

    /// The tenant whose requests the approver answers; `None` for all.
    pub(super) fn tenant(&self) -> Option<&Value> {
        self.caller.context.get("tenant").filter(|tenant| !tenant.is_null())
    }
}

/// How to reach a mail server.
pub(super) struct MailServer {
    pub(super) url: String,
    pub(super) user: Option<(String, String)>,
    /// Certificates of authorities that are trusted beside those of the system, in PEM.
    pub(super) authorities: Option<Vec<u8>>,
}

impl MailServer {
    /// The connection, with the host.
    ///
    /// # Errors
    /// The URL or the certificates can't be used: a text for the operator, without the URL.
    fn connect(self) -> Result<(AsyncSmtpTransport<Tokio1Executor>, String), String> {
        install_cryptography();
        let form = "write it as `smtp://mail.example.com:587` (STARTTLS) or `smtps://mail.example.com:465`";
        let url = Url::parse(&self.url).map_err(|error| format!("this is not a URL: {error}; {form}"))?;
        let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
        let host = host.filter(|host| !host.is_empty()).ok_or(form)?;
        let has_more = !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
        if has_more || !url.username().is_empty() || url.password().is_some() {
            return Err(format!("the URL of a mail server has a host and a port only; {form}"));
        }
        let is_trusted = self.authorities.is_some();
        let parameters = || {
            let mut builder = TlsParameters::builder(host.clone());
            if let Some(pem) = &self.authorities {
                let certificate =
                    Certificate::from_pem(pem).map_err(|_| "`ca_file` has no certificate in PEM")?;
                builder = builder.add_root_certificate(certificate);
            }
            builder.build_rustls().map_err(|error| format!("TLS can't be used: {error}"))
        };
        let (tls, port) = match url.scheme() {
            "smtps" => (Tls::Wrapper(parameters()?), TLS_PORT),
            // The way to a server on this machine can't be listened to; its certificate often names another host.
            "smtp" if is_this_machine(&url) && !is_trusted => (Tls::None, STARTTLS_PORT),
            "smtp" => (Tls::Required(parameters()?), STARTTLS_PORT),
            _ => return Err(format!("this is not the URL of a mail server; {form}")),
        };
        let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&host)
            .port(url.port().unwrap_or(port))
            .tls(tls)
            .timeout(Some(TIMEOUT));
        let builder = match self.user {
            Some((user, password)) => builder.credentials(Credentials::new(user, password)),
            None => builder,
        };
        Ok((builder.build(), host))
    }
}

impl EmailReceiver {
    /// A receiver by this server, with messages from this address.
    ///
    /// # Errors
    /// The address or the server can't be used: a text for the operator.
    pub(super) fn new(server: MailServer, from: &str, approvers: Vec<EmailApprover>) -> Result<Self, String> {
        let from =
            from.parse().map_err(|_| "`from` is not an e-mail address such as `callgate@example.com`")?;
        let (transport, host) = server.connect()?;
        Ok(Self { transport, host, from, approvers })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Sends a message to an approver once.
    pub(super) async fn send(
        &self,
        envelope: &Envelope<'_>,
        to: &EmailApprover,
    ) -> Result<(), DeliveryError> {
        let email = self.email(envelope, to).map_err(|error| DeliveryError::lasting(error.to_string()))?;
        match self.transport.send(email).await {
            Ok(_) => Ok(()),
            Err(error) => Err(delivery_error(&error)),
        }
    }

    fn email(&self, envelope: &Envelope<'_>, to: &EmailApprover) -> Result<Email, lettre::error::Error> {
        // By RFC 3834: nobody's automatic reply answers it.
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        Email::builder()
            .from(self.from.clone())
            .to(to.mailbox.clone())
            .subject(&envelope.texts.title)
            .message_id(Some(format!("<{}@{}>", envelope.id, self.from.email.domain())))
            .date(SystemTime::now())
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .multipart(MultiPart::alternative_plain_html(plain_text(envelope), html_text(envelope)))
    }
}

/// Why a mail server did not take a message, without its own words, which may name addresses.
fn delivery_error(error: &SmtpError) -> DeliveryError {
    let is_rejected = names_certificate(error);
    let why = match error.status() {
        Some(code) => format!("the mail server refused it with the code {code}"),
        None if is_rejected || error.is_tls() => {
            "the certificate of the mail server is not trusted; check its name, or set `ca_file`".to_owned()
        }
        None if error.is_timeout() => "the mail server did not answer in time".to_owned(),
        None if error.is_client() => {
            "the mail server does not offer STARTTLS, or no known way to sign in".to_owned()
        }
        None => "the mail server can't be reached, or does not speak SMTP".to_owned(),
    };
    let may_pass = !is_rejected && !error.is_tls() && !error.is_permanent() && !error.is_client();
    DeliveryError { why, may_pass }
}

/// Whether a handshake failed because of the server's certificate: the cause is an error of TLS below one of the connection.
fn names_certificate(error: &SmtpError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if error.to_string().contains("certificate") {
            return true;
        }
        cause = error.source();
    }
    false
}
