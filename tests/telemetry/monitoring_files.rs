//! The files in `examples/monitoring`: they query only metrics and labels that exist, and a real Prometheus accepts and scrapes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use callgate::json::{self, Value};
use callgate_telemetry::Metrics;
use regex::Regex;
use tokio::net::TcpListener;

use super::metrics_server::{MonitoredGateway, get, memory};
use crate::gateway_http::harness::{TIMEOUT, Upstream};
use crate::{fixtures, packages};

fn monitoring_files() -> PathBuf {
    fixtures::root().join("examples/monitoring")
}

/// The labels of every metric, by its name in queries.
fn known_metrics() -> BTreeMap<String, BTreeSet<String>> {
    let sample = Regex::new(r"^(\w+)(?:\{(.*)\})? ").unwrap();
    let label = Regex::new(r#"(\w+)=""#).unwrap();
    let mut metrics: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in Metrics::example_text().lines().filter(|line| !line.starts_with('#')) {
        let captures = sample.captures(line).unwrap();
        let labels = captures.get(2).map_or("", |labels| labels.as_str());
        let names = label.captures_iter(labels).map(|captures| captures[1].to_owned());
        metrics.entry(captures[1].to_owned()).or_default().extend(names);
    }
    metrics
}

fn dashboard() -> Value {
    json::from_str(&fs::read_to_string(monitoring_files().join("grafana-dashboard.json")).unwrap()).unwrap()
}

/// The queries of the dashboard's panels, and of the alert rules.
fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut queries: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    let alerts = fs::read_to_string(monitoring_files().join("alerts.yaml")).unwrap();
    let alerts: serde_json::Value = serde_yaml::from_str(&alerts).unwrap();
    let rules =
        alerts["groups"].as_array().unwrap().iter().flat_map(|group| group["rules"].as_array().unwrap());
    queries.extend(rules.map(|rule| rule["expr"].as_str().unwrap().to_owned()));
    queries
}

#[test]
fn dashboards_and_alerts_query_metrics_and_labels_that_exist() {
    let metrics = known_metrics();
    let queries = queries();
    let name = Regex::new(r"\bcallgate_\w+").unwrap();
    let selector = Regex::new(r"\{([^}]*)\}").unwrap();
    let label = Regex::new(r#"(\w+)(?:=|!=|=~|!~)""#).unwrap();
    let grouping = Regex::new(r"by \(([^)]*)\)").unwrap();
    let mut queried = BTreeSet::new();
    for query in &queries {
        // Prometheus itself adds `instance`.
        let mut known = BTreeSet::from(["instance".to_owned()]);
        for found in name.find_iter(query) {
            let labels = metrics.get(found.as_str());
            known.extend(labels.unwrap_or_else(|| panic!("no metric `{}`: {query}", found.as_str())).clone());
            queried.insert(found.as_str().to_owned());
        }
        let selected = selector.captures_iter(query).flat_map(|captures| {
            label
                .captures_iter(captures.get(1).unwrap().as_str())
                .map(|captures| captures[1].to_owned())
                .collect::<Vec<_>>()
        });
        let grouped = grouping
            .captures_iter(query)
            .flat_map(|captures| captures[1].split(", ").map(str::to_owned).collect::<Vec<_>>());
        for label in selected.chain(grouped) {
            assert!(known.contains(&label), "no label `{label}`: {query}");
        }
    }
    // Every metric is on the dashboard; of a histogram, its buckets.
    let unused = metrics.keys().filter(|name| !name.ends_with("_sum") && !name.ends_with("_count"));
    let unused: Vec<&String> = unused.filter(|name| !queried.contains(*name)).collect();
    assert_eq!(unused, ["callgate_rules_loaded_timestamp_seconds"]);
}

#[test]
fn panels_have_places_and_the_selected_data_source() {
    let dashboard = fs::read_to_string(monitoring_files().join("grafana-dashboard.json")).unwrap();
    let dashboard: Value = json::from_str(&dashboard).unwrap();
    let mut cells = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = |member: &str| panel["gridPos"][member].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
        for (x, y) in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            assert!(cells.insert((place("x") + x, place("y") + y)), "{} overlaps", panel["title"]);
        }
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"].as_str(), Some("${datasource}"), "{}", panel["title"]);
        }
    }
}

/// Grafana publishes the schema of its dashboards as types of TypeScript, whose compiler reports unknown, missing and wrong members.
#[test]
fn the_dashboard_fits_the_schema_of_grafana() {
    let home = packages::node("grafana-schema", &fixtures::root().join("tests/telemetry/dashboard"));
    let dashboard = fs::read_to_string(monitoring_files().join("grafana-dashboard.json")).unwrap();
    let check = |dashboard: &str| {
        let folder = tempfile::tempdir_in(&home).unwrap();
        let import = "import type { Dashboard } from '@grafana/schema';";
        fs::write(
            folder.path().join("dashboard.ts"),
            format!("{import}\nexport const dashboard: Dashboard = {dashboard};\n"),
        )
        .unwrap();
        let options =
            ["--noEmit", "--skipLibCheck", "--strict", "--module", "esnext", "--moduleResolution", "bundler"];
        let mut compiler = Command::new("node");
        compiler.arg(home.join("node_modules/typescript/bin/tsc")).args(options).arg("dashboard.ts");
        packages::run(compiler.current_dir(folder.path()), "")
    };
    let (printed, is_valid) = check(&dashboard);
    assert!(is_valid, "{printed}");
    let (printed, is_valid) = check(&dashboard.replacen("\"gridPos\"", "\"gridPosition\"", 1));
    assert!(!is_valid && printed.contains("gridPosition"), "{printed}");
}

#[test]
fn every_metric_is_documented() {
    let guide = fs::read_to_string(fixtures::root().join("docs/guides/monitor-a-gateway.md")).unwrap();
    for name in known_metrics().keys() {
        let name =
            ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        assert!(guide.contains(&format!("`{name}`")), "the guide does not have `{name}`");
    }
}

/// A program of Prometheus: the installed one, or else that of Debian's package, unpacked below `target/packages`.
fn prometheus_program(name: &str) -> Command {
    let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if version.is_ok_and(|status| status.success()) {
        return Command::new(name);
    }
    Command::new(packages::debian(&["prometheus"]).join("usr/bin").join(name))
}

#[test]
fn promtool_accepts_the_configuration_and_the_alert_rules() {
    let files = monitoring_files();
    let (printed, done) = packages::run(
        prometheus_program("promtool").args(["check", "config", "prometheus.yaml"]).current_dir(files),
        "",
    );
    assert!(done && printed.contains("SUCCESS: 10 rules found"), "{printed}");
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_prometheus(config: &Path, listen: &str) -> Process {
    let child = prometheus_program("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", config.with_file_name("data").display()))
        .arg(format!("--web.listen-address={listen}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Process(child.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_prometheus_scrapes_a_gateway() {
    let upstream = Upstream::with_defaults().await;
    let served = MonitoredGateway::new(&upstream.url, memory(), None).await;
    served.gateway.call(&[], "send", json::json!({})).await;
    let hostile_name = "a\"b\\c\nd";
    served.metrics.set_upstreams_up(&[(hostile_name.to_owned(), true)]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("prometheus.yaml");
    let target = format!(
        "scrape_configs: [ {{ job_name: callgate, scrape_interval: 1s, static_configs: [ {{ targets: ['{}'] }} ] }} ]",
        served.metrics_address
    );
    fs::write(&config, target).unwrap();
    let listen = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let _prometheus = start_prometheus(&config, &listen);
    let found = async {
        loop {
            if tokio::net::TcpStream::connect(&listen).await.is_ok() {
                let (_, body) = get(&listen, "/api/v1/query?query=callgate_calls_total", &[]).await;
                if body.contains(r#""outcome":"denied""#) {
                    return body;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    let body = tokio::time::timeout(TIMEOUT, found).await.expect("Prometheus does not have the calls");
    assert!(body.contains(r#""tool":"send""#), "{body}");
    let (_, body) = get(&listen, "/api/v1/query?query=callgate_upstream_up", &[]).await;
    assert!(body.contains(&Value::from(hostile_name).to_string()), "{body}");
    for query in queries() {
        // As Grafana replaces its variables.
        let query = query.replace("$__rate_interval", "1m").replace("$instance", ".*");
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let (_, body) = get(&listen, &format!("/api/v1/query?query={encoded}"), &[]).await;
        assert!(body.contains(r#""status":"success""#), "{query}: {body}");
    }
    // A rate needs two samples.
    let rate = "/api/v1/query?query=rate(callgate_calls_total%5B15s%5D)";
    let sampled = async {
        while !get(&listen, rate, &[]).await.1.contains(r#""tool":"send""#) {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, sampled).await.expect("Prometheus has no second sample");
    let picture = folder.path().join("dashboard.svg");
    let drawn = tokio::task::spawn_blocking(move || draw_dashboard(&format!("http://{listen}"), &picture));
    let drawn = drawn.await.unwrap();
    for panel in dashboard()["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(drawn.contains(title), "the picture lacks `{title}`");
    }
    assert!(drawn.contains("send</text>"), "the picture lacks the calls by tool");
}

/// The picture of the dashboard with what this Prometheus has.
fn draw_dashboard(prometheus: &str, picture: &Path) -> String {
    let home =
        packages::python("dashboard", &fixtures::root().join("tests/telemetry/dashboard/requirements.txt"));
    let mut draw = Command::new(home.join("bin/python"));
    draw.arg(monitoring_files().join("draw_dashboard.py")).args([prometheus, "1"]).arg(picture);
    let (printed, done) = packages::run(&mut draw, "");
    assert!(done, "{printed}");
    fs::read_to_string(picture).unwrap()
}
