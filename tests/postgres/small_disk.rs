//! A disk so small that a server fills it: a file system in memory, in a mount namespace of its own, which needs no rights.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The user of a server: PostgreSQL refuses to run as root.
pub const NOBODY: u32 = 65_534;

pub struct SmallDisk {
    holder: Child,
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts the disk on this directory, for the programs that run on it.
    pub fn mount(path: &Path, mebibytes: u32) -> Self {
        let script =
            format!("mount -t tmpfs -o size={mebibytes}m,mode=700 tmpfs \"$0\"; echo mounted; exec cat");
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-ec", &script]).arg(path);
        if rustix::process::getuid().is_root() {
            unshare.uid(NOBODY).gid(NOBODY);
        }
        let mut holder = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "mounted", "this test needs user namespaces (`unshare --user --mount`)");
        Self { holder, path: path.to_owned() }
    }

    /// A command that runs this program with the disk, as a user who is not root.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "--preserve-credentials",
            "--user",
            "--mount",
            "--target",
            &self.holder.id().to_string(),
        ]);
        command.args([
            "unshare",
            "--user",
            &format!("--map-user={NOBODY}"),
            &format!("--map-group={NOBODY}"),
        ]);
        command.arg(program);
        command
    }

    /// Fills what is left, as another program on the disk does.
    pub fn fill(&self) {
        let mut filler = self.command(Path::new("sh"));
        filler.args(["-c", "cat /dev/zero > \"$0\" 2> /dev/null; true"]).arg(self.filler());
        self.run(filler);
    }

    /// Frees it again.
    pub fn free(&self) {
        let mut remover = self.command(Path::new("rm"));
        remover.arg(self.filler());
        self.run(remover);
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    fn run(&self, mut command: Command) {
        if rustix::process::getuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        assert!(command.status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
        let _ = fs::remove_dir(&self.path);
    }
}
