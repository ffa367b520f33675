//! The text of one rules file → its tree. YAML is taken strictly: what two readers could understand in two ways is
//! refused.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use granit_parser::{Event, Parser, ScalarStyle, Span as YamlSpan, StrInput, StructureStyle};

use super::aliases::Anchors;
use super::document::{Entry, Node, NodeValue, Text, TextStyle};
use super::scalar::{Plain, resolve};
use super::syntax;
use crate::diagnostic::{
    BAD_ALIAS, DUPLICATE_KEY, Diagnostic, Diagnostics, EMPTY_FILE, SEVERAL_DOCUMENTS, SourceId, Span,
    YAML_FEATURE, YAML_LIMIT,
};

/// Lists and mappings nested deeper than this are refused.
pub const MAX_NESTING: usize = 64;
/// A file of more values than this is refused; an alias counts as often as it is used.
pub const MAX_NODES: usize = 1_000_000;

/// Reads one rules file.
///
/// What is wrong is added to `diagnostics`; a caller must look there, for a tree is also returned where the problems
/// leave it sensible (of a doubled key, the first stands), so that what else is wrong can be reported in the same go.
/// `None` where there is no tree, or none that says what the file says.
pub fn parse(source: SourceId, text: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    let options = granit_parser::options! {
        strict_indentation: true,
        disallow_directives: true,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    let mut reader = Reader {
        source,
        text,
        events: Parser::new_from_str_with_options(text, options),
        anchors: Anchors::default(),
        nodes: 0,
        faithful: true,
        diagnostics,
    };
    let root = reader.stream().ok()??;
    reader.faithful.then_some(root)
}

/// Reading can't go on; why is among the diagnostics.
struct Stop;

struct Reader<'t, 'd> {
    source: SourceId,
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    anchors: Anchors,
    nodes: usize,
    /// Whether the tree still says what the file says.
    faithful: bool,
    diagnostics: &'d mut Diagnostics,
}

impl<'t> Reader<'t, '_> {
    fn next(&mut self) -> Result<(Event<'t>, YamlSpan), Stop> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let diagnostic = syntax::explain(self.source, self.text, &error);
                // What the parser trips over on a line that is known to be wrong says nothing new.
                if !self.is_on_a_wrong_line(&diagnostic) {
                    self.diagnostics.push(diagnostic);
                }
                Err(Stop)
            }
            None => Ok((Event::StreamEnd, YamlSpan::default())),
        }
    }

    fn is_on_a_wrong_line(&self, diagnostic: &Diagnostic) -> bool {
        let last = self.diagnostics.iter().last().and_then(|last| last.span);
        last.zip(diagnostic.span).is_some_and(|(last, new)| {
            last.source == new.source
                && self.text.get(last.start..new.start).is_some_and(|between| !between.contains('\n'))
        })
    }

    /// The words of the file at a place in it.
    fn written(&self, span: Span) -> &'t str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    fn span(&self, span: &YamlSpan) -> Span {
        let range = span.byte_range().unwrap_or_default();
        Span::new(self.source, range.start, range.end)
    }

    fn stream(&mut self) -> Result<Option<Node>, Stop> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::DocumentStart(..) if root.is_some() => {
                    self.diagnostics.push(
                        Diagnostic::new(
                            &SEVERAL_DOCUMENTS,
                            self.span(&span),
                            "a second document begins here; a rules file holds one",
                        )
                        .help("move what follows into a file of its own, or remove this line"),
                    );
                    return Ok(root);
                }
                Event::StreamEnd => {
                    if root.is_none() {
                        self.empty_file();
                    }
                    return Ok(root);
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::Scalar(ref value, ScalarStyle::Plain, ..) if value.is_empty() => {
                    self.empty_file();
                    return Err(Stop);
                }
                node => root = Some(self.node(node, &span, 1)?),
            }
        }
    }

    fn empty_file(&mut self) {
        let message = if self.text.trim().is_empty() {
            "the file is empty"
        } else {
            "the file says nothing: it holds only comments"
        };
        self.diagnostics.push(
            Diagnostic::new(&EMPTY_FILE, Span::new(self.source, 0, 0), message)
                .help("write `policies: []` if no policies are meant, or remove the file"),
        );
    }

    /// The node that an event begins, `depth` being the nesting that a list or mapping here would have.
    fn node(&mut self, event: Event<'t>, span: &YamlSpan, depth: usize) -> Result<Node, Stop> {
        self.count(1, self.span(span))?;
        if let Some(tag) = span.tag_span() {
            let at = self.span(&tag);
            self.diagnostics.push(syntax::tag(at, self.written(at)));
        }
        let anchor = event.anchor_id();
        let place = self.span(span);
        if let Some(id) = anchor {
            self.anchors.open(id);
        }
        let node = match event {
            Event::Scalar(value, style, ..) => self.scalar(&value, style, place),
            Event::SequenceStart(style, ..) => {
                self.check_depth(depth, place)?;
                self.sequence(style, place, depth)?
            }
            Event::MappingStart(style, ..) => {
                self.check_depth(depth, place)?;
                self.mapping(style, place, depth)?
            }
            Event::Alias(id) => self.alias(id, place, depth)?,
            Event::UnresolvedAlias(name) => self.unknown_alias(&name, place),
            _ => Node { value: NodeValue::Null, span: place },
        };
        if let Some(id) = anchor
            && !self.anchors.close(id, &node)
        {
            return self.limit(place, "anchors and aliases stand for too much", "write the values out");
        }
        Ok(node)
    }

    fn sequence(&mut self, style: StructureStyle, start: Span, depth: usize) -> Result<Node, Stop> {
        let mut items = Vec::new();
        let mut span = Span { start: self.first_dash(style, start.start), ..start };
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                span.end = self.collection_end(style, span, &place);
                return Ok(Node { value: NodeValue::Sequence(items), span });
            }
            let item = self.node(event, &place, depth + 1)?;
            span.end = span.end.max(item.span.end);
            items.push(item);
        }
    }

    fn mapping(&mut self, style: StructureStyle, start: Span, depth: usize) -> Result<Node, Stop> {
        let mut entries = Vec::new();
        let mut first_places: HashMap<String, Span> = HashMap::new();
        let mut span = start;
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                span.end = self.collection_end(style, span, &place);
                return Ok(Node { value: NodeValue::Mapping(entries), span });
            }
            let key_node = self.node(event, &place, depth + 1)?;
            let (event, place) = self.next()?;
            let mut value = self.node(event, &place, depth + 1)?;
            if value.span.start == value.span.end {
                value.span = self.after_colon(key_node.span);
            }
            span.end = span.end.max(key_node.span.end).max(value.span.end);
            let Some((key, key_span)) = self.key(key_node) else { continue };
            match first_places.entry(key) {
                Slot::Occupied(first) => self.diagnostics.push(
                    Diagnostic::new(&DUPLICATE_KEY, key_span, format!("the key `{}` is here twice", first.key()))
                        .label(*first.get(), "first here")
                        .help("remove one of the two"),
                ),
                Slot::Vacant(slot) => {
                    let key = slot.key().clone();
                    slot.insert(key_span);
                    entries.push(Entry { key, key_span, value });
                }
            }
        }
    }

    /// Of a list that is no further indented than its key, the parser names the first item, not its dash.
    fn first_dash(&self, style: StructureStyle, start: usize) -> usize {
        let before = self.text.get(..start).unwrap_or("").trim_end_matches([' ', '\t']);
        match style {
            StructureStyle::Block if before.ends_with('-') => before.len() - 1,
            _ => start,
        }
    }

    /// The end of a block collection as the parser has it runs over the blank lines and comments that follow.
    fn collection_end(&self, style: StructureStyle, so_far: Span, end: &YamlSpan) -> usize {
        match style {
            StructureStyle::Flow => self.span(end).end,
            StructureStyle::Block => so_far.end,
        }
    }

    /// Where a value that isn't there would begin.
    fn after_colon(&self, key: Span) -> Span {
        let rest = self.text.get(key.end..).unwrap_or("");
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let colon = usize::from(rest.get(gap..).is_some_and(|rest| rest.starts_with(':')));
        let place = if colon == 1 { key.end + gap + colon } else { key.end };
        Span::new(self.source, place, place)
    }

    fn key(&mut self, node: Node) -> Option<(String, Span)> {
        let text = match node.value {
            NodeValue::String(Text { text, style }) if text != "<<" || style != TextStyle::Plain => {
                return Some((text, node.span));
            }
            NodeValue::String(_) => {
                self.faithful = false;
                self.diagnostics.push(
                    Diagnostic::new(&YAML_FEATURE, node.span, "merge keys (`<<`) are not supported")
                        .help("write the keys out, or use an alias for a whole value"),
                );
                return None;
            }
            NodeValue::Sequence(_) | NodeValue::Mapping(_) => {
                self.faithful = false;
                self.diagnostics.push(self.collection_as_key(&node));
                return None;
            }
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(_) => {
                self.written(node.span)
            }
        };
        let kind = node.type_name();
        self.diagnostics.push(if text.is_empty() {
            Diagnostic::new(&YAML_FEATURE, node.span, "the key before `:` is missing")
                .help("write the key, or quote the `:` if it belongs to a text")
        } else {
            Diagnostic::new(&YAML_FEATURE, node.span, format!("the key `{text}` is {kind}, not a string"))
                .help(format!("quote it: `\"{text}\"`"))
        });
        None
    }

    fn collection_as_key(&self, node: &Node) -> Diagnostic {
        let before = self.text.get(..node.span.start).unwrap_or("");
        let is_template = before.ends_with('{') && matches!(node.value, NodeValue::Mapping(_));
        if is_template {
            let span = Span { start: node.span.start - 1, ..node.span };
            Diagnostic::new(&YAML_FEATURE, span, "unquoted, `{{` begins a mapping whose key is a mapping")
                .help("quote the text that the template stands in: `\"{{ … }}\"`")
        } else {
            Diagnostic::new(&YAML_FEATURE, node.span, format!("{} can't be a key", node.type_name()))
                .help("a key is a string; if this is one, quote it")
        }
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, span: Span) -> Node {
        let written = self.written(span);
        let trimmed = Span { end: span.start + written.trim_end().len(), ..span };
        let text_style = match style {
            ScalarStyle::Plain if written == value => TextStyle::Plain,
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => TextStyle::Quoted,
            ScalarStyle::Literal => TextStyle::Literal,
            ScalarStyle::Folded => TextStyle::Folded,
        };
        let string = || NodeValue::String(Text { text: value.to_owned(), style: text_style });
        let resolved = if style == ScalarStyle::Plain { resolve(value) } else { Plain::String };
        let value = match resolved {
            Plain::Null => NodeValue::Null,
            Plain::Bool(value) => NodeValue::Bool(value),
            Plain::Number(number) => NodeValue::Number(number),
            Plain::String => string(),
            Plain::NotFinite => {
                self.refuse_number(trimmed, format!("`{value}` is not a number that a policy can hold"));
                string()
            }
            Plain::TooLong => {
                self.refuse_number(trimmed, "this number is longer than 128 bits".to_owned());
                string()
            }
        };
        Node { value, span: trimmed }
    }

    fn refuse_number(&mut self, span: Span, message: String) {
        self.faithful = false;
        self.diagnostics.push(
            Diagnostic::new(&YAML_FEATURE, span, message)
                .help("write a finite decimal number, or quote it if it is a text"),
        );
    }

    fn alias(&mut self, id: usize, span: Span, depth: usize) -> Result<Node, Stop> {
        if self.anchors.is_open(id) {
            self.faithful = false;
            let name = self.written(span);
            self.diagnostics.push(
                Diagnostic::new(&BAD_ALIAS, span, format!("`{name}` stands inside the value that it refers to"))
                    .help("a value can't contain itself: write it out"),
            );
            return Ok(Node { value: NodeValue::Null, span });
        }
        let Some(target) = self.anchors.target(id) else {
            return Ok(Node { value: NodeValue::Null, span });
        };
        let size = target.size;
        if depth + size.height > MAX_NESTING + 1 {
            return self.too_deep(span);
        }
        self.count(size.nodes, span)?;
        match self.anchors.copy(id) {
            Some(value) => Ok(Node { value, span }),
            None => self.limit(span, "anchors and aliases stand for too much", "write the values out"),
        }
    }

    fn unknown_alias(&mut self, name: &str, span: Span) -> Node {
        self.faithful = false;
        self.diagnostics.push(
            Diagnostic::new(&BAD_ALIAS, span, format!("`*{name}` refers to an anchor that isn't there"))
                .help(format!("quote it if it is a text: `\"*{name}\"`; an alias needs `&{name}` above it")),
        );
        Node { value: NodeValue::Null, span }
    }

    fn count(&mut self, nodes: usize, at: Span) -> Result<(), Stop> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return self.limit(at, "the file holds more than 1,000,000 values", "split it into several files");
        }
        Ok(())
    }

    fn check_depth(&mut self, depth: usize, at: Span) -> Result<(), Stop> {
        if depth > MAX_NESTING { self.too_deep(at) } else { Ok(()) }
    }

    fn too_deep<T>(&mut self, at: Span) -> Result<T, Stop> {
        self.diagnostics.push(syntax::too_deep(at));
        Err(Stop)
    }

    fn limit<T>(&mut self, at: Span, message: &str, help: &str) -> Result<T, Stop> {
        self.diagnostics.push(Diagnostic::new(&YAML_LIMIT, at, message).help(help));
        Err(Stop)
    }
}
