//! `callgate bundle pack`, `verify` and `push`.

use super::publisher::{Answer, Publisher};
use super::{ALLOW_PAY, Workplace, callgate};

#[test]
fn bundles_are_packed_verified_and_pushed() {
    let place = Workplace::new();
    std::fs::create_dir_all(place.path("my-rules/schemas")).unwrap();
    let rules = "policies:\n  - { id: pay, match: pay, validate: { schema: { file: schemas/pay.json } } }\n";
    std::fs::write(place.path("my-rules/rules.yaml"), rules).unwrap();
    std::fs::write(place.path("my-rules/schemas/pay.json"), "{\"type\":\"object\"}").unwrap();
    std::fs::write(place.path("my-rules/.secret"), "hidden").unwrap();
    let pack = |version: &'static str, out: &'static str| {
        let named = ["--name", "payments", "--version", version, "--key", "publisher.key", "--out", out];
        [&["bundle", "pack", "my-rules"], &named[..]].concat()
    };
    assert!(
        place
            .succeed(&pack("42", "a.json"))
            .contains("version 42 of the bundle `payments`, 2 files, sha256:")
    );
    place.succeed(&pack("42", "b.json"));
    assert_eq!(std::fs::read(place.path("a.json")).unwrap(), std::fs::read(place.path("b.json")).unwrap());
    let publisher = Publisher::start(Answer::Status(404, String::new()));
    let pushed = place.succeed(&["bundle", "push", "a.json", &publisher.url()]);
    assert!(!pushed.contains("secret-query"), "{pushed}");
    let url = publisher.url();
    let verify = ["bundle", "verify", &url, "--signed-by", "publishers.keys"];
    let verified = place.succeed(&verify);
    assert!(
        verified.contains("version 42 of the bundle `payments`") && verified.contains("schemas/pay.json")
    );
    assert!(!verified.contains(".secret"));
    // Another publisher.
    std::fs::write(place.path("publishers.keys"), place.key("other.key").public_key().to_string()).unwrap();
    assert_eq!(place.run(&verify).status.code(), Some(1));
    // What no instance would accept is not packed.
    std::fs::remove_file(place.path("my-rules/schemas/pay.json")).unwrap();
    let broken = place.run(&pack("43", "c.json"));
    assert_eq!(broken.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&broken.stderr).contains("rules.yaml"));
    assert!(!place.path("c.json").exists());
}

#[test]
fn objects_of_a_store_are_signed_for() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Status(404, String::new()));
    std::fs::write(place.path("bundle.json"), place.bundle(1, ALLOW_PAY)).unwrap();
    let run = |arguments: &[&str]| {
        callgate(place.0.path(), arguments)
            .env("AWS_ENDPOINT_URL", format!("http://{}", publisher.address))
            .env("AWS_ACCESS_KEY_ID", "the-access-key")
            .env("AWS_SECRET_ACCESS_KEY", "the-secret-key")
            .output()
            .unwrap()
    };
    assert!(run(&["bundle", "push", "bundle.json", "s3://rules/payments.json"]).status.success());
    assert!(
        run(&["bundle", "verify", "s3://rules/payments.json", "--signed-by", "publishers.keys"])
            .status
            .success()
    );
    for headers in publisher.requests() {
        let authorization = headers["authorization"].to_str().unwrap();
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=the-access-key/"), "{authorization}");
        assert!(!authorization.contains("the-secret-key"));
    }
    let without =
        place.run(&["bundle", "verify", "s3://rules/payments.json", "--signed-by", "publishers.keys"]);
    assert!(String::from_utf8_lossy(&without.stderr).contains("set AWS_ACCESS_KEY_ID"));
}
