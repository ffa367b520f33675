//! What waits, equal questions together.

use std::io::Write;

use super::json as forms;
use super::{Desk, Refusal, show};
use crate::approval::Item;
use crate::cli::Format;
use crate::cli::output::{BOLD, DIM, Output, YELLOW, grouped, one_line, to_the_minute};
use crate::json::{self, Value, json};

/// Questions that ask the same of people.
struct Group<'i> {
    items: Vec<&'i Item>,
}

impl Group<'_> {
    fn first(&self) -> Option<&Item> {
        self.items.first().copied()
    }
}

impl Desk<'_> {
    pub(super) fn list(&self, all: bool, output: &mut Output) -> Result<(), Refusal> {
        let items = self.runtime.block_on(self.inbox.list())?;
        let shown = items.iter().filter(|item| all || item.waits());
        let groups = groups(shown);
        if self.format == Format::Json {
            let groups: Vec<Value> = groups.iter().filter_map(group).collect();
            return forms::write(&json!({ "questions": groups }), output);
        }
        if groups.is_empty() {
            writeln!(output, "{}", if all { "nobody was asked" } else { "nothing waits for a person" })?;
        }
        for (index, group) in groups.iter().enumerate() {
            if index > 0 {
                writeln!(output)?;
            }
            self.write_group(group, output)?;
        }
        if !all {
            self.say_what_is_answered(&items, output)?;
        }
        Ok(())
    }

    fn write_group(&self, group: &Group<'_>, output: &mut Output) -> Result<(), Refusal> {
        let Some(first) = group.first() else { return Ok(()) };
        let request = &first.request;
        let question = one_line(request.message.as_deref().unwrap_or(&request.tool_name)).into_owned();
        let question = output.paint(BOLD, &question).into_owned();
        let count = match group.items.len() {
            1 => String::new(),
            count => format!("{} × ", grouped(count)),
        };
        writeln!(output, "{count}{question}")?;
        let tool = match &request.server {
            Some(server) => format!("{} on {}", one_line(&request.tool_name), one_line(server)),
            None => one_line(&request.tool_name).into_owned(),
        };
        writeln!(output, "  {tool}  {}", one_line(&request.input.to_string()))?;
        for item in &group.items {
            let id = output.paint(YELLOW, &one_line(&item.request.approval_id)).into_owned();
            let mut about = vec![format!("session {}", one_line(&item.name.conversation))];
            about.push(show::progress(item));
            if item.waits()
                && let Some(expires) = &item.request.expires_at
            {
                about.push(format!("until {}", to_the_minute(expires)));
            }
            let about = output.paint(DIM, &about.join(" · ")).into_owned();
            writeln!(output, "  {id}  {about}")?;
        }
        Ok(())
    }
}

fn groups<'i>(items: impl Iterator<Item = &'i Item>) -> Vec<Group<'i>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for item in items {
        let request = &item.request;
        let same = json::digest(&json!([
            request.tool_name,
            request.server,
            request.message,
            request.policies,
            request.input,
        ]));
        let place = *places.entry(same).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.items.push(item),
            None => groups.push(Group { items: vec![item] }),
        }
    }
    groups
}

fn group(group: &Group<'_>) -> Option<Value> {
    let request = &group.first()?.request;
    Some(json!({
        "count": group.items.len(),
        "message": request.message,
        "tool": request.tool_name,
        "server": request.server,
        "input": request.input,
        "policies": request.policies,
        "approvals": group.items.iter().map(|item| forms::item(item)).collect::<Vec<_>>(),
    }))
}
