//! Renders a report as JUnit XML, for continuous integration.

use std::fmt::Write as _;
use std::time::Duration;

use super::text::{case_text, escape_invisible};
use crate::report::{CaseReport, Failure, SuiteReport};
use callgate::diagnostic::{Diagnostic, Diagnostics, Severity, SourceMap, render};

/// Renders one suite for each test file; if rules or tests have errors, so that no case runs, one for each file with errors.
/// `times`: how long each case took, in the order of the cases.
pub fn junit(
    report: Option<&SuiteReport>,
    times: &[Duration],
    problems: &[(&Diagnostics, &SourceMap)],
) -> String {
    let mut suites = Vec::new();
    let mut times = times.iter().copied().chain(std::iter::repeat(Duration::ZERO));
    for file in report.into_iter().flat_map(|report| &report.files) {
        let mut suite = JunitSuite::new(&file.file);
        file.cases.iter().zip(times.by_ref()).for_each(|(case, time)| suite.add_case(case, time));
        suites.push(suite);
    }
    for (diagnostics, sources) in problems {
        for diagnostic in diagnostics.iter().filter(|found| found.severity() == Severity::Error) {
            let location = diagnostic.span.and_then(|span| sources.locate(span));
            let file = location
                .map(|location| location.file)
                .or_else(|| diagnostic.file.clone())
                .unwrap_or_default();
            match suites.iter_mut().find(|suite| suite.file == file) {
                Some(suite) => suite.add_problem(diagnostic, sources),
                None => {
                    let mut suite = JunitSuite::new(&file);
                    suite.add_problem(diagnostic, sources);
                    suites.push(suite);
                }
            }
        }
    }
    let mut all = JunitSuite::new("callgate");
    for suite in &suites {
        all.tests += suite.tests;
        all.failures += suite.failures;
        all.errors += suite.errors;
        all.time += suite.time;
    }
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing into a string does not fail.
    let _ = writeln!(text, "<testsuites {}>", all.counts());
    for suite in &suites {
        let _ = writeln!(text, "  <testsuite {} skipped=\"0\">", suite.counts());
        text.push_str(&suite.cases);
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// A suite under construction.
struct JunitSuite {
    file: String,
    tests: usize,
    failures: usize,
    errors: usize,
    time: Duration,
    cases: String,
}

impl JunitSuite {
    fn new(file: &str) -> Self {
        let (tests, failures, errors) = (0, 0, 0);
        Self { file: file.to_owned(), tests, failures, errors, time: Duration::ZERO, cases: String::new() }
    }

    fn counts(&self) -> String {
        let Self { file, tests, failures, errors, time, .. } = self;
        format!(
            "name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{:.3}\"",
            escape_attribute(file),
            time.as_secs_f64()
        )
    }

    fn add_case(&mut self, case: &CaseReport, time: Duration) {
        self.time += time;
        let failure = case.failures.first().map(|first| {
            let more = match case.failures.len() {
                1 => String::new(),
                all => format!(" (and {} more)", all - 1),
            };
            (format!("{}{more}", failure_summary(first)), first.field.as_str(), case_text(case))
        });
        let named = JunitTestName { name: &case.full_name(), line: Some(case.place.line), time };
        match failure {
            None => self.add_test(named, None),
            Some((message, kind, text)) => {
                self.failures += 1;
                self.add_test(named, Some(("failure", &message, kind, &text)));
            }
        }
    }

    fn add_problem(&mut self, diagnostic: &Diagnostic, sources: &SourceMap) {
        self.errors += 1;
        let mut one = Diagnostics::default();
        one.push(diagnostic.clone());
        let text = render::text(&one, sources, false);
        let code = diagnostic.code;
        let line = diagnostic.span.and_then(|span| sources.locate(span)).map(|location| location.line);
        let name = format!("{} {}", code.id, code.name);
        let error = ("error", diagnostic.message.as_str(), code.id, text.trim_end());
        self.add_test(JunitTestName { name: &name, line, time: Duration::ZERO }, Some(error));
    }

    /// Adds a test case. `ended`: the element, its message, its type and its text.
    fn add_test(&mut self, named: JunitTestName<'_>, ended: Option<(&str, &str, &str, &str)>) {
        self.tests += 1;
        let file = escape_attribute(&self.file);
        let line = named.line.map_or_else(String::new, |line| format!(" line=\"{line}\""));
        let _ = write!(
            self.cases,
            "    <testcase name=\"{}\" classname=\"{file}\" file=\"{file}\"{line} time=\"{:.3}\"",
            escape_attribute(named.name),
            named.time.as_secs_f64()
        );
        match ended {
            None => self.cases.push_str("/>\n"),
            Some((element, message, kind, text)) => {
                let (message, kind, text) =
                    (escape_attribute(message), escape_attribute(kind), escape_content(text));
                let _ = writeln!(
                    self.cases,
                    ">\n      <{element} message=\"{message}\" type=\"{kind}\">{text}</{element}>\n    </testcase>"
                );
            }
        }
    }
}

struct JunitTestName<'a> {
    name: &'a str,
    line: Option<usize>,
    time: Duration,
}

/// A failure on one line.
pub(super) fn failure_summary(failure: &Failure) -> String {
    match (failure.call, &failure.note) {
        (None, Some(note)) => escape_invisible(note),
        _ => {
            let (expected, actual) = super::text::expected_and_actual(failure);
            format!("{}: expected {expected}, got {actual}", failure.field)
        }
    }
}

/// Escapes an attribute's value. Characters that XML does not allow are dropped; control and invisible characters are made visible.
fn escape_attribute(text: &str) -> String {
    escape_content(&escape_invisible(text)).replace('"', "&quot;").replace('\'', "&apos;")
}

/// Escapes the text of an element.
fn escape_content(text: &str) -> String {
    text.chars().filter(|c| is_allowed(*c)).fold(String::with_capacity(text.len()), |mut xml, c| {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            // `]]>` must not occur in text.
            '>' => xml.push_str("&gt;"),
            c => xml.push(c),
        }
        xml
    })
}

/// Whether XML 1.0 allows the character, and does not discourage it.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n') || !(c.is_control() || matches!(u32::from(c) & 0xFFFF, 0xFFFE | 0xFFFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_and_drops_invalid_characters() {
        assert_eq!(escape_attribute("a\"b'<c>&\n\u{0}\u{ffff}é"), "a&quot;b&apos;&lt;c&gt;&amp;\\n\\u{0}é");
        assert_eq!(escape_content("]]>\u{1b}[31m\t\u{7f}\n<x>&amp;"), "]]&gt;[31m\t\n&lt;x&gt;&amp;amp;");
    }
}
