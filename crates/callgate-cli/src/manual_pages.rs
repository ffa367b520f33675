//! `callgate man`: manual pages, one for each command, generated from the definitions of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use super::Cli;
use super::exit::{CommandError, ExitStatus};
use super::output::{Output, count_noun};

/// Print or write the manual pages.
///
/// Without --output, the page of `callgate` is printed. With --output, one page for each command is written: `callgate.1`,
/// `callgate-check.1`, `callgate-approvals-list.1` and so on. Existing pages are replaced.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  callgate man | man -l -\n  callgate man --output ~/.local/share/man/man1"
)]
pub(super) struct ManArgs {
    /// Write the pages of all commands to this directory; created if it does not exist
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(super) fn man(arguments: &ManArgs, output: &mut Output) -> Result<ExitStatus, CommandError> {
    let mut root = Cli::command();
    root.build();
    let Some(directory) = &arguments.output else {
        output.write_all(&ManualPage::new(&root, None).render()?)?;
        return Ok(ExitStatus::Success);
    };
    fs::create_dir_all(directory).map_err(|error| write_error(directory, &error))?;
    let pages = all_pages(&root, None);
    for page in &pages {
        let path = directory.join(page.man.get_filename());
        fs::write(&path, page.render()?).map_err(|error| write_error(&path, &error))?;
    }
    let directory = directory.display();
    writeln!(output, "Wrote {} to {directory}", count_noun(pages.len(), "manual page", "manual pages"))?;
    Ok(ExitStatus::Success)
}

fn write_error(path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(format!("`{}` can't be written: {error}", path.display()))
}

/// The page of a command, and those of its visible subcommands at any depth.
fn all_pages(command: &clap::Command, parent: Option<&clap::Command>) -> Vec<ManualPage> {
    let mut pages = vec![ManualPage::new(command, parent)];
    let visible = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    pages.extend(visible.flat_map(|subcommand| all_pages(subcommand, Some(command))));
    pages
}

/// The manual page of one command.
struct ManualPage {
    man: Man,
    command: clap::Command,
    /// The page of the command that this one is a subcommand of.
    parent: Option<String>,
}

impl ManualPage {
    fn new(command: &clap::Command, parent: Option<&clap::Command>) -> Self {
        let mut command = command.clone();
        // The same usage as in `--help`, which names the values of options.
        let usage = command.render_usage().to_string();
        let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
        let command = command.override_usage(usage).subcommand_help_heading("COMMANDS");
        Self { man: Man::new(command.clone()), parent: parent.map(page_name), command }
    }

    fn render(&self) -> io::Result<Vec<u8>> {
        let mut page = Vec::new();
        // The third value is the date: empty, so that pages are the same whenever they are generated.
        let (name, version) = (page_name(&self.command).to_uppercase(), env!("CARGO_PKG_VERSION"));
        writeln!(page, r#".TH "{name}" "1" "" "callgate {version}" "Callgate Manual""#)?;
        self.man.render_name_section(&mut page)?;
        self.man.render_synopsis_section(&mut page)?;
        let sections = self.help_sections();
        sections.description.to_writer(&mut page)?;
        self.man.render_options_section(&mut page)?;
        if self.command.get_subcommands().any(|subcommand| !subcommand.is_hide_set()) {
            self.man.render_subcommands_section(&mut page)?;
        }
        sections.exit_status.to_writer(&mut page)?;
        sections.examples.to_writer(&mut page)?;
        if let Some(parent) = &self.parent {
            let mut see_also = Roff::new();
            see_also.control("SH", ["SEE ALSO"]).text([bold(parent), roman("(1)")]);
            see_also.to_writer(&mut page)?;
        }
        Ok(page)
    }

    /// The help texts before and after the options, as sections.
    fn help_sections(&self) -> HelpSections {
        let mut sections = HelpSections::default();
        sections.description.control("SH", ["DESCRIPTION"]);
        let before = self.command.get_long_about().or_else(|| self.command.get_about());
        let texts = [before, self.command.get_after_help()];
        let texts: Vec<String> = texts.into_iter().flatten().map(ToString::to_string).collect();
        for paragraph in texts.iter().flat_map(|text| text.split("\n\n")) {
            if let Some(statuses) = paragraph.strip_prefix("Exit status: ") {
                sections.exit_status.control("SH", ["EXIT STATUS"]).text([roman(statuses)]);
            } else if let Some(commands) = paragraph.strip_prefix("Examples:\n") {
                sections.examples.control("SH", ["EXAMPLES"]).control("nf", []);
                for command in commands.lines() {
                    sections.examples.text([roman(command.trim_start())]);
                }
                sections.examples.control("fi", []);
            } else {
                sections.description.control("PP", []).text([roman(paragraph)]);
            }
        }
        sections
    }
}

/// The name of a command's page, such as `callgate-approvals-list`.
fn page_name(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned()
}

/// Sections of a page that come from help texts; those without text are empty.
#[derive(Default)]
struct HelpSections {
    description: Roff,
    exit_status: Roff,
    examples: Roff,
}
