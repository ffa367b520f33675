//! `callgate bundle`: packs, signs, verifies and publishes rules for many instances, and shows and confirms what they have of it.

mod fleet;
mod pull;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use tokio::runtime::Runtime;

use super::OutputFormat;
use super::exit::{CommandError, ExitStatus};
use super::output::{Output, count_noun, print_error};
use super::pins::read_signers;
use super::published_rules::SourceAccessArgs;
use super::reload_output::print_reason;
use callgate::file_access::read_regular_file;
use callgate::reload;
use callgate::seal::SigningKey;
use callgate_bundle::{Bundle, BundleSource, Fetched, MAX_ENVELOPE_BYTES, SignedBundle, TrustPolicy, sign};
use callgate_policy_tests::PolicyTests;

/// Publish rules once for many instances.
///
/// A bundle is one file with all rules, a name, a version and a signature (Ed25519). Instances that are started with `--policies URL` fetch
/// it, accept only signed and newer versions, and reload their rules.
///
/// Exit status: 0 done; 1 for `pack`: the rules have errors, for `verify` and `pull`: the bundle is refused, for `status`: an instance has not the
/// newest version, for `confirm`: nothing is pending; 2 usage error, or a file, the publisher or the state store can't be used.
#[derive(clap::Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        callgate bundle key publisher.key >> publishers.keys\n  \
        callgate bundle pack my-rules --name payments --version 42 --key publisher.key --out payments.json\n  \
        callgate bundle verify payments.json --signed-by publishers.keys\n  \
        callgate bundle pull https://rules.example.com/payments.json --signed-by publishers.keys --out rules\n  \
        callgate bundle push payments.json oci://registry.example.com/rules/payments:stable\n  \
        callgate serve --policies oci://registry.example.com/rules/payments:stable --policies-signed-by publishers.keys\n  \
        callgate bundle status --state rediss://state.example.com\n  \
        callgate bundle confirm --state rediss://state.example.com"
)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Subcommand)]
enum BundleCommand {
    /// Pack the files of a directory, and sign them
    ///
    /// The rules must load, and pass their tests if they require it. Hidden files are left out; symbolic links are an error.
    Pack {
        /// The directory: rules, their tests, and the files that they refer to
        #[arg(value_name = "DIRECTORY")]
        directory: PathBuf,
        /// The name, which distinguishes it from other bundles of the same publisher
        #[arg(long, value_name = "NAME")]
        name: String,
        /// The version: higher than every one that was published before, also to go back to earlier rules
        #[arg(long, value_name = "NUMBER")]
        version: u64,
        /// Sign with the secret key in KEY; repeatable, to replace a key while instances still trust the old one
        #[arg(long, value_name = "KEY", required = true)]
        key: Vec<PathBuf>,
        /// The file to write
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Verify the signature of a bundle, and print its name, version and files
    Verify {
        /// The file, or a URL as in `--policies`
        #[arg(value_name = "BUNDLE")]
        bundle: String,
        /// The public keys of publishers, one a line
        #[arg(long, value_name = "FILE")]
        signed_by: PathBuf,
        /// The name that it must have
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        access: SourceAccessArgs,
    },
    /// Write the files of a published bundle into a directory, for commands that read files: `check`, `test`, `run`, `explain`, `hook`
    ///
    /// The directory is replaced as a whole, and only by a newer version whose rules load, and pass their tests if they require it.
    Pull {
        /// The file, or a URL as in `--policies`
        #[arg(value_name = "BUNDLE")]
        bundle: String,
        /// The public keys of publishers, one a line
        #[arg(long, value_name = "FILE")]
        signed_by: PathBuf,
        /// The name that it must have
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// The directory: a new or an empty one, or one that has an earlier version
        #[arg(long, value_name = "DIRECTORY")]
        out: PathBuf,
        #[command(flatten)]
        access: SourceAccessArgs,
    },
    /// Publish a bundle: PUT at an `https://` URL, an object of an S3-compatible store, or an artifact of a registry
    Push {
        /// The bundle
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Where to publish it
        #[arg(value_name = "URL")]
        url: String,
        #[command(flatten)]
        access: SourceAccessArgs,
    },
    /// Print the public key of a signing key, which is created if missing
    Key {
        /// The secret key file, readable only by its owner
        #[arg(value_name = "KEY")]
        path: PathBuf,
    },
    /// Show which version each instance has, and why it has not the newest one
    Status {
        /// The state store that the instances share
        #[arg(long, value_name = "URL")]
        state: String,
        /// Output format: text, or one JSON document for programs
        #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
        format: OutputFormat,
    },
    /// Confirm rules that are pending because they may allow more, for all instances
    ///
    /// Prints what they may allow. The confirmation counts for this version of the bundle, and for instances whose rules are those that
    /// were compared.
    Confirm {
        /// The state store that the instances share
        #[arg(long, value_name = "URL")]
        state: String,
        /// The revision of the pending rules, if there are several
        #[arg(value_name = "REVISION")]
        revision: Option<String>,
        /// Confirm, and not only show what is pending
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn bundle(arguments: &BundleArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    match &arguments.command {
        BundleCommand::Pack { directory, name, version, key, out } => {
            let keys = key.iter().map(|path| signing_key(path)).collect::<Result<Vec<_>, _>>()?;
            let bundle = Bundle::from_directory(name, *version, directory).map_err(command_error)?;
            pack(&bundle, &keys, out, output)
        }
        BundleCommand::Verify { bundle, signed_by, name, access } => {
            let keys = read_signers(signed_by)?.public_keys().to_vec();
            let trust = TrustPolicy { keys, name: name.clone() };
            verify(read_envelope(bundle, access)?, &trust, output)
        }
        BundleCommand::Pull { bundle, signed_by, name, out, access } => {
            let keys = read_signers(signed_by)?.public_keys().to_vec();
            let trust = TrustPolicy { keys, name: name.clone() };
            match open(read_envelope(bundle, access)?, &trust) {
                Some(signed) => pull::pull(&signed, out, output),
                None => Ok(ExitStatus::Failure),
            }
        }
        BundleCommand::Push { file, url, access } => {
            let source = access.source(url)?;
            network_runtime()?.block_on(source.push(read_file(file)?)).map_err(command_error)?;
            writeln!(output, "`{}` is published at `{}`", file.display(), source.display_name())?;
            Ok(ExitStatus::Success)
        }
        BundleCommand::Key { path } => {
            writeln!(output, "{}", signing_key(path)?.public_key())?;
            Ok(ExitStatus::Success)
        }
        BundleCommand::Status { state, format } => fleet::print_status(state, *format, output),
        BundleCommand::Confirm { state, revision, yes } => {
            fleet::confirm(state, revision.as_deref(), *yes, output)
        }
    }
}

fn command_error(error: impl std::fmt::Display) -> CommandError {
    CommandError::new(error.to_string())
}

fn network_runtime() -> Result<Runtime, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| CommandError::new(format!("the async runtime can't be started: {error}")))
}

fn signing_key(path: &Path) -> Result<SigningKey, CommandError> {
    SigningKey::from_file_or_new(path).map_err(command_error)
}

fn read_file(path: &Path) -> Result<Vec<u8>, CommandError> {
    let read = read_regular_file(path, MAX_ENVELOPE_BYTES as u64);
    read.map(String::into_bytes).map_err(|error| CommandError::new(format!("`{}`: {error}", path.display())))
}

fn read_envelope(bundle: &str, access: &SourceAccessArgs) -> Result<Vec<u8>, CommandError> {
    if !BundleSource::is_url(bundle) {
        return read_file(Path::new(bundle));
    }
    match network_runtime()?.block_on(access.source(bundle)?.fetch(None)).map_err(command_error)? {
        Fetched::Envelope(envelope, _) => Ok(envelope),
        Fetched::Unchanged => Err(CommandError::new("the publisher returned no bundle")),
    }
}

/// Loads the rules as instances will, and writes the signed bundle.
fn pack(
    bundle: &Bundle,
    keys: &[SigningKey],
    out: &Path,
    output: &mut Output,
) -> Result<ExitStatus, CommandError> {
    let unpacked = tempfile::TempDir::with_prefix("callgate-").map_err(command_error)?;
    bundle.write_to(unpacked.path()).map_err(command_error)?;
    let prefix = format!("{}/", unpacked.path().display());
    if let Err(reason) = reload::load(&[unpacked.path().to_owned()], &PolicyTests) {
        print_reason(&reason, &|text| text.replace(&prefix, ""));
        print_error("the bundle is not written, because no instance would accept its rules");
        return Ok(ExitStatus::Failure);
    }
    let envelope = sign(&bundle.document(), &keys.iter().collect::<Vec<_>>());
    std::fs::write(out, envelope)
        .map_err(|error| CommandError::new(format!("`{}` can't be written: {error}", out.display())))?;
    let (name, version) = (bundle.name(), bundle.version());
    let files = count_noun(bundle.files().len(), "file", "files");
    writeln!(
        output,
        "`{}`: version {version} of the bundle `{name}`, {files}, sha256:{}",
        out.display(),
        bundle.digest()
    )?;
    Ok(ExitStatus::Success)
}

/// A bundle whose signature is verified; otherwise prints why it is refused.
fn open(envelope: Vec<u8>, trust: &TrustPolicy) -> Option<SignedBundle> {
    SignedBundle::open(envelope, trust).inspect_err(|error| print_error(error)).ok()
}

fn verify(envelope: Vec<u8>, trust: &TrustPolicy, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let Some(signed) = open(envelope, trust) else { return Ok(ExitStatus::Failure) };
    let bundle = &signed.bundle;
    writeln!(
        output,
        "version {} of the bundle `{}`, sha256:{}",
        bundle.version(),
        bundle.name(),
        signed.digest
    )?;
    for (name, text) in bundle.files() {
        writeln!(output, "  {:>8} {name}", text.len())?;
    }
    Ok(ExitStatus::Success)
}
