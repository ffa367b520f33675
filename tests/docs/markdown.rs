//! A Markdown page: its path → its fenced blocks, links and anchors, each with its line.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::fixtures::root;

/// A fenced block.
pub struct Block {
    /// The line of its fence.
    pub line: usize,
    /// What follows the language on the fence, such as `no_run` in `rust,no_run`, or a file name in `yaml rules.yaml`.
    pub attributes: Vec<String>,
    pub language: String,
    pub text: String,
}

impl Block {
    fn new(line: usize, info: &str) -> Self {
        let mut words = info.split([' ', ',']).filter(|word| !word.is_empty()).map(str::to_owned);
        let language = words.next().unwrap_or_default();
        Self { line, attributes: words.collect(), language, text: String::new() }
    }

    /// The file that the page creates with this block.
    pub fn file_name(&self) -> Option<&str> {
        self.attributes.iter().find(|word| word.contains('.') && !word.contains('=')).map(String::as_str)
    }

    /// The exit status of the block's last command.
    pub fn status(&self) -> i32 {
        let status = self.attributes.iter().find_map(|word| word.strip_prefix("status="));
        status.map_or(0, |status| status.parse().unwrap())
    }
}

pub struct Link {
    pub line: usize,
    pub target: String,
}

pub struct Page {
    /// Relative to the root of the repository.
    pub path: PathBuf,
    pub blocks: Vec<Block>,
    pub links: Vec<Link>,
    pub anchors: Vec<String>,
    /// Text in backquotes, outside of blocks.
    pub code_spans: Vec<Link>,
}

impl Page {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let mut page = Self {
            path: path.to_owned(),
            blocks: Vec::new(),
            links: Vec::new(),
            anchors: Vec::new(),
            code_spans: Vec::new(),
        };
        let mut heading: Option<String> = None;
        let mut is_block = false;
        let mut seen: HashMap<String, usize> = HashMap::new();
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            let before = text.get(..range.start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                    is_block = true;
                    page.blocks.push(Block::new(line, &info));
                }
                Event::End(TagEnd::CodeBlock) => is_block = false,
                Event::Text(part) if is_block => page.blocks.last_mut().unwrap().text += &part,
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap());
                    let count = seen.entry(anchor.clone()).and_modify(|count| *count += 1).or_insert(0);
                    page.anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(Link { line, target: dest_url.into_string() });
                }
                Event::Text(part) => heading.iter_mut().for_each(|heading| *heading += &part),
                Event::Code(part) => {
                    heading.iter_mut().for_each(|heading| *heading += &part);
                    page.code_spans.push(Link { line, target: part.into_string() });
                }
                _ => {}
            }
        }
        page
    }

    /// A position in the page, for messages.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }
}

/// The anchor that hosts and the site give to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}
