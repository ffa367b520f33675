//! The table of wrappers.

use super::wrapper::Runs::{self, Command, CommandWithMore, Text, Texts};

/// A wrapper of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrapperEntry {
    /// The program and its subcommands.
    pub(crate) words: &'static str,
    /// The number of its own operands before the command.
    pub(crate) operands: usize,
    pub(crate) runs: Runs,
    /// Whether the command runs on another machine or in another file system.
    pub(crate) is_remote: bool,
}

const fn local(words: &'static str, operands: usize, runs: Runs) -> WrapperEntry {
    WrapperEntry { words, operands, runs, is_remote: false }
}

const fn remote(words: &'static str, operands: usize, runs: Runs) -> WrapperEntry {
    WrapperEntry { words, operands, runs, is_remote: true }
}

/// Programs with their subcommands, the longest first of each program.
const WRAPPERS: &[WrapperEntry] = &[
    local("sudo", 0, Command),
    local("doas", 0, Command),
    local("runuser", 0, Command),
    local("env", 0, Command),
    local("genv", 0, Command),
    local("timeout", 1, Command),
    local("gtimeout", 1, Command),
    local("nice", 0, Command),
    local("gnice", 0, Command),
    local("ionice", 0, Command),
    local("chrt", 1, Command),
    local("taskset", 1, Command),
    local("nohup", 0, Command),
    local("setsid", 0, Command),
    local("stdbuf", 0, Command),
    local("time", 0, Command),
    local("unbuffer", 0, Command),
    local("caffeinate", 0, Command),
    local("chronic", 0, Command),
    local("eatmydata", 0, Command),
    local("proxychains", 0, Command),
    local("torsocks", 0, Command),
    local("fakeroot", 0, Command),
    local("dbus-run-session", 0, Command),
    local("catchsegv", 0, Command),
    local("strace", 0, Command),
    local("ltrace", 0, Command),
    local("valgrind", 0, Command),
    local("gdb", 0, Command),
    local("lldb", 0, Command),
    local("perf", 1, Command),
    local("flock", 1, Command),
    local("xvfb-run", 0, Command),
    local("sshpass", 0, Command),
    local("systemd-run", 0, Command),
    local("unshare", 0, Command),
    remote("nsenter", 0, Command),
    remote("chroot", 1, Command),
    local("busybox", 0, Command),
    local("toybox", 0, Command),
    local("command", 0, Command),
    local("builtin", 0, Command),
    local("exec", 0, Command),
    local("xargs", 0, CommandWithMore),
    local("gxargs", 0, CommandWithMore),
    local("parallel", 0, CommandWithMore),
    local("watch", 0, Text),
    local("entr", 0, Command),
    local("eval", 0, Text),
    local("hyperfine", 0, Texts),
    local("concurrently", 0, Texts),
    local("npx", 0, Command),
    local("pnpx", 0, Command),
    local("bunx", 0, Command),
    local("uvx", 0, Command),
    local("npm exec", 0, Command),
    local("pnpm exec", 0, Command),
    local("pnpm dlx", 0, Command),
    local("yarn exec", 0, Command),
    local("yarn dlx", 0, Command),
    local("bundle exec", 0, Command),
    local("poetry run", 0, Command),
    local("pdm run", 0, Command),
    local("hatch run", 0, Command),
    local("rye run", 0, Command),
    local("pipenv run", 0, Command),
    local("uv run", 0, Command),
    local("conda run", 0, Command),
    local("mamba run", 0, Command),
    local("rustup run", 1, Command),
    local("asdf exec", 0, Command),
    local("mise exec", 0, Command),
    local("direnv exec", 1, Command),
    local("op run", 0, Command),
    local("doppler run", 0, Command),
    local("aws-vault exec", 1, Command),
    local("git bisect run", 0, Command),
    local("git submodule foreach", 0, Text),
    local("tmux new-session", 0, Text),
    local("tmux new", 0, Text),
    local("tmux new-window", 0, Text),
    local("tmux split-window", 0, Text),
    local("tmux send-keys", 0, Texts),
    local("screen", 0, Command),
    remote("ssh", 1, Text),
    remote("mosh", 1, Text),
    remote("adb shell", 0, Text),
    remote("heroku run", 0, Text),
    remote("docker compose exec", 1, Command),
    remote("docker compose run", 1, Command),
    remote("docker container exec", 1, Command),
    remote("docker container run", 1, Command),
    remote("docker exec", 1, Command),
    remote("docker run", 1, Command),
    remote("podman exec", 1, Command),
    remote("podman run", 1, Command),
    remote("docker-compose exec", 1, Command),
    remote("docker-compose run", 1, Command),
    remote("kubectl exec", 1, Command),
    remote("oc exec", 1, Command),
];

/// The wrapper that a program with these operands is. A subcommand counts only if its words are known.
pub(crate) fn find_wrapper<'w>(
    program: &str,
    mut operand: impl FnMut(usize) -> Option<&'w str>,
) -> Option<WrapperEntry> {
    WRAPPERS.iter().copied().find(|entry| {
        let mut words = entry.words.split(' ');
        words.next() == Some(program) && words.enumerate().all(|(index, word)| operand(index) == Some(word))
    })
}
