//! Parses one rules file into its tree. The YAML subset is strict: ambiguous input is rejected.

use granit_parser::{Event, Parser, ScalarStyle, Span as YamlSpan, StrInput, StructureStyle};

use super::aliases::Anchors;
use super::document_tree::{
    MAX_NESTING, MAX_NODES, MappingEntry, StringStyle, YamlNode, YamlString, YamlValue,
};
use super::mapping_entries::MappingEntries;
use super::plain_scalar::{PlainScalar, resolve_plain};
use super::unsupported_yaml::{self, MAX_PROBLEMS};
use super::yaml_errors;
use crate::diagnostic::{Diagnostic, Diagnostics, SourceId, Span};

/// Parses one rules file.
///
/// Problems are added to `diagnostics`, which the caller must check: a tree is also returned if the problems leave it usable (the
/// first of duplicate keys wins), so that further problems can be reported in the same run.
/// Returns `None` if there is no tree, or none that represents the file.
pub fn parse(source: SourceId, text: &str, diagnostics: &mut Diagnostics) -> Option<YamlNode> {
    parse_within(source, text, &mut 0, diagnostics)
}

/// Parses one of several rules files, which together have `nodes` values so far.
pub(super) fn parse_within(
    source: SourceId,
    text: &str,
    nodes: &mut usize,
    diagnostics: &mut Diagnostics,
) -> Option<YamlNode> {
    let options = granit_parser::options! {
        strict_indentation: true,
        disallow_directives: true,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_NESTING,
        block_nesting_limit: MAX_NESTING,
    };
    let mut reader = DocumentParser {
        source,
        text,
        events: Parser::new_from_str_with_options(text, options),
        anchors: Anchors::default(),
        nodes,
        earlier_problems: diagnostics.len(),
        faithful: true,
        diagnostics,
    };
    let root = reader.stream().ok()??;
    reader.faithful.then_some(root)
}

/// Parsing cannot continue; the reason is in the diagnostics.
struct ParseStopped;

struct DocumentParser<'t, 'd> {
    source: SourceId,
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    anchors: Anchors,
    nodes: &'d mut usize,
    /// Problems of other files.
    earlier_problems: usize,
    /// Whether the tree still represents the file.
    faithful: bool,
    diagnostics: &'d mut Diagnostics,
}

impl<'t> DocumentParser<'t, '_> {
    fn next(&mut self) -> Result<(Event<'t>, YamlSpan), ParseStopped> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let diagnostic = yaml_errors::syntax_diagnostic(self.source, self.text, &error);
                // A parser error on a line with a known problem adds no information.
                if !self.follows_problem_on_same_line(&diagnostic) {
                    self.diagnostics.push(diagnostic);
                }
                Err(ParseStopped)
            }
            None => Ok((Event::StreamEnd, YamlSpan::default())),
        }
    }

    fn follows_problem_on_same_line(&self, diagnostic: &Diagnostic) -> bool {
        let last = self.diagnostics.iter().last().and_then(|last| last.span);
        last.zip(diagnostic.span).is_some_and(|(last, new)| {
            last.source == new.source
                && self.text.get(last.start()..new.start()).is_some_and(|between| !between.contains('\n'))
        })
    }

    /// The source text of a span.
    fn source_text(&self, span: Span) -> &'t str {
        self.text.get(span.start()..span.end()).unwrap_or("")
    }

    fn span(&self, span: &YamlSpan) -> Span {
        let range = span.byte_range().unwrap_or_default();
        Span::new(self.source, range.start, range.end)
    }

    fn stream(&mut self) -> Result<Option<YamlNode>, ParseStopped> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::DocumentStart(..) if root.is_some() => {
                    self.diagnostics.push(unsupported_yaml::second_document(self.span(&span)));
                    return Ok(root);
                }
                Event::StreamEnd => {
                    if root.is_none() {
                        self.diagnostics.push(unsupported_yaml::empty_file(self.source, self.text));
                    }
                    return Ok(root);
                }
                Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
                Event::Scalar(..) if self.span(&span).start() == self.span(&span).end() => {
                    return self.stop(unsupported_yaml::empty_file(self.source, self.text));
                }
                node => root = Some(self.node(node, &span, 1)?),
            }
        }
    }

    /// Parses the node that starts with an event; `depth` is the nesting of a list or mapping at this position.
    fn node(&mut self, event: Event<'t>, span: &YamlSpan, depth: usize) -> Result<YamlNode, ParseStopped> {
        self.count(1, self.span(span))?;
        if self.diagnostics.len() >= self.earlier_problems + MAX_PROBLEMS {
            return self.stop(unsupported_yaml::too_many_problems(self.span(span)));
        }
        if let Some(tag) = span.tag_span() {
            let at = self.span(&tag);
            self.diagnostics.push(unsupported_yaml::tag(at, self.source_text(at)));
        }
        let anchor = event.anchor_id();
        let node_span = self.span(span);
        if let Some(id) = anchor {
            self.anchors.open(id);
        }
        let node = match event {
            Event::Scalar(value, style, ..) => self.scalar(&value, style, node_span),
            Event::SequenceStart(style, ..) => {
                self.check_depth(depth, node_span)?;
                self.sequence(style, node_span, depth)?
            }
            Event::MappingStart(style, ..) => {
                self.check_depth(depth, node_span)?;
                self.mapping(style, node_span, depth)?
            }
            Event::Alias(id) => self.alias(id, node_span, depth)?,
            Event::UnresolvedAlias(name) => {
                self.reject(unsupported_yaml::unknown_alias(node_span, &name));
                YamlNode { value: YamlValue::Null, span: node_span }
            }
            _ => YamlNode { value: YamlValue::Null, span: node_span },
        };
        if let Some(id) = anchor
            && !self.anchors.close(id, &node)
        {
            return self.stop(unsupported_yaml::too_much_copied(node_span));
        }
        Ok(node)
    }

    fn sequence(
        &mut self,
        style: StructureStyle,
        start: Span,
        depth: usize,
    ) -> Result<YamlNode, ParseStopped> {
        let mut items = Vec::new();
        let mut span = Span::new(start.source, self.first_dash(style, start.start()), start.end());
        loop {
            let (event, event_span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                span = span.until(self.collection_end(style, span, &event_span));
                return Ok(YamlNode { value: YamlValue::Sequence(items), span });
            }
            let item = self.node(event, &event_span, depth + 1)?;
            span = span.until(span.end().max(item.span.end()));
            items.push(item);
        }
    }

    fn mapping(
        &mut self,
        style: StructureStyle,
        start: Span,
        depth: usize,
    ) -> Result<YamlNode, ParseStopped> {
        let mut entries = MappingEntries::default();
        let mut span = start;
        loop {
            let (event, event_span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                span = span.until(self.collection_end(style, span, &event_span));
                return Ok(YamlNode { value: YamlValue::Mapping(entries.into_vec()), span });
            }
            let key_node = self.node(event, &event_span, depth + 1)?;
            let (event, event_span) = self.next()?;
            let mut value = self.node(event, &event_span, depth + 1)?;
            if value.span.start() == value.span.end() {
                value.span = self.after_colon(key_node.span);
            }
            span = span.until(span.end().max(key_node.span.end()).max(value.span.end()));
            let Some((key, key_span)) = self.key(key_node) else { continue };
            match entries.get(&key) {
                Some(first) => {
                    self.diagnostics.push(unsupported_yaml::duplicate_key(&key, key_span, first.key_span));
                }
                None => entries.push(MappingEntry { key, key_span, value }),
            }
        }
    }

    /// If a list is not indented further than its key, the parser reports the first item instead of its dash.
    fn first_dash(&self, style: StructureStyle, start: usize) -> usize {
        let before = self.text.get(..start).unwrap_or("").trim_end_matches([' ', '\t']);
        let is_at_dash = self.text.get(start..).is_some_and(|rest| rest.starts_with("- "));
        match style {
            StructureStyle::Block if before.ends_with('-') && !is_at_dash => before.len() - 1,
            _ => start,
        }
    }

    /// The parser's end of a block collection includes the blank lines and comments after it.
    fn collection_end(&self, style: StructureStyle, so_far: Span, end: &YamlSpan) -> usize {
        match style {
            StructureStyle::Flow => self.span(end).end(),
            StructureStyle::Block => so_far.end(),
        }
    }

    /// The position of a missing value.
    fn after_colon(&self, key: Span) -> Span {
        let rest = self.text.get(key.end()..).unwrap_or("");
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let has_colon = rest.get(gap..).is_some_and(|rest| rest.starts_with(':'));
        let offset = if has_colon { key.end() + gap + 1 } else { key.end() };
        Span::new(self.source, offset, offset)
    }

    fn key(&mut self, node: YamlNode) -> Option<(String, Span)> {
        match node.value {
            YamlValue::String(YamlString { text, style: StringStyle::Plain }) if text == "<<" => {
                self.reject(unsupported_yaml::merge_key(node.span));
                None
            }
            YamlValue::String(YamlString { text, .. }) => Some((text, node.span)),
            YamlValue::Sequence(_) | YamlValue::Mapping(_) => {
                let before = self.text.get(..node.span.start()).unwrap_or("");
                self.reject(unsupported_yaml::collection_as_key(&node, before));
                None
            }
            YamlValue::Null | YamlValue::Bool(_) | YamlValue::Number(_) => {
                self.diagnostics.push(unsupported_yaml::scalar_as_key(&node, self.source_text(node.span)));
                None
            }
        }
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, span: Span) -> YamlNode {
        let written = self.source_text(span);
        let trimmed = span.until(span.start() + written.trim_end().len());
        let text_style = match style {
            ScalarStyle::Plain if written == value => StringStyle::Plain,
            ScalarStyle::Plain | ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => StringStyle::Quoted,
            ScalarStyle::Literal => StringStyle::Literal,
            ScalarStyle::Folded => StringStyle::Folded,
        };
        let string = || YamlValue::String(YamlString { text: value.to_owned(), style: text_style });
        let resolved = if style == ScalarStyle::Plain { resolve_plain(value) } else { PlainScalar::String };
        let value = match resolved {
            PlainScalar::Null => YamlValue::Null,
            PlainScalar::Bool(value) => YamlValue::Bool(value),
            PlainScalar::Number(number) => YamlValue::Number(number),
            PlainScalar::String => string(),
            PlainScalar::NotFinite => {
                self.reject(unsupported_yaml::not_finite(trimmed, value));
                string()
            }
            PlainScalar::LeadingZero => {
                self.reject(unsupported_yaml::leading_zero(trimmed, value));
                string()
            }
            PlainScalar::ForeignNumber => {
                self.reject(unsupported_yaml::foreign_number(trimmed, value));
                string()
            }
            PlainScalar::TooLong => {
                self.reject(unsupported_yaml::number_too_long(trimmed));
                string()
            }
        };
        YamlNode { value, span: trimmed }
    }

    fn alias(&mut self, id: usize, span: Span, depth: usize) -> Result<YamlNode, ParseStopped> {
        if self.anchors.is_open(id) {
            self.reject(unsupported_yaml::alias_inside_itself(span, self.source_text(span)));
            return Ok(YamlNode { value: YamlValue::Null, span });
        }
        let Some(target) = self.anchors.target(id) else {
            return Ok(YamlNode { value: YamlValue::Null, span });
        };
        let size = target.size;
        if depth + size.height > MAX_NESTING + 1 {
            return self.stop(unsupported_yaml::too_deep(span));
        }
        self.count(size.nodes, span)?;
        match self.anchors.copy(id) {
            Some(value) => Ok(YamlNode { value, span }),
            None => self.stop(unsupported_yaml::too_much_copied(span)),
        }
    }

    fn count(&mut self, nodes: usize, at: Span) -> Result<(), ParseStopped> {
        *self.nodes = self.nodes.saturating_add(nodes);
        if *self.nodes > MAX_NODES { self.stop(unsupported_yaml::too_many_values(at)) } else { Ok(()) }
    }

    fn check_depth(&mut self, depth: usize, at: Span) -> Result<(), ParseStopped> {
        if depth > MAX_NESTING { self.stop(unsupported_yaml::too_deep(at)) } else { Ok(()) }
    }

    /// Reports a feature that the tree cannot represent.
    fn reject(&mut self, diagnostic: Diagnostic) {
        self.faithful = false;
        self.diagnostics.push(diagnostic);
    }

    fn stop<T>(&mut self, diagnostic: Diagnostic) -> Result<T, ParseStopped> {
        self.diagnostics.push(diagnostic);
        Err(ParseStopped)
    }
}

#[cfg(test)]
mod tests;
