//! Publishers, networks and users that are not trusted: the last good rules stay in effect.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use callgate_bundle::sign;

use super::instance::Instance;
use super::publisher::{Answer, Publisher};
use super::{ALLOW_PAY, DENY_PAY, Workplace, document};

#[test]
fn whatever_the_publisher_sends_the_last_good_rules_stay() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(5, DENY_PAY)));
    let instance = Instance::start(&place, &publisher.url(), "a", &[]);
    let stranger = place.key("stranger.key");
    let internal = Publisher::start(Answer::Bundle(place.bundle(9, ALLOW_PAY)));
    let good = String::from_utf8(place.bundle(9, ALLOW_PAY)).unwrap();
    // One letter of the payload is another one.
    let position = good.find("\"payload\":\"").unwrap() + 40;
    let mut changed = good.clone().into_bytes();
    changed[position] = if changed[position] == b'A' { b'B' } else { b'A' };
    let unsigned = sign(&document("payments", 9, ALLOW_PAY), &[]);
    for (answer, error) in [
        (Answer::Bundle(sign(&document("payments", 9, ALLOW_PAY), &[&stranger])), "no trusted key signed"),
        (Answer::Bundle(unsigned), "is not signed"),
        (Answer::Bundle(changed), "signature of the bundle is invalid"),
        (Answer::Bundle(place.bundle(4, ALLOW_PAY)), "older than version 5"),
        (Answer::Bundle(place.bundle(5, ALLOW_PAY)), "published before with other content"),
        (Answer::Bundle(place.bundle_named("staging", 9, ALLOW_PAY)), "named `staging`"),
        (Answer::Bundle(b"<html>maintenance</html>".to_vec()), "not a signed bundle"),
        (Answer::Bundle(vec![0x1f, 0x8b, 8, 0, 0]), "not a signed bundle"),
        (Answer::Bundle(vec![b' '; (48 << 20) + 1]), "larger than"),
        (Answer::Bundle(traversal(&place, "../escaped.yaml")), "escaped.yaml"),
        (Answer::Bundle(traversal(&place, "/tmp/escaped.yaml")), "escaped.yaml"),
        (Answer::Status(302, internal.url()), "redirects are not followed"),
        (Answer::Status(403, String::new()), "status 403"),
        (Answer::Status(500, String::new()), "status 500"),
    ] {
        publisher.publish(answer);
        let error = instance.check_fails(error);
        assert!(!error.contains("secret-query"), "{error}");
        assert_eq!(instance.version(), 5);
        assert!(!instance.allows("pay"));
    }
    assert!(internal.requests().is_empty());
    assert!(!place.path("escaped.yaml").exists() && !place.path("a/escaped.yaml").exists());
    assert!(!instance.output().contains("secret-query"));
    // Calls are decided while the publisher does not answer.
    publisher.publish(Answer::Silence);
    instance.check_now();
    assert!(!instance.allows("pay"));
}

/// A signed bundle whose file would be written elsewhere.
fn traversal(place: &Workplace, name: &str) -> Vec<u8> {
    let text = String::from_utf8(document("payments", 9, ALLOW_PAY)).unwrap();
    sign(text.replace("rules.yaml", name).as_bytes(), &[&place.key("publisher.key")])
}

#[test]
fn a_body_without_an_end_is_not_read_to_its_end() {
    let place = Workplace::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/payments.json", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 4096]);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let chunk = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b' '; 1 << 20], b"\r\n"].concat();
        let mut sent = 0;
        while socket.write_all(&chunk).is_ok() {
            sent += 1;
        }
        sent
    });
    let ended = place.run(&["bundle", "verify", &url, "--signed-by", "publishers.keys"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("larger than"));
    assert!(server.join().unwrap() < 200);
}

#[test]
fn unsafe_settings_are_refused_at_the_start() {
    let place = Workplace::new();
    let publisher = Publisher::start(Answer::Bundle(place.bundle(1, ALLOW_PAY)));
    let url = publisher.url();
    let shared = place.path("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o777)).unwrap();
    let signed = ["--policies-signed-by", "publishers.keys"];
    for (arguments, error) in [
        (vec![&*url], "must be signed"),
        (vec![&*url, "more.yaml", signed[0], signed[1]], "give one URL"),
        (vec!["rules.yaml", signed[0], signed[1]], "files are not signed"),
        (vec![&*url, signed[0], signed[1], "--policies-dir", "shared"], "writable by other users"),
        (vec!["http://rules.example.com/a.json", signed[0], signed[1]], "must begin with `https://`"),
        (vec![&*url, signed[0], signed[1], "--policies-name", "retail"], "and not `retail`"),
    ] {
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--policies"], &arguments[..]].concat();
        let ended = place.run(&arguments);
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
        let printed = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(printed.contains(error), "{printed}");
        assert!(!printed.contains("secret-query"), "{printed}");
    }
}
