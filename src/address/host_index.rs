//! Finds the patterns that the host of a URL matches, by hash: patterns with numbers → the numbers for a URL.

use std::collections::HashMap;

use super::Undecided;
use super::host_name::HostName;
use super::url_host::{HostPattern, parse_url_host};

/// Patterns for hosts, each with a number.
#[derive(Debug, Default)]
pub struct HostIndex {
    exact: HashMap<String, Vec<u32>>,
    /// By the domain whose subdomains match.
    subdomains: HashMap<String, Vec<u32>>,
}

impl HostIndex {
    /// Adds a pattern.
    pub fn add(&mut self, pattern: &HostPattern, number: u32) {
        let (name, takes_subdomains) = pattern.parts();
        let map = if takes_subdomains { &mut self.subdomains } else { &mut self.exact };
        map.entry(name.to_string()).or_default().push(number);
    }

    /// The numbers of the patterns that match the host of a URL.
    ///
    /// # Errors
    /// Those of [`HostPattern::matches`], which every pattern has for this URL.
    pub fn find(&self, url: &str) -> Result<impl Iterator<Item = u32>, Undecided> {
        let host = parse_url_host(url)?;
        let name = host.to_string();
        let mut found: Vec<u32> = self.exact.get(&name).into_iter().flatten().copied().collect();
        if matches!(host, HostName::Dns(_)) {
            let domains = name.match_indices('.').filter_map(|(dot, _)| name.get(dot + 1..));
            found.extend(domains.filter_map(|domain| self.subdomains.get(domain)).flatten());
        }
        Ok(found.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::{HostIndex, HostPattern};

    #[test]
    fn finds_the_patterns_that_match() {
        let patterns =
            ["example.com", "*.example.com", "*.com", "*.api.example.com", "192.0.2.1", "[2001:db8::1]"];
        let patterns = patterns.map(|pattern| HostPattern::parse(pattern).unwrap());
        let mut index = HostIndex::default();
        (0..).zip(&patterns).for_each(|(number, pattern)| index.add(pattern, number));
        let urls = [
            "https://example.com/x",
            "https://EXAMPLE.com./",
            "https://api.example.com:8443",
            "https://eu.api.example.com",
            "https://badexample.com",
            "http://com",
            "http://192.0.2.1/",
            "http://[2001:db8::1]/",
            "http://a@example.com",
            "example.com",
        ];
        for url in urls {
            let expected: Result<Vec<bool>, _> =
                patterns.iter().map(|pattern| pattern.matches(url)).collect();
            let found = index.find(url).map(|found| {
                let found: Vec<u32> = found.collect();
                (0..6).map(|number| found.contains(&number)).collect()
            });
            assert_eq!(found, expected, "{url}");
        }
    }
}
