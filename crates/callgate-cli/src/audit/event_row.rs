//! A table of events, one line an event, in columns whose widths depend on the first rows.

use std::io::{self, Write};

use clap::builder::styling::Style;

use crate::output::{BOLD, CYAN, DIM, Output, count_noun, display_width, escape_line, truncate};
use crate::run::outcome_row::mark_and_style;
use callgate::call::OutcomeKind;
use callgate::json::Value;
use callgate_log::LogEntry;

/// The number of rows that determine the widths.
const MAX_BUFFERED_ROWS: usize = 64;
/// The maximum width of a column, except for the last one.
const MAX_CELL_WIDTH: usize = 40;
/// The minimum width of the last column on a terminal.
const MIN_DETAIL_WIDTH: usize = 20;
const GAP: &str = "  ";
const HEAD: [&str; COLUMNS] = ["TIME", "EVENT", "SESSION", "PRINCIPAL", "TOOL", "POLICY"];
/// The number of columns before the last one.
const COLUMNS: usize = 6;

/// The cells of a row, escaped.
pub(super) struct EventRow {
    cells: [String; COLUMNS],
    detail: String,
    style: Style,
}

impl EventRow {
    pub(super) fn from_entry(entry: &LogEntry) -> Self {
        let cell = |text: Option<&str>| escape_line(text.unwrap_or_default()).into_owned();
        let outcome = entry.text("outcome").filter(|_| entry.event == "call_completed");
        let kind = outcome.and_then(|name| OutcomeKind::ALL.into_iter().find(|kind| kind.name() == name));
        let (event, style) = match kind {
            Some(kind) => {
                let (mark, style) = mark_and_style(kind);
                (format!("{mark} {}", kind.name()), style)
            }
            None => (cell(Some(outcome.unwrap_or(&entry.event))), DIM),
        };
        let tool = match (entry.text("server"), entry.text("tool")) {
            (Some(server), Some(tool)) => cell(Some(&format!("{server}/{tool}"))),
            (_, tool) => cell(tool),
        };
        let cells = [
            entry.time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            event,
            cell(entry.text("session")),
            cell(entry.text("principal")),
            tool,
            cell(entry.reason("policy").or_else(|| entry.text("policy"))),
        ];
        Self { cells, detail: cell(Some(&describe(entry, kind))), style }
    }
}

/// What the columns do not say.
fn describe(entry: &LogEntry, kind: Option<OutcomeKind>) -> String {
    if let Some(OutcomeKind::Executed | OutcomeKind::Cached | OutcomeKind::Answered) = kind {
        return String::new();
    }
    let number = |name: &str| entry.members.get(name).and_then(Value::as_u64);
    let by = entry.members.get("by").and_then(Value::as_array).map(|names| {
        let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        format!("by {}", names.join(", "))
    });
    let parts = [
        entry.text("effect").map(str::to_owned),
        entry.reason("message").or_else(|| entry.reason("code")).map(str::to_owned),
        entry.text("code").map(str::to_owned),
        by,
        entry.text("comment").map(|comment| format!("“{comment}”")),
        entry.text("message").map(str::to_owned),
        number("count")
            .map(|count| count_noun(usize::try_from(count).unwrap_or(usize::MAX), "event", "events")),
        number("process").map(|process| format!("process {process}")),
        entry.members.contains_key("incomplete_line_before").then(|| "after an incomplete line".to_owned()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A table that is written row by row.
#[derive(Default)]
pub(super) struct EventTable {
    buffered: Vec<EventRow>,
    widths: Option<[usize; COLUMNS]>,
    count: usize,
}

impl EventTable {
    pub(super) fn add(&mut self, row: EventRow, output: &mut Output) -> io::Result<()> {
        self.count += 1;
        if let Some(widths) = &self.widths {
            return write_event(&row, widths, output);
        }
        self.buffered.push(row);
        if self.buffered.len() < MAX_BUFFERED_ROWS { Ok(()) } else { self.flush(output) }
    }

    /// Writes what is buffered, and the number of events.
    pub(super) fn finish(mut self, output: &mut Output) -> io::Result<()> {
        self.flush(output)?;
        let summary = count_noun(self.count, "event", "events");
        writeln!(output, "{}", output.paint(BOLD, &summary).into_owned())
    }

    fn flush(&mut self, output: &mut Output) -> io::Result<()> {
        if self.buffered.is_empty() {
            return Ok(());
        }
        let widths = self.widths.insert(widths_of(&self.buffered));
        let head = EventRow { cells: HEAD.map(str::to_owned), detail: "DETAIL".to_owned(), style: DIM };
        write_row(&head, |_| DIM, widths, output)?;
        self.buffered.drain(..).try_for_each(|row| write_event(&row, widths, output))
    }
}

/// The widths of the columns; a column without values has none.
fn widths_of(rows: &[EventRow]) -> [usize; COLUMNS] {
    std::array::from_fn(|column| {
        let cells = rows.iter().filter_map(|row| row.cells.get(column));
        let widest = cells.map(|cell| display_width(cell)).max().unwrap_or(0);
        let head = HEAD.get(column).map_or(0, |head| display_width(head));
        if widest == 0 { 0 } else { widest.max(head).min(MAX_CELL_WIDTH) }
    })
}

fn write_event(row: &EventRow, widths: &[usize; COLUMNS], output: &mut Output) -> io::Result<()> {
    let style = |column| match column {
        0 => DIM,
        1 => row.style,
        4 => BOLD,
        5 => CYAN,
        _ => Style::new(),
    };
    write_row(row, style, widths, output)
}

fn write_row(
    row: &EventRow,
    style: impl Fn(usize) -> Style,
    widths: &[usize; COLUMNS],
    output: &mut Output,
) -> io::Result<()> {
    let mut line = String::new();
    let mut used = 0;
    let mut padding = 0;
    for (column, (cell, width)) in
        row.cells.iter().zip(widths).enumerate().filter(|(_, (_, width))| **width > 0)
    {
        let shown = if output.width.is_some() { truncate(cell, *width) } else { cell.into() };
        line.push_str(&" ".repeat(padding));
        line.push_str(&output.paint(style(column), &shown));
        padding = width.saturating_sub(display_width(&shown)) + GAP.len();
        used += width + GAP.len();
    }
    if !row.detail.is_empty() {
        let room = output.width.map(|width| width.saturating_sub(used).max(MIN_DETAIL_WIDTH));
        let detail = room.map_or_else(|| row.detail.as_str().into(), |room| truncate(&row.detail, room));
        line.push_str(&" ".repeat(padding));
        line.push_str(&output.paint(style(COLUMNS), &detail));
    }
    writeln!(output, "{}", line.trim_end())
}
