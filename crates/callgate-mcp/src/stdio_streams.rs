//! The process's stdin and stdout as async streams, for one client.
//!
//! Pipes and sockets, the usual case between an MCP client and its servers, are read and written by the thread that serves the client:
//! handing each message to another thread and back costs more than all other work on it. The descriptors stay blocking, because
//! other processes that share them, such as a shell, rely on that; so each operation first polls whether it would block.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::PIPE_BUF;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout};
use tokio::net::unix::pipe::{Receiver, Sender};

/// The process's stdin. Must be called inside a tokio runtime.
pub fn stdin() -> impl AsyncRead + Unpin + Send + 'static {
    let here = duplicate_pollable(&io::stdin()).and_then(|own| Receiver::from_owned_fd_unchecked(own).ok());
    here.map_or_else(|| InputStream::Threaded(tokio::io::stdin()), InputStream::Direct)
}

/// The process's stdout. Must be called inside a tokio runtime.
pub fn stdout() -> impl AsyncWrite + Unpin + Send + 'static {
    let here = duplicate_pollable(&io::stdout()).and_then(|own| Sender::from_owned_fd_unchecked(own).ok());
    here.map_or_else(|| OutputStream::Threaded(tokio::io::stdout()), OutputStream::Direct)
}

enum InputStream {
    Direct(Receiver),
    /// A file or a terminal: another thread reads it.
    Threaded(Stdin),
}

enum OutputStream {
    Direct(Sender),
    Threaded(Stdout),
}

/// Duplicates the stream's descriptor; `None` if the system can't report its readiness.
fn duplicate_pollable(stream: &impl AsFd) -> Option<OwnedFd> {
    let kind = FileType::from_raw_mode(fstat(stream).ok()?.st_mode);
    let is_pollable = matches!(kind, FileType::Fifo | FileType::Socket);
    is_pollable.then(|| stream.as_fd().try_clone_to_owned().ok())?
}

/// Returns `WouldBlock` if the operation would block now.
fn check_ready(stream: &impl AsFd, wanted: PollFlags) -> io::Result<()> {
    let mut poll_fds = [PollFd::new(stream, wanted)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match retry_on_intr(|| poll(&mut poll_fds, Some(&now)))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

fn read_some(from: &Receiver, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    loop {
        ready!(from.poll_read_ready(context))?;
        let done = from.try_io(|| {
            check_ready(from, PollFlags::IN)?;
            Ok(retry_on_intr(|| read(from, buffer.initialize_unfilled()))?)
        });
        match done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok(count) => {
                buffer.advance(count);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

fn write_some(to: &Sender, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
    // A writable pipe accepts this many bytes without blocking.
    let bytes = bytes.get(..PIPE_BUF).unwrap_or(bytes);
    loop {
        ready!(to.poll_write_ready(context))?;
        let done = to.try_io(|| {
            check_ready(to, PollFlags::OUT)?;
            Ok(retry_on_intr(|| write(to, bytes))?)
        });
        match done {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
}

impl AsyncRead for InputStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(from) => read_some(from, context, buffer),
            Self::Threaded(stdin) => Pin::new(stdin).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for OutputStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Direct(to) => write_some(to, context, bytes),
            Self::Threaded(stdout) => Pin::new(stdout).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(_) => Poll::Ready(Ok(())),
            Self::Threaded(stdout) => Pin::new(stdout).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_getfl};
    use rustix::pipe::pipe;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn reads_and_writes_blocking_pipes_and_leaves_them_blocking() {
        let (from, to) = pipe().expect("a pipe");
        let given = (from.try_clone().expect("a pipe"), to.try_clone().expect("a pipe"));
        let mut input =
            InputStream::Direct(Receiver::from_owned_fd_unchecked(from).expect("it can be waited for"));
        let mut output =
            OutputStream::Direct(Sender::from_owned_fd_unchecked(to).expect("it can be waited for"));
        let sent: Vec<u8> = (0..1 << 20).map(|number: u32| number.to_le_bytes()[1]).collect();
        let mut received = vec![0; sent.len()];
        // One thread does both, so neither may block it: the data exceeds the capacity of a pipe.
        let (written, read) = tokio::join!(output.write_all(&sent), async {
            tokio::task::yield_now().await;
            input.read_exact(&mut received).await
        });
        assert!(written.is_ok() && read.is_ok() && received == sent, "all of it came");
        for stream in [given.0, given.1] {
            assert!(
                !fcntl_getfl(&stream).expect("its flags").contains(OFlags::NONBLOCK),
                "it blocks as before"
            );
        }
    }
}
