//! Names of files that have the form of a host name, such as `report.pdf`.

/// Endings of common kinds of files that are no top-level domain. Endings that are one, such as `zip`, `md`, `py` and `sh`, are not here: a
/// reader's program may make a link of `invoice.zip`.
const EXTENSIONS: [&str; 76] = [
    "avi", "bak", "bmp", "bz2", "cfg", "conf", "cpp", "css", "csv", "db", "dll", "dmg", "doc", "docx", "eml",
    "env", "epub", "exe", "flac", "gif", "go", "gz", "heic", "hpp", "htm", "html", "ics", "ini", "ipynb",
    "iso", "jar", "jpeg", "jpg", "js", "json", "jsonl", "jsx", "log", "m4a", "mp3", "mp4", "mpeg", "msg",
    "msi", "odp", "ods", "odt", "ogg", "parquet", "pdf", "png", "ppt", "pptx", "rar", "rb", "rtf", "sql",
    "svg", "tar", "tex", "tif", "tiff", "tmp", "toml", "ts", "tsv", "tsx", "txt", "wav", "webm", "webp",
    "xls", "xlsx", "xml", "yaml", "yml",
];

/// Whether a name without a path is that of a file. One that begins with `www.` is a host.
pub(super) fn is_file_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let Some((_, ending)) = lower.rsplit_once('.') else { return false };
    !lower.starts_with("www.") && EXTENSIONS.binary_search(&ending).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_of_files_that_are_no_top_level_domain_are_names_of_files() {
        for name in ["report.pdf", "Report.Final.PDF", "data.csv", "config.yaml"] {
            assert!(is_file_name(name), "{name}");
        }
        for name in ["example.com", "www.report.pdf", "invoice.zip", "readme.md", "pdf", "report.pdf.example"]
        {
            assert!(!is_file_name(name), "{name}");
        }
    }
}
