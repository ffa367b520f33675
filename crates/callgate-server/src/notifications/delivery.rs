//! Sends messages: each channel has a queue and a task of its own, so that one that hangs delays neither calls nor other channels.

use std::sync::Arc;
use std::time::Duration;

use callgate::{EngineEvent, Observer};
use callgate_http::error_chain;
use reqwest::StatusCode;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::channel::{Channel, Envelope};
use super::config::NotificationFile;
use super::interactions::ChannelAnswers;
use super::message::Message;
use crate::random_id;

/// The most messages that wait for a channel; further ones are dropped.
const MAX_WAITING: usize = 1_000;
/// How often sending a message is tried.
const ATTEMPTS: u32 = 10;
/// The delay before the second attempt; it doubles with each, up to the longest one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// How long messages may take at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// A message that waits.
struct Waiting {
    message: Arc<Message>,
    id: String,
    at: jiff::Timestamp,
}

/// Sends messages about the events of engines: an [`Observer`].
///
/// Messages are sent at least once while the process runs; those that wait when it is killed are lost. The approvals page has every request.
pub struct Notifier {
    queues: Vec<(Arc<Channel>, mpsc::Sender<Waiting>)>,
    log: Log,
}

impl std::fmt::Debug for Notifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Notifier").field("channels", &self.queues.len()).finish_non_exhaustive()
    }
}

/// The tasks that send. They end when this is dropped.
pub struct NotificationTasks {
    tasks: JoinSet<()>,
    close: watch::Sender<bool>,
}

impl std::fmt::Debug for NotificationTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotificationTasks").finish_non_exhaustive()
    }
}

impl NotificationTasks {
    /// Waits, for some seconds at most, until what waits now is sent.
    pub async fn finish(mut self) {
        let _ = self.close.send(true);
        let sent = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, sent).await;
    }
}

impl Notifier {
    /// Starts the tasks that send, on the present runtime. `log` gets notes for the operator, such as messages that can't be sent.
    pub fn start(
        file: NotificationFile,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> (Self, NotificationTasks) {
        let (log, page): (Log, Option<Arc<str>>) = (Arc::new(log), file.page.map(Arc::from));
        let mut tasks = JoinSet::new();
        let (close, closing) = watch::channel(false);
        let queues = file.channels.into_iter().map(|channel| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING);
            let channel = Arc::new(channel);
            let sender_task =
                ChannelTask { channel: Arc::clone(&channel), page: page.clone(), log: Arc::clone(&log) };
            tasks.spawn(sender_task.run(receiver, closing.clone()));
            (channel, sender)
        });
        let queues = queues.collect();
        (Self { queues, log }, NotificationTasks { tasks, close })
    }
}

impl Notifier {
    /// The channels in which people can answer.
    pub fn channel_answers(&self) -> ChannelAnswers {
        ChannelAnswers::of(self.queues.iter().map(|(channel, _)| Arc::clone(channel)))
    }
}

impl Observer for Notifier {
    fn on_event(&self, event: &EngineEvent<'_>) {
        let Some(message) = Message::from_event(event).map(Arc::new) else { return };
        for (channel, queue) in &self.queues {
            if !channel.wants(&message) {
                continue;
            }
            // Without random bytes no id is unique, and the receiver could take the message for a repeated one.
            let Ok(id) = random_id::new("msg_") else { continue };
            let waiting = Waiting { message: Arc::clone(&message), id, at: jiff::Timestamp::now() };
            // A call never waits for a channel.
            if queue.try_send(waiting).is_err() {
                (self.log)(&format!("a notification is dropped: {MAX_WAITING} wait for {}", channel.name()));
            }
        }
    }
}

/// The task of a channel.
struct ChannelTask {
    channel: Arc<Channel>,
    page: Option<Arc<str>>,
    log: Log,
}

impl ChannelTask {
    /// Sends what is queued, until the queue or the process ends.
    async fn run(self, mut queue: mpsc::Receiver<Waiting>, mut closing: watch::Receiver<bool>) {
        loop {
            let waiting = tokio::select! {
                biased;
                waiting = queue.recv() => waiting,
                _ = closing.wait_for(|closing| *closing) => queue.try_recv().ok(),
            };
            let Some(Waiting { message, id, at }) = waiting else { return };
            let envelope = Envelope { message: &message, id: &id, at, page: self.page.as_deref() };
            if let Err(why) = send(&self.channel, &envelope).await {
                (self.log)(&format!("a notification is not sent: {}: {why}", self.channel.name()));
            }
        }
    }
}

/// Sends a message, again after failures that may pass.
async fn send(channel: &Channel, envelope: &Envelope<'_>) -> Result<(), String> {
    let mut delay = FIRST_DELAY;
    let mut attempt = 1;
    loop {
        let request = channel.request(envelope).map_err(error_chain)?;
        let why = match channel.client().execute(request).await {
            Ok(response) if response.status().is_success() => return Ok(()),
            Ok(response) => {
                let status = response.status();
                let why = format!("status {}", status.as_u16());
                let may_pass = status.is_server_error()
                    || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
                if !may_pass {
                    return Err(why);
                }
                why
            }
            Err(error) => error_chain(error),
        };
        if attempt >= ATTEMPTS {
            return Err(format!("{why} ({attempt} attempts)"));
        }
        tokio::time::sleep(delay).await;
        (attempt, delay) = (attempt + 1, (delay * 2).min(LONGEST_DELAY));
    }
}
