//! A log in syslog or journald: each event is a message with the line of the decision log, sent by a thread of its own.

use std::collections::VecDeque;
use std::io;

use fasyslog::format::SyslogContext;
use fasyslog::sender::{self, SyslogSender};
use fasyslog::{Facility, Severity};
use jiff::Zoned;

use crate::decision_log::{DecisionLog, EventWriter};
use crate::event_line::EventFormat;
use crate::event_name::EventSeverity;
use crate::line_reader::MAX_LINE_BYTES;
use crate::line_sink::{LineSink, LogRow};
use crate::log_destination::SyslogAddress;
use crate::log_lines::{lost_line, opening_line};
use crate::log_thread::{LogOptions, LogThread, ThreadOptions};

/// The name of the program in messages.
const PROGRAM: &str = "callgate";
/// The longest event in a message to a local socket.
const MAX_LOCAL_BYTES: usize = 64 << 10;
/// The longest event in a datagram; common servers accept as much.
const MAX_UDP_BYTES: usize = 8_000;

/// Why a log in syslog can't be opened.
#[derive(Debug, thiserror::Error)]
#[error("syslog at `{address}` can't be used: {error}")]
pub struct SyslogError {
    /// Where.
    pub address: SyslogAddress,
    /// Why.
    pub error: io::Error,
}

impl DecisionLog {
    /// Opens a log in syslog or journald. Messages have the facility `daemon`. An event that is too long for a message is recorded without
    /// its values, or with its digest only. The log connects over TCP with its first message, and reconnects after a failure.
    ///
    /// # Errors
    /// The local socket does not exist, or the host is unknown.
    pub fn open_syslog(
        address: SyslogAddress,
        format: EventFormat,
        options: LogOptions,
    ) -> Result<Self, SyslogError> {
        let failed = |error| SyslogError { address: address.clone(), error };
        let max_bytes = match &address {
            SyslogAddress::Local(_) => MAX_LOCAL_BYTES,
            SyslogAddress::Udp(_) => MAX_UDP_BYTES,
            SyslogAddress::Tcp(_) => MAX_LINE_BYTES,
        };
        let connection = match &address {
            SyslogAddress::Tcp(_) => None,
            SyslogAddress::Local(_) | SyslogAddress::Udp(_) => Some(connect(&address).map_err(failed)?),
        };
        let mut context = SyslogContext::new();
        context.facility(Facility::DAEMON).appname(PROGRAM);
        let sink = SyslogSink { address: address.clone(), connection, context };
        let opening = LogRow::event(opening_line(false), EventSeverity::Info);
        let thread = LogThread::start(sink, Some(opening), ThreadOptions::queued(options)).map_err(failed)?;
        Ok(Self::new(EventWriter::BoundedJson(format, max_bytes), thread))
    }
}

struct SyslogSink {
    address: SyslogAddress,
    /// `None` before the first message, and after a failure.
    connection: Option<SyslogSender>,
    context: SyslogContext,
}

impl SyslogSink {
    fn message(&self, line: &LogRow) -> String {
        let severity = match line.severity {
            EventSeverity::Info => Severity::INFORMATIONAL,
            EventSeverity::Warning => Severity::WARNING,
            EventSeverity::Error => Severity::ERROR,
        };
        match &self.address {
            // As the C library writes it: local servers and journald expect neither a version nor a host name.
            SyslogAddress::Local(_) => {
                let priority = (Facility::DAEMON.code() << 3) | severity.code();
                let time = Zoned::now().strftime("%b %e %T");
                format!("<{priority}>{time} {PROGRAM}[{}]: {}", std::process::id(), line.text)
            }
            SyslogAddress::Udp(_) | SyslogAddress::Tcp(_) => {
                let none = None::<String>;
                self.context.format_rfc5424(severity, none, Vec::new(), Some(&line.text)).to_string()
            }
        }
    }

    fn send(&self, connection: &mut SyslogSender, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        if let SyslogAddress::Tcp(_) = self.address {
            for line in lines.iter() {
                connection.send_formatted(self.message(line).as_bytes())?;
            }
            connection.flush()?;
            lines.clear();
        }
        while let Some(line) = lines.front() {
            connection.send_formatted(self.message(line).as_bytes())?;
            lines.pop_front();
        }
        Ok(())
    }
}

impl LineSink for SyslogSink {
    fn write(&mut self, lines: &mut VecDeque<LogRow>) -> io::Result<()> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.address)?,
        };
        self.send(&mut connection, lines)?;
        self.connection = Some(connection);
        Ok(())
    }

    fn lost_report(&self, count: u64) -> String {
        lost_line(count)
    }
}

fn connect(address: &SyslogAddress) -> io::Result<SyslogSender> {
    match address {
        SyslogAddress::Local(path) => sender::unix_datagram(path).map(SyslogSender::UnixDatagram),
        SyslogAddress::Udp(address) => {
            let local = if address.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
            sender::udp(local, address).map(SyslogSender::Udp)
        }
        SyslogAddress::Tcp(address) => {
            let mut connection = sender::tcp(address)?;
            // One message a line, as every server reads it.
            connection.set_postfix("\n");
            Ok(SyslogSender::Tcp(connection))
        }
    }
}
