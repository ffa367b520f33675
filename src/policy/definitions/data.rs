//! `data`: constants in the rules, or in a JSON, YAML or CSV file beside them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{DefinitionReader, shapes};
use crate::diagnostic::{Diagnostic, Diagnostics, INVALID_DATA, SourceId, SourceMap, Span};
use crate::json::{self, Map, Value};
use crate::rules_schema::{PolicyReader, RecordShape};
use crate::script::{DataSet, DefinitionName, Names};
use crate::source::{self, LoadedFile, MappingEntry, YamlNode};

/// The maximum number of values in the constants of a bundle.
const MAX_VALUES: usize = 1_000_000;

/// The keys of a constant that is read from a file.
const FILE_KEYS: [&str; 4] = ["file", "column", "key", "types"];

/// Reads all constants.
pub(super) fn read(reader: &mut DefinitionReader<'_>, names: &mut Names) {
    let section = reader.section(&shapes::DATA);
    if section.is_empty() {
        return;
    }
    let mut constants = names.data().constants().clone();
    let (mut count, mut invalid) = (0, Vec::new());
    for (name, entry) in section {
        let Some(value) = read_constant(entry, reader) else {
            invalid.push(name.to_owned());
            continue;
        };
        count += count_values(&value);
        if count > MAX_VALUES {
            let message = format!("the constants of a bundle have at most {MAX_VALUES} values");
            let diagnostic = Diagnostic::new(&INVALID_DATA, entry.key_span, message);
            reader.diagnostics.push(diagnostic.with_help("keep fewer columns or rows"));
            break;
        }
        names.add_digest(DefinitionName::Data(name.to_owned()), json::digest(&value));
        constants.insert(name, value);
    }
    names.set_data(DataSet::new(constants).with_invalid(invalid));
}

/// Removes files that other files read as constants: a YAML file beside the rules is found like a rules file. A file that has a key of
/// rules is kept and reported, so that no policy is lost because another file names its file.
pub(in crate::policy) fn exclude_data_files(
    files: &mut Vec<LoadedFile>,
    rules: &RecordShape,
    sources: &SourceMap,
    diagnostics: &mut Diagnostics,
) {
    let mut named: HashMap<PathBuf, Span> = HashMap::new();
    for file in files.iter() {
        let Some(directory) = sources.get(file.source).and_then(|source| Path::new(source.name()).parent())
        else {
            continue;
        };
        let of_defaults = file.root.get("defaults").and_then(|defaults| defaults.get(shapes::DATA.name));
        let sections = [of_defaults, file.root.get(shapes::DATA.name)].into_iter().flatten();
        for constant in sections.filter_map(YamlNode::entries).flatten().filter(|entry| is_file(entry)) {
            let Some(name) = constant.value.get("file") else { continue };
            named.insert(directory.join(name.as_str().unwrap_or_default()), name.span);
        }
    }
    files.retain(|file| {
        let source = sources.get(file.source);
        let Some(span) = source.and_then(|source| named.get(Path::new(source.name()))) else { return true };
        let has_key = |key: &&str| file.root.get(key).is_some();
        let Some(key) = rules.fields.iter().map(|field| field.name).find(has_key) else { return false };
        diagnostics.push(
            Diagnostic::new(
                &INVALID_DATA,
                *span,
                format!("this file is a rules file: it has the key `{key}`"),
            )
            .with_help("put the constants into another file, or rename the key"),
        );
        true
    });
}

/// Whether a constant is read from a file.
fn is_file(entry: &MappingEntry) -> bool {
    let options = entry.value.entries().unwrap_or_default();
    entry.value.get("file").is_some_and(|file| file.as_str().is_some())
        && options.iter().all(|option| FILE_KEYS.contains(&option.key.as_str()))
}

fn count_values(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(members) => members.values().map(count_values).sum::<usize>(),
        _ => 0,
    }
}

/// Reads a constant. Problems are reported.
fn read_constant(entry: &MappingEntry, reader: &mut DefinitionReader<'_>) -> Option<Value> {
    if is_file(entry) { read_file(&entry.value, reader) } else { Some(entry.value.to_json()) }
}

fn read_file(options: &YamlNode, reader: &mut DefinitionReader<'_>) -> Option<Value> {
    let file = options.get("file")?;
    let name = file.as_str()?;
    let ending = [".json", ".yaml", ".yml", ".csv"].into_iter().find(|ending| name.ends_with(ending));
    let is_csv = ending == Some(".csv");
    let stray = ["column", "key", "types"].into_iter().find_map(|key| options.get(key)).filter(|_| !is_csv);
    let (Some(ending), None) = (ending, stray) else {
        let (message, help) = match ending {
            None => ("a data file is JSON, YAML or CSV", "give it the ending `.json`, `.yaml` or `.csv`"),
            Some(_) => ("`column`, `key` and `types` are for CSV files", "remove them"),
        };
        let span = stray.map_or(file.span, |node| node.span);
        reader.diagnostics.push(Diagnostic::new(&INVALID_DATA, span, message).with_help(help));
        return None;
    };
    let mut policy_reader = PolicyReader::new(reader.diagnostics, reader.sources);
    let found = policy_reader.read_referenced_file(file, ending);
    reader.referenced_files.append(&mut std::mem::take(&mut policy_reader.referenced_paths));
    let (source, text) = found?;
    match ending {
        ".json" => read_json(file, &text, reader),
        ".csv" => read_csv(options, &text, reader),
        _ => read_yaml(source, &text, reader),
    }
}

fn read_json(file: &YamlNode, text: &str, reader: &mut DefinitionReader<'_>) -> Option<Value> {
    json::parse(text)
        .map_err(|error| {
            report(reader, file, format!("invalid JSON in `{}`: {error}", file.as_str().unwrap_or_default()))
        })
        .ok()
}

fn read_yaml(source: SourceId, text: &str, reader: &mut DefinitionReader<'_>) -> Option<Value> {
    let before = reader.diagnostics.len();
    let root = source::parse(source, text, reader.diagnostics)?;
    (reader.diagnostics.len() == before).then(|| root.to_json())
}

/// Reads a CSV file with a header: an array of one column, or an object of rows by the values of a column.
fn read_csv(options: &YamlNode, text: &str, reader: &mut DefinitionReader<'_>) -> Option<Value> {
    let table = match CsvTable::parse(text, options) {
        Ok(table) => table,
        Err(problem) => {
            report(reader, options, problem);
            return None;
        }
    };
    let result = match (options.get("column"), options.get("key")) {
        (Some(column), None) => table.column(column.as_str().unwrap_or_default()),
        (None, Some(key)) => table.rows_by(key.as_str().unwrap_or_default()),
        _ => {
            Err("a CSV file needs either `column`, for an array, or `key`, for an object of rows".to_owned())
        }
    };
    result.map_err(|problem| report(reader, options, problem)).ok()
}

fn report(reader: &mut DefinitionReader<'_>, node: &YamlNode, message: String) {
    let help =
        "correct the file, or how it is read: `{ file: rates.csv, key: code, types: { rate: number } }`";
    reader.diagnostics.push(Diagnostic::new(&INVALID_DATA, node.span, message).with_help(help));
}

/// A CSV file with a header.
struct CsvTable {
    header: Vec<String>,
    /// The fields of each row as JSON values.
    rows: Vec<Vec<Value>>,
}

impl CsvTable {
    /// Parses a file. Fields are strings unless `types` says otherwise.
    fn parse(text: &str, options: &YamlNode) -> Result<Self, String> {
        let mut csv = csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let header: Vec<String> =
            csv.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
        if let Some(twice) = header
            .iter()
            .enumerate()
            .find(|(index, name)| header.iter().take(*index).any(|other| other == *name))
        {
            return Err(format!("the header has the column `{}` twice", twice.1));
        }
        let mut kinds = vec![FieldType::String; header.len()];
        for option in options.get("types").and_then(YamlNode::entries).unwrap_or_default() {
            let position = header.iter().position(|name| *name == option.key);
            let kind = option.value.as_str().and_then(FieldType::parse);
            match (position.and_then(|position| kinds.get_mut(position)), kind) {
                (Some(slot), Some(kind)) => *slot = kind,
                (None, _) => return Err(format!("the header has no column `{}`", option.key)),
                (_, None) => {
                    return Err(format!("the type of `{}` is one of string, number, boolean", option.key));
                }
            }
        }
        let mut rows = Vec::new();
        for record in csv.records() {
            let record = record.map_err(|error| error.to_string())?;
            let line = record.position().map_or(0, csv::Position::line);
            let fields = record.iter().zip(&kinds).zip(&header).map(|((field, kind), name)| {
                kind.read(field).ok_or_else(|| {
                    format!(
                        "line {line}: `{}` is not a {} (column `{name}`)",
                        field.escape_debug(),
                        kind.name()
                    )
                })
            });
            rows.push(fields.collect::<Result<_, _>>()?);
        }
        Ok(Self { header, rows })
    }

    fn position(&self, column: &str) -> Result<usize, String> {
        let position = self.header.iter().position(|name| name == column);
        position
            .ok_or_else(|| format!("the header has no column `{column}`: it has {}", self.header.join(", ")))
    }

    fn column(&self, column: &str) -> Result<Value, String> {
        let position = self.position(column)?;
        Ok(self.rows.iter().filter_map(|row| row.get(position).cloned()).collect())
    }

    fn rows_by(&self, key: &str) -> Result<Value, String> {
        let position = self.position(key)?;
        let mut rows = Map::new();
        for row in &self.rows {
            let key = match row.get(position) {
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
                None => continue,
            };
            let members = self.header.iter().cloned().zip(row.iter().cloned());
            let row = members.collect();
            if rows.insert(key.as_str(), Value::Object(row)).is_some() {
                return Err(format!("two rows have the key `{}`", key.escape_debug()));
            }
        }
        Ok(Value::Object(rows))
    }
}

/// The type of the fields of a column.
#[derive(Clone, Copy)]
enum FieldType {
    String,
    Number,
    Boolean,
}

impl FieldType {
    fn parse(name: &str) -> Option<Self> {
        [Self::String, Self::Number, Self::Boolean].into_iter().find(|kind| kind.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn read(self, field: &str) -> Option<Value> {
        match self {
            Self::String => Some(Value::from(field)),
            Self::Number => field.trim().parse::<json::Number>().ok().map(Value::Number),
            Self::Boolean => field.trim().parse::<bool>().ok().map(Value::Bool),
        }
    }
}
