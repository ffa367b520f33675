//! Seals: content that was changed, sealed for another purpose or sealed with other keys is rejected.

use callgate::json::{Value, json};
use callgate::seal::{KeyError, Keys, Purpose, SealError, SecretFileError};
use proptest::prelude::*;

fn keys(text: &[&str]) -> Keys {
    Keys::parse(&text.iter().map(|two| two.repeat(32)).collect::<Vec<_>>().join("\n")).unwrap()
}

const PURPOSES: [Purpose; 10] = [
    Purpose::Approval,
    Purpose::Answer,
    Purpose::Session,
    Purpose::Store,
    Purpose::Record,
    Purpose::Arguments,
    Purpose::Redaction,
    Purpose::Limit,
    Purpose::Cache,
    Purpose::Link,
];

#[test]
fn seal_is_valid_only_for_its_content_and_purpose() {
    let keys = keys(&["5a"]);
    let content = json!(["approval_c1", "c1", { "amount": 250, "to": "ana" }]);
    let seal = keys.seal(Purpose::Approval, &content);
    assert_eq!(keys.verify(Purpose::Approval, &content, &seal), Ok(()));
    let same = json!(["approval_c1", "c1", { "to": "ana", "amount": 2.5e2 }]);
    assert_eq!(keys.verify(Purpose::Approval, &same, &seal), Ok(()), "equal JSON");
    for purpose in [Purpose::Session, Purpose::Answer] {
        assert_eq!(keys.verify(purpose, &content, &seal), Err(SealError::Mismatch));
    }
    // Content that plain concatenation would confuse.
    for moved in [
        json!(["approval_c1c1", { "amount": 250, "to": "ana" }]),
        json!(["approval_c", "1c1", { "amount": 250, "to": "ana" }]),
    ] {
        assert_eq!(keys.verify(Purpose::Approval, &moved, &seal), Err(SealError::Mismatch));
    }
}

#[test]
fn keys_rotate() {
    let content = json!({ "n": 1 });
    let old = keys(&["5a"]).seal(Purpose::Session, &content);
    let both = keys(&["77", "5a"]);
    let new = both.seal(Purpose::Session, &content);
    assert_ne!(new, old);
    for seal in [&old, &new] {
        assert_eq!(both.verify(Purpose::Session, &content, seal), Ok(()));
    }
    assert_eq!(keys(&["77"]).verify(Purpose::Session, &content, &old), Err(SealError::UnknownKey));
    assert_eq!(keys(&["5a"]).verify(Purpose::Session, &content, &new), Err(SealError::UnknownKey));
}

/// For every pair of purposes: neither accepts what the other one sealed, and their digests differ.
#[test]
fn purposes_are_separated() {
    let keys = keys(&["5a"]);
    let content = json!(["c1", { "pin": "4711" }]);
    for made in PURPOSES {
        let (seal, token) = (keys.seal(made, &content), keys.encrypt(made, &content, b"pin").unwrap());
        for other in PURPOSES {
            let fits = made == other;
            assert_eq!(keys.verify(other, &content, &seal).is_ok(), fits, "{made:?} as {other:?}");
            assert_eq!(keys.decrypt(other, &content, &token).is_ok(), fits, "{made:?} as {other:?}");
            assert_eq!(keys.digest(made, &content) == keys.digest(other, &content), fits);
        }
        // Nor does the result of one operation reveal that of another one.
        assert!(!seal.contains(&keys.digest(made, &content).to_string()));
        assert_eq!(keys.decrypt(made, &content, &seal), Err(SealError::Mismatch));
    }
}

#[test]
fn decryption_needs_an_equal_context_and_one_of_the_keys() {
    let (old, both, new) = (keys(&["5a"]), keys(&["77", "5a"]), keys(&["77"]));
    let context = json!({ "amount": 250, "to": "ana" });
    let token = old.encrypt(Purpose::Approval, &context, b"PIN 4711").unwrap();
    let same = json!({ "to": "ana", "amount": 2.5e2 });
    assert_eq!(both.decrypt(Purpose::Approval, &same, &token).unwrap(), b"PIN 4711");
    assert_eq!(new.decrypt(Purpose::Approval, &same, &token), Err(SealError::UnknownKey));
    let other = json!({ "to": "ana", "amount": 251 });
    assert_eq!(both.decrypt(Purpose::Approval, &other, &token), Err(SealError::Mismatch));
    let again = old.encrypt(Purpose::Approval, &context, b"PIN 4711").unwrap();
    assert_ne!(token, again, "encryption is not deterministic");
    let earlier = token.replacen("cg2.", "cg1.", 1);
    assert_eq!(old.decrypt(Purpose::Approval, &context, &earlier), Err(SealError::Malformed));
}

/// Output of an earlier build stays readable: subkeys, encodings and associated data don't change unnoticed.
#[test]
fn format_is_stable() {
    let keys = keys(&["5a"]);
    assert_eq!(
        keys.seal(Purpose::Answer, &json!(["c1"])),
        "cg2.ec2ce584.46c9a2413c8d8bd30a0daa0392630490dfa346d998ece54f486100775ae1e23e"
    );
    assert_eq!(
        keys.digest(Purpose::Arguments, &json!({ "pin": 4711 })).to_string(),
        "9b64f6374b43122ec4c37d6fa715f3dcf78b6d02733b956298335a24454f09a9"
    );
    let token = "cg2.ec2ce584.B-2_jEeaJpVkcjS55biYMF_E9BY1Z_6wkVy0IG77wj9vSosxcsu80iivddr7fjeZ";
    assert_eq!(keys.decrypt(Purpose::Approval, &json!(["c1"]), token).unwrap(), b"PIN 4711");
}

#[test]
fn digests_depend_on_key_and_value() {
    let (old, both) = (keys(&["5a"]), keys(&["77", "5a"]));
    let of = |keys: &Keys, value: Value| keys.digest(Purpose::Arguments, &value);
    assert_eq!(of(&old, json!({ "pin": 4711, "a": 1 })), of(&old, json!({ "a": 1.0, "pin": 4711 })));
    assert_ne!(of(&old, json!({ "pin": 4711 })), of(&old, json!({ "pin": 4712 })));
    assert_ne!(of(&old, json!({ "pin": 4711 })), of(&both, json!({ "pin": 4711 })));
    assert_ne!(of(&old, json!({ "pin": 4711 })), callgate::json::digest(&json!({ "pin": 4711 })));
    let all: Vec<_> = both.digests(Purpose::Arguments, &json!({ "pin": 4711 })).collect();
    assert_eq!(all, [of(&both, json!({ "pin": 4711 })), of(&old, json!({ "pin": 4711 }))]);
}

#[test]
fn parses_keys_with_comments_and_reports_invalid_ones() {
    let text = format!("# new\n{}, # old\n  {}\n\n", "A1".repeat(32), "b2".repeat(40));
    assert!(Keys::parse(&text).is_ok());
    for (text, number) in [
        ("5a".repeat(31), 1),
        (format!("{}\nshort", "5a".repeat(32)), 2),
        ("zz".repeat(32), 1),
        ("5".repeat(65), 1),
    ] {
        assert!(
            matches!(Keys::parse(&text), Err(KeyError::Invalid { number: found }) if found == number),
            "{text}"
        );
    }
    assert!(matches!(Keys::parse("# nothing\n"), Err(KeyError::Missing)));
    let shown = format!("{:?} {}", keys(&["5a"]), Keys::parse(&"5a".repeat(31)).unwrap_err());
    assert!(!shown.contains("5a5a"), "a key was shown: {shown}");
}

#[test]
#[cfg(unix)]
fn key_file_is_created_once_and_must_be_private_to_its_owner() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("callgate.keys");
    let content = json!([1, 2, 3]);
    let seals: Vec<String> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Keys::from_file_or_new(&path).unwrap().seal(Purpose::Answer, &content)))
            .collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert!(seals.iter().all(|seal| *seal == seals[0]), "not all have the same key");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "temporary files are left");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(Keys::from_file(&path), Err(KeyError::File(SecretFileError::Exposed(_)))));
    assert!(matches!(
        Keys::from_file(&directory.path().join("none")),
        Err(KeyError::File(SecretFileError::Io { .. }))
    ));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn rejects_mutated_seals(content in json_value(), at in any::<prop::sample::Index>(), with in any::<char>()) {
        let keys = keys(&["5a", "c3"]);
        let seal = keys.seal(Purpose::Approval, &content);
        let mut letters: Vec<char> = seal.chars().collect();
        let at = at.index(letters.len());
        letters[at] = with;
        let changed: String = letters.iter().collect();
        if changed != seal {
            prop_assert!(keys.verify(Purpose::Approval, &content, &changed).is_err());
        }
        prop_assert!(keys.verify(Purpose::Approval, &content, seal.get(..at).unwrap_or_default()).is_err());
    }

    #[test]
    fn rejects_mutated_ciphertexts(content in json_value(), at in any::<prop::sample::Index>(), with in any::<char>()) {
        let keys = keys(&["5a", "c3"]);
        let token = keys.encrypt(Purpose::Approval, &content, content.to_string().as_bytes()).unwrap();
        let mut letters: Vec<char> = token.chars().collect();
        let at = at.index(letters.len());
        letters[at] = with;
        let changed: String = letters.iter().collect();
        if changed != token {
            prop_assert!(keys.decrypt(Purpose::Approval, &content, &changed).is_err());
        }
        prop_assert!(keys.decrypt(Purpose::Approval, &content, token.get(..at).unwrap_or_default()).is_err());
    }

    #[test]
    fn rejects_other_content(one in json_value(), other in json_value()) {
        let keys = keys(&["5a"]);
        let seal = keys.seal(Purpose::Approval, &one);
        let accepted = keys.verify(Purpose::Approval, &other, &seal).is_ok();
        prop_assert_eq!(accepted, one == other);
    }

    #[test]
    fn arbitrary_input_does_not_panic(text in ".{0,200}", content in json_value()) {
        prop_assert!(keys(&["5a"]).verify(Purpose::Session, &content, &text).is_err());
        prop_assert!(keys(&["5a"]).decrypt(Purpose::Session, &content, &text).is_err());
        let id: String = keys(&["5a"]).seal(Purpose::Session, &content).chars().take(12).collect();
        let with_header = format!("{id}.{text}");
        prop_assert!(keys(&["5a"]).decrypt(Purpose::Session, &content, &with_header).is_err());
    }
}
