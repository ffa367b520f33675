//! Filtering of model streams: however a text is split into chunks, the output equals the filtered whole.

use std::sync::Arc;

use callgate::SessionState;
use callgate::host::SystemClock;
use callgate::json::{Value, json};
use callgate::kernel::{Kernel, Layers};
use callgate::lifecycle::Chunk;
use callgate::middleware::{MAX_DELAYED_CHUNKS, MAX_STREAM_TEXTS, StreamFilter, WITHHELD};
use callgate::policy;
use callgate::redaction::{Detector, RedactionStyle, Redactor, StreamRedactor};
use callgate::seal::Keys;
use callgate::tools::ToolSet;
use proptest::prelude::*;
use regex::Regex;

/// The filtered form of one text.
fn filtered(redactor: &Redactor, pieces: &[&str]) -> String {
    let mut sieve = StreamRedactor::from_redactor(Arc::new(redactor.clone()));
    let mut shown = String::new();
    for piece in pieces {
        sieve.push(piece, &mut shown).unwrap();
    }
    shown.push_str(&sieve.finish());
    shown
}

/// A text split after each of these characters.
fn cut<'t>(text: &'t str, places: &[prop::sample::Index]) -> Vec<&'t str> {
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut cuts: Vec<usize> = if starts.is_empty() {
        Vec::new()
    } else {
        places.iter().map(|place| starts[place.index(starts.len())]).collect()
    };
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).filter_map(|pair| text.get(pair[0]..pair[1])).collect()
}

const WORDS: &[&str] = &[
    "the",
    "a",
    "customer",
    "wrote",
    "that",
    "his",
    "ssn",
    "SSN",
    "social security number",
    "phone",
    "call me at",
    "card",
    "visa",
    "patient",
    "nhs",
    "order",
    "number:",
    "is",
    "password",
    "password:",
    "secret =",
    "token",
    "bearer",
    "Authorization: Bearer",
    "don't",
    "(see",
    "below).",
    "well-known",
    "naïve",
    "日本語",
    "\u{200b}",
    "\u{2028}",
    "\u{c}",
    "\u{115f}",
    "\u{1b}[1m",
    "&shy;",
    "%20",
    "&nbsp;",
    "\\n",
    "aws secret access key",
    "-u",
    "key",
];

const SECRETS: &[&str] = &[
    "078-05-1120",
    "078 05 1120",
    "078051120",
    "ana@example.com",
    "ana%40example.com",
    "ana\\u0040example.com",
    "a.very.long.name.of@sub.domain.example.org",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "4111\u{200b}111111111111",
    "4111\u{e01f0} 1111\u{c}1111\u{345} 1111",
    "4111&shy; 1111 1111 1111",
    "078\u{2028}-05-1120",
    "４１１１ １１１１ １１１１ １１１１",
    "5555555555554444",
    "DE89 3704 0044 0532 0130 00",
    "GB82WEST12345698765432",
    "+1 415 555 2671",
    "(415) 555-2671",
    "020 7946 0958",
    "192.168.10.20",
    "2001:db8::8a2e:370:7334",
    "00:1a:2b:3c:4d:5e",
    "postgres://user:hunter2secret@db/x",
    "9434765919",
    "943 476 5919",
    "RSSMRA 85T10 A562S",
    "RSSMRA85T10A562S",
    "RSSMRA URTML ARSNL",
    "12345678Z",
    "X 1234567L",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "hunter2!x",
    "correcthorse7",
    "Zk8Qw2Lm9Xc4Vb7Nq1Rt5Yp3",
    "CASE-1234",
    "CASE-1",
    "CASE-77777777",
    "1234",
    "12",
    "99.50",
    "2026-11-21",
    "10:30",
    "v1.2.3.4",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
];

fn texts() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        5 => prop::sample::select(WORDS).prop_map(str::to_owned),
        3 => prop::sample::select(SECRETS).prop_map(str::to_owned),
        1 => "[0-9]{1,9}",
        1 => "[a-zA-Z]{1,18}",
        1 => "[ -~]{1,6}",
    ];
    let space = prop_oneof![8 => Just(" "), 1 => Just("\n"), 1 => Just(""), 1 => Just(", "), 1 => Just(". "), 1 => Just("  ")];
    prop::collection::vec((word, space), 0..120)
        .prop_map(|words| words.into_iter().map(|(word, space)| word + space).collect())
}

fn redactors() -> impl Strategy<Value = Redactor> {
    let some = |style| {
        (
            prop::sample::subsequence(Detector::ALL.to_vec(), 0..Detector::ALL.len()),
            prop::sample::subsequence(
                vec![r"CASE-[0-9]{1,4}", r"CASE-\d+", "wrote .*his", r"(?i)\bsecret\b"],
                0..3,
            ),
        )
            .prop_map(move |(detectors, patterns)| {
                let patterns = patterns.iter().map(|pattern| Regex::new(pattern).unwrap()).collect();
                Redactor::new(detectors, patterns, style)
            })
    };
    prop_oneof![
        some(RedactionStyle::Mask),
        some(RedactionStyle::Hash),
        some(RedactionStyle::Remove),
        some(RedactionStyle::KeepLast(4))
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn split_text_is_filtered_like_the_whole(
        redactor in redactors(),
        text in texts(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let whole = redactor.redact_text(&text).into_owned();
        prop_assert_eq!(filtered(&redactor, &cut(&text, &places)), whole);
    }
}

/// A megabyte in tiny chunks, some of which detectors have to examine.
#[test]
fn long_text_in_tiny_chunks_passes() {
    let redactor = Redactor::new(Detector::ALL[..10].to_vec(), Vec::new(), RedactionStyle::Mask);
    let prose =
        "The customer wrote a long letter about nothing much, and then some more about it. ".repeat(11);
    let text = format!("{prose}Order 12-34 is for ana@example.com. ").repeat(1_000_000 / (prose.len() + 36));
    let pieces: Vec<&str> =
        (0..text.len()).step_by(4).map(|at| text.get(at..(at + 4).min(text.len())).unwrap()).collect();
    let shown = filtered(&redactor, &pieces);
    assert_eq!(shown, text.replace("ana@example.com", "[email]"));
}

fn filter_in(rules: &str, context: Value, session: &SessionState) -> StreamFilter {
    let built = policy::build_texts([("rules.yaml", rules)]);
    let chains = built.policies.unwrap_or_else(|| panic!("{:?}", built.diagnostics));
    let layers: Layers = [Arc::new(chains)].into_iter().collect();
    let keys = Keys::random().unwrap();
    let kernel = Kernel {
        layers: &layers,
        tools: &ToolSet::default(),
        clock: &SystemClock,
        keys: &keys,
        listener: None,
        task: &callgate::call::Task::NONE,
        round: None,
    };
    kernel.stream_filter(&context, session)
}

fn filter(stream: &str) -> StreamFilter {
    filter_in(&format!("policies: [ {{ id: p, stream: {stream} }} ]"), Value::Null, &SessionState::default())
}

fn other(name: &str) -> Chunk {
    Chunk::Other { value: json!(name) }
}

fn finished() -> Chunk {
    Chunk::Finished { reason: None, usage: None }
}

/// All chunks that are passed on, including those at the end.
fn passed(filter: &mut StreamFilter, chunks: impl IntoIterator<Item = Chunk>) -> Vec<Chunk> {
    let mut passed: Vec<Chunk> = chunks.into_iter().flat_map(|chunk| filter.push(chunk)).collect();
    passed.extend(filter.finish());
    passed
}

/// The concatenation of one text.
fn text_of(chunks: &[Chunk], wanted: &str) -> String {
    let deltas = chunks.iter().filter_map(|chunk| match chunk {
        Chunk::Text { id, delta } if id == wanted => Some(delta.as_str()),
        _ => None,
    });
    deltas.collect()
}

fn letters(text: &str) -> Vec<Chunk> {
    text.chars().map(|c| Chunk::text("a", c)).collect()
}

#[test]
fn without_policies_every_chunk_passes_unchanged() {
    let chunks = vec![
        Chunk::text("a", "078-05-"),
        Chunk::text("a", ""),
        other("x"),
        Chunk::text("a", "1120"),
        finished(),
    ];
    let mut none = filter_in("policies: []", Value::Null, &SessionState::default());
    for chunk in &chunks {
        assert_eq!(none.push(chunk.clone()), std::slice::from_ref(chunk));
    }
    let mut elsewhere = filter("{ redact: [us_ssn], in: reasoning }");
    assert_eq!(passed(&mut elsewhere, chunks.clone()), chunks);
}

#[test]
fn each_part_of_a_policy_works_however_the_text_is_split() {
    for (stream, text, shown) in [
        ("{ redact: [us_ssn, email] }", "is 078-05-1120 of ana@example.com.", "is [us_ssn] of [email]."),
        ("{ patterns: ['CASE-\\d+'], with: remove }", "see CASE-12345 now", "see  now"),
        ("{ redact: email, with: { keep_last: 4 } }", "to ana@example.com", "to ***********.com"),
        ("{ drop: [darn] }", "Darn, darned d\u{200b}arn it", ", darned  it"),
        ("{ drop: ['/da+rn/'] }", "daaaaarn it", " it"),
        ("{ drop: { patterns: darn, unit: line } }", "one\ntwo darn it\nthree", "one\nthree"),
        (
            "{ replace: [ { pattern: '(\\w+)@corp', with: '<$1>' }, { pattern: '<a', with: '<A' } ] }",
            "to ana@corp!",
            "to <Ana>!",
        ),
        (
            "{ drop: [x], replace: { pattern: '#', with: '-' }, redact: us_ssn }",
            "078#05#11 x20? 078#05#1120",
            "078-05-11 x20? [us_ssn]",
        ),
    ] {
        let mut all = filter(stream);
        assert_eq!(text_of(&passed(&mut all, [Chunk::text("a", text)]), "a"), shown, "{stream}");
        let mut each = filter(stream);
        assert_eq!(
            text_of(&passed(&mut each, letters(text)), "a"),
            shown,
            "{stream}, character by character"
        );
    }
}

#[test]
fn whole_chunk_can_be_dropped() {
    let mut filter = filter_in(
        "policies: [ { id: first, priority: 1, stream: { drop: { patterns: profanity, unit: chunk } } },
                     { id: then, stream: { replace: { pattern: profanity, with: SEEN } } } ]",
        Value::Null,
        &SessionState::default(),
    );
    let chunks = ["some ", "profanity here", " and prof", "anity"].map(|delta| Chunk::text("a", delta));
    assert_eq!(text_of(&passed(&mut filter, chunks), "a"), "some  and SEEN");
}

#[test]
fn plain_words_are_held_until_two_more_arrive_and_others_slightly_longer() {
    let redactor = Arc::new(Redactor::new(Detector::ALL.to_vec(), Vec::new(), RedactionStyle::Mask));
    let (mut plain, mut shown) = (StreamRedactor::from_redactor(Arc::clone(&redactor)), String::new());
    plain.push("Nothing to hide in these words", &mut shown).unwrap();
    assert_eq!(shown, "Nothing to hide ");
    let (mut sieve, mut shown) = (StreamRedactor::from_redactor(redactor), String::new());
    for word in "In 2026 we had 14,000 visitors; at 10:30 it was 12.5 degrees, and so on. "
        .repeat(30)
        .split_inclusive(' ')
    {
        sieve.push(word, &mut shown).unwrap();
        assert!(sieve.held_bytes() <= 300, "{} bytes are held", sieve.held_bytes());
    }
}

#[test]
fn text_that_exceeds_the_buffer_is_withheld() {
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow ";
    for (stream, start) in [
        ("{ redact: private_key }", key),
        ("{ redact: email }", "x"),
        ("{ drop: { patterns: y, unit: line } }", "x"),
    ] {
        let rest = if start == key { "is a word. ".repeat(2000) } else { "x".repeat(20_000) };
        for size in [1, 7, 100_000] {
            let text = format!("Hello all of you: see it here. \n{start}{rest}\n after");
            let chunks: Vec<Chunk> =
                text.as_bytes().chunks(size).map(|c| Chunk::text("a", String::from_utf8_lossy(c))).collect();
            let mut filter = filter(stream);
            let passed =
                passed(&mut filter, chunks.into_iter().chain([Chunk::text("b", "fine"), finished()]));
            let shown = text_of(&passed, "a");
            assert!(shown.starts_with("Hello") && shown.ends_with(WITHHELD), "{stream}: {shown}");
            assert!(shown.len() < 60 && !shown.contains("MII") && !shown.contains("xx"), "{stream}: {shown}");
            assert_eq!(text_of(&passed, "b"), "fine");
        }
    }
}

#[test]
fn surplus_texts_are_withheld_and_reported_once() {
    let mut filter = filter("{ redact: email }");
    let passed =
        passed(&mut filter, (0..MAX_STREAM_TEXTS + 3).map(|id| Chunk::text(id.to_string(), "hello")));
    let withheld: Vec<_> = passed
        .iter()
        .filter(|chunk| matches!(chunk, Chunk::Text { delta, .. } if delta == WITHHELD))
        .collect();
    assert_eq!((passed.len(), withheld.len()), (MAX_STREAM_TEXTS + 1, 1));
}

#[test]
fn other_chunks_keep_their_position_after_text_and_arguments_do_not() {
    let mut filter = filter("{ drop: [darn], redact: email }");
    let arguments = Chunk::ToolInput { call_id: "c".into(), delta: "{".into() };
    assert_eq!(filter.push(other("first")), [other("first")]);
    assert_eq!(filter.push(Chunk::text("a", "to ana@exam")), []);
    assert_eq!(filter.push(other("second")), []);
    assert_eq!(filter.push(arguments.clone()), [arguments]);
    assert_eq!(filter.push(Chunk::text("b", "hello")), []);
    let more = "and then there is a long rest of it ".repeat(12);
    let mut chunks = filter.push(Chunk::text("a", format!("ple.com {more}")));
    // Behind two steps it waits until the second one has passed on everything before it.
    chunks.extend(filter.push(Chunk::text("a", more)));
    let waited = |chunks: &[Chunk]| chunks.iter().position(|chunk| *chunk == other("second"));
    let before = waited(&chunks).map(|place| text_of(&chunks[..place], "a")).unwrap();
    assert!(before.starts_with("to [email] and then"), "{chunks:?}");
    filter.push(other("third"));
    let chunks = filter.push(finished());
    let text = |chunk: &Chunk| matches!(chunk, Chunk::Text { .. });
    assert!(
        matches!(&chunks[..], [a, b, third, end] if text(a) && text(b) && *third == other("third") && *end == finished()),
        "{chunks:?}"
    );
    assert_eq!(filter.finish(), []);
}

#[test]
fn when_too_many_chunks_wait_the_first_proceed_and_none_is_lost() {
    let mut filter = filter("{ redact: email }");
    let chunks = [Chunk::text("a", "ana@")]
        .into_iter()
        .chain((0..MAX_DELAYED_CHUNKS + 2).map(|n| other(&n.to_string())));
    let passed = passed(&mut filter, chunks.chain([Chunk::text("a", "example.com")]));
    assert_eq!(passed[..2], [other("0"), other("1")]);
    assert_eq!(passed[2], Chunk::text("a", "[email]"));
    assert_eq!(passed.len(), MAX_DELAYED_CHUNKS + 3);
}

#[test]
fn policy_applies_to_turns_where_its_condition_holds_or_is_undecided() {
    let rules = "policies: [ { id: p, match: { where: { path: \"$.session.labels[*]\", eq: untrusted } }, stream: { redact: email } },
                              { id: q, match: { where: { path: $.context.level, gt: 3 } }, stream: { redact: us_ssn } },
                              { id: r, mode: shadow, stream: { drop: [to] } } ]";
    let text = "to ana@example.com, 078-05-1120";
    let (none, mut labelled, mut unsettled) =
        (SessionState::default(), SessionState::default(), SessionState::default());
    labelled.add_label("untrusted");
    unsettled.mark_unknown("labels");
    for (context, session, shown) in [
        (json!({ "level": 1 }), &none, text),
        (json!({ "level": 1 }), &labelled, "to [email], 078-05-1120"),
        (json!({ "level": 1 }), &unsettled, "to [email], 078-05-1120"),
        (json!({ "level": 4 }), &none, "to ana@example.com, [us_ssn]"),
        (json!({ "level": "4" }), &none, "to ana@example.com, [us_ssn]"),
    ] {
        let mut filter = filter_in(rules, context.clone(), session);
        assert_eq!(text_of(&passed(&mut filter, [Chunk::text("a", text)]), "a"), shown, "{context}");
    }
}

proptest! {
    #[test]
    fn interleaved_texts_are_filtered_independently(
        texts in prop::collection::vec(texts(), 1..4),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
    ) {
        let detectors = vec![Detector::Email, Detector::UsSsn, Detector::PaymentCard];
        let redactor = Redactor::new(detectors, Vec::new(), RedactionStyle::Mask);
        let mut filter = filter("{ redact: [email, us_ssn, payment_card] }");
        let mut left: Vec<(String, Vec<&str>)> = texts
            .iter()
            .enumerate()
            .map(|(id, text)| (id.to_string(), cut(text, &places).into_iter().rev().collect()))
            .collect();
        let mut chunks = Vec::new();
        for turn in turns {
            let (id, pieces) = turn.get_mut(&mut left);
            chunks.extend(pieces.pop().map(|piece| Chunk::text(id.as_str(), piece)));
        }
        for (id, pieces) in &mut left {
            chunks.extend(pieces.drain(..).rev().map(|piece| Chunk::text(id.as_str(), piece)));
        }
        let passed = passed(&mut filter, chunks);
        for (id, text) in texts.iter().enumerate() {
            prop_assert_eq!(text_of(&passed, &id.to_string()), redactor.redact_text(text));
        }
    }
}
