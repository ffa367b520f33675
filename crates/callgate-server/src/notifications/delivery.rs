//! Sends messages: each channel has a queue and a task of its own, so that one that hangs delays neither calls nor other channels.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callgate::seal::Keys;
use callgate::{Engine, EngineEvent, EngineEventKind, NotificationReport, Observer};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::channel::{Channel, Delivery};
use super::config::NotificationFile;
use super::envelope::DeliveryError;
use super::interactions::ChannelAnswers;
use super::links::LinkMaker;
use super::message::Message;
use crate::random_id;

/// The most messages that wait for a channel; further ones are dropped.
const MAX_WAITING: usize = 1_000;
/// How often sending a message is tried.
const ATTEMPTS: u64 = 10;
/// The delay before the second attempt; it doubles with each, up to the longest one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// How long messages may take at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Sends messages about the events of engines: an [`Observer`].
///
/// Messages are sent at least once while the process runs; those that wait when it is killed are lost. The approvals page has every request.
pub struct Notifier {
    queues: Vec<(Arc<Channel>, mpsc::Sender<Delivery>)>,
    keys: Keys,
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
    engine: Arc<OnceLock<Engine>>,
}

impl std::fmt::Debug for NotificationTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NotificationTasks").finish_non_exhaustive()
    }
}

impl NotificationTasks {
    /// Has the observers of an engine, such as its audit log, notified of what is sent and what could not be sent.
    pub fn report_to(&self, engine: Engine) {
        // The first engine is the one whose observer the notifier is.
        let _ = self.engine.set(engine);
    }

    /// Waits, for some seconds at most, until what waits now is sent.
    pub async fn finish(mut self) {
        let _ = self.close.send(true);
        let sent = async { while self.tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, sent).await;
    }
}

impl Notifier {
    /// Starts the tasks that send, on the present runtime. The keys are those of the server that takes the answers of links. `log` gets
    /// notes for the operator, such as messages that can't be sent.
    pub fn start(
        file: NotificationFile,
        keys: Keys,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> (Self, NotificationTasks) {
        let log: Log = Arc::new(log);
        let links = Arc::new(LinkMaker { page: file.page, keys: keys.clone() });
        let engine = Arc::default();
        let mut tasks = JoinSet::new();
        let (close, closing) = watch::channel(false);
        let queues = file.channels.into_iter().map(|channel| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING);
            let channel = Arc::new(channel);
            let task = ChannelTask {
                channel: Arc::clone(&channel),
                links: Arc::clone(&links),
                log: Arc::clone(&log),
                engine: Arc::clone(&engine),
            };
            tasks.spawn(task.run(receiver, closing.clone()));
            (channel, sender)
        });
        let queues = queues.collect();
        (Self { queues, keys, log }, NotificationTasks { tasks, close, engine })
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
        let Some(message) = Message::from_event(event, &self.keys).map(Arc::new) else { return };
        for (channel, queue) in &self.queues {
            for approver in channel.recipients(&message) {
                // Without random bytes no id is unique, and the receiver could take the message for a repeated one.
                let Ok(id) = random_id::new("msg_") else { continue };
                let message = Arc::clone(&message);
                let delivery = Delivery { message, id, at: jiff::Timestamp::now(), approver };
                // A call never waits for a channel.
                if queue.try_send(delivery).is_err() {
                    (self.log)(&format!(
                        "a notification is dropped: {MAX_WAITING} wait for {}",
                        channel.name()
                    ));
                }
            }
        }
    }
}

/// The task of a channel.
struct ChannelTask {
    channel: Arc<Channel>,
    links: Arc<LinkMaker>,
    log: Log,
    /// The engine whose observers are notified of what is sent.
    engine: Arc<OnceLock<Engine>>,
}

impl ChannelTask {
    /// Sends what is queued, until the queue or the process ends.
    async fn run(self, mut queue: mpsc::Receiver<Delivery>, mut closing: watch::Receiver<bool>) {
        loop {
            let delivery = tokio::select! {
                biased;
                delivery = queue.recv() => delivery,
                _ = closing.wait_for(|closing| *closing) => queue.try_recv().ok(),
            };
            let Some(delivery) = delivery else { return };
            let (attempts, sent) = self.send(&delivery).await;
            if let Err(DeliveryError { why, .. }) = &sent {
                let tried = if attempts > 1 { format!(" ({attempts} attempts)") } else { String::new() };
                (self.log)(&format!("a notification is not sent: {}: {why}{tried}", self.channel.name()));
            }
            self.report(&delivery, attempts, sent.err().as_ref());
        }
    }

    /// Sends a message, again after failures that may pass. Returns how often it was tried.
    async fn send(&self, delivery: &Delivery) -> (u64, Result<(), DeliveryError>) {
        let mut delay = FIRST_DELAY;
        let mut attempt = 1;
        loop {
            let sent = self.channel.send(delivery, &self.links).await;
            if !matches!(&sent, Err(failure) if failure.may_pass && attempt < ATTEMPTS) {
                return (attempt, sent);
            }
            tokio::time::sleep(delay).await;
            (attempt, delay) = (attempt + 1, (delay * 2).min(LONGEST_DELAY));
        }
    }

    /// Notifies the observers of the engine.
    fn report(&self, delivery: &Delivery, attempts: u64, failure: Option<&DeliveryError>) {
        let Some(engine) = self.engine.get() else { return };
        let message = &delivery.message;
        let report = NotificationReport {
            message: &delivery.id,
            about: message.kind.name(),
            approval_id: &message.source.approval_id,
            session: &message.source.conversation,
            call: &message.source.call,
            tool: &message.source.tool,
            channel: self.channel.format_name(),
            number: self.channel.number,
            recipient: self.channel.approver(delivery).map(|approver| approver.identity.principal.as_str()),
            attempts,
            failure: failure.map(|failure| failure.why.as_str()),
        };
        engine.report(match failure {
            None => EngineEventKind::NotificationSent(report),
            Some(_) => EngineEventKind::NotificationFailed(report),
        });
    }
}
