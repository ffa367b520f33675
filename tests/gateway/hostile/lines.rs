//! The messages of a hostile client.

/// The bytes of one attempt, and its family.
pub(super) struct Attempt {
    pub(super) family: &'static str,
    pub(super) bytes: Vec<u8>,
}

/// The handshake of the protocol versions up to 2025-11-25.
pub(super) const GREETING: &str = concat!(
    r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

const DENIED: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"danger","arguments":{}}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
const DANGER: &str = r#"{"name":"danger"}"#;

/// Characters that some parsers ignore or confuse with others.
const INVISIBLE: [&str; 10] =
    [" ", "\\t", "\\u0000", "\\u00a0", "\\u200b", "\\u200d", "\\u2060", "\\ufeff", "\\u00ad", "\\u202e"];

#[derive(Default)]
struct Attempts(Vec<Attempt>);

impl Attempts {
    fn add<B: AsRef<[u8]>>(&mut self, family: &'static str, all: impl IntoIterator<Item = B>) {
        self.0.extend(all.into_iter().map(|bytes| {
            let mut bytes = bytes.as_ref().to_vec();
            bytes.push(b'\n');
            Attempt { family, bytes }
        }));
    }
}

/// A request with these members after `jsonrpc`.
fn message(members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0",{members}}}"#)
}

/// A tool call with these members in its parameters.
fn call(params: &str) -> String {
    message(&format!(r#""id":1,"method":"tools/call","params":{{{params}}}"#))
}

fn with_method(method: &str) -> String {
    message(&format!(r#""id":1,"method":"{method}","params":{DANGER}"#))
}

fn with_name(name: &str) -> String {
    call(&format!(r#""name":"{name}","arguments":{{}}"#))
}

fn with_id(id: &str) -> String {
    message(&format!(r#""id":{id},"method":"tools/call","params":{DANGER}"#))
}

fn with_arguments(arguments: &str) -> String {
    call(&format!(r#""name":"danger","arguments":{arguments}"#))
}

fn write_to(arguments: &str) -> String {
    call(&format!(r#""name":"write","arguments":{arguments}"#))
}

/// The text with the character at an index as an escape.
fn escaped(text: &str, at: usize) -> String {
    let escape = |(place, c): (usize, char)| match place == at {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().enumerate().map(escape).collect()
}

fn all_escaped(text: &str) -> String {
    text.chars().map(|c| format!("\\u{:04X}", u32::from(c))).collect()
}

fn full_width(text: &str) -> String {
    text.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect()
}

pub(super) fn attempts() -> Vec<Attempt> {
    let mut all = Attempts::default();
    all.add("Plainly", [DENIED]);
    duplicate_members(&mut all);
    alternative_spellings(&mut all);
    methods_and_names(&mut all);
    envelopes(&mut all);
    several_messages(&mut all);
    invalid_json(&mut all);
    invalid_utf8(&mut all);
    arguments(&mut all);
    sizes(&mut all);
    protocols(&mut all);
    in_flight(&mut all);
    all.0
}

fn duplicate_members(all: &mut Attempts) {
    let pairs = [
        (r#""method":"ping""#, r#""method":"tools/call""#),
        (r#""params":{"name":"safe"}"#, r#""params":{"name":"danger"}"#),
        (r#""params":null"#, r#""params":{"name":"danger"}"#),
        (r#""id":1"#, r#""id":2"#),
        (r#""jsonrpc":"1.0""#, r#""jsonrpc":"2.0""#),
    ];
    let whole = [r#""id":1"#, r#""method":"tools/call""#, r#""params":{"name":"danger"}"#];
    for (harmless, harmful) in pairs {
        let of_harmful = harmful.split(':').next().unwrap();
        let rest: Vec<&str> = whole.into_iter().filter(|member| !member.starts_with(of_harmful)).collect();
        let rest = rest.join(",");
        all.add(
            "Doubled members of the message",
            [
                message(&format!("{harmless},{harmful},{rest}")),
                message(&format!("{harmful},{harmless},{rest}")),
                message(&format!("{harmful},{rest},{harmless}")),
            ],
        );
    }
    all.add(
        "Doubled members, one of them as an escape",
        [
            message(r#""id":1,"method":"ping","\u006dethod":"tools/call","params":{"name":"danger"}"#),
            message(r#""id":1,"\u006dethod":"tools/call","method":"ping","params":{"name":"danger"}"#),
            message(
                r#""id":1,"method":"tools/call","params":{"name":"safe"},"p\u0061rams":{"name":"danger"}"#,
            ),
            call(r#""name":"safe","nam\u0065":"danger""#),
            call(r#""nam\u0065":"danger","name":"safe""#),
        ],
    );
    all.add(
        "Doubled members of the parameters",
        [
            call(r#""name":"safe","name":"danger""#),
            call(r#""name":"danger","name":"safe""#),
            call(r#""name":"safe","arguments":{},"name":"danger""#),
            call(r#""name":"write","arguments":{"path":"/tmp"},"arguments":{"path":"/etc/passwd"}"#),
            call(r#""name":"write","arguments":{"path":"/etc/passwd"},"arguments":{"path":"/tmp"}"#),
            write_to(r#"{"path":"/tmp","path":"/etc/passwd"}"#),
            write_to(r#"{"path":"/etc/passwd","path":"/tmp"}"#),
            call(r#""_meta":{"a":1,"a":2},"name":"danger""#),
        ],
    );
}

fn alternative_spellings(all: &mut Attempts) {
    let method = "tools/call";
    all.add("Escapes", (0..method.len()).map(|at| with_method(&escaped(method, at))));
    all.add("Escapes", (0..6).map(|at| with_name(&escaped("danger", at))));
    all.add(
        "Escapes",
        [
            with_method(&all_escaped(method)),
            with_method("tools\\/call"),
            with_name(&all_escaped("danger")),
            message(r#""\u0069d":1,"\u006dethod":"tools/call","\u0070arams":{"\u006eame":"danger"}"#),
            write_to(r#"{"path":"\u002fetc/passwd"}"#),
            write_to(r#"{"path":"\/etc\/passwd"}"#),
            write_to(r#"{"p\u0061th":"/etc/passwd"}"#),
        ],
    );
    let keys = ["Method", "METHOD", "methoD"];
    all.add(
        "Members in another case, which some readers take for the same",
        keys.iter().flat_map(|key| {
            [
                message(&format!(r#""id":1,"{key}":"tools/call","params":{DANGER}"#)),
                message(&format!(r#""id":1,"method":"ping","{key}":"tools/call","params":{DANGER}"#)),
                message(&format!(r#""id":1,"{key}":"tools/call","method":"ping","params":{DANGER}"#)),
            ]
        }),
    );
    all.add(
        "Members in another case, which some readers take for the same",
        [
            message(r#""id":1,"method":"tools/call","Params":{"name":"danger"}"#),
            message(r#""id":1,"method":"tools/call","params":{"name":"safe"},"Params":{"name":"danger"}"#),
            message(r#""id":1,"method":"tools/call","PARAMS":{"name":"danger"},"params":{"name":"safe"}"#),
            message(r#""id":1,"method":"tools/call","params":{"name":"safe"},"paramſ":{"name":"danger"}"#),
            message(r#""ID":1,"method":"tools/call","params":{"name":"danger"}"#),
            message(r#""id":1,"Id":2,"method":"tools/call","params":{"name":"danger"}"#),
            message(r#""id":1,"method":"tools/call","params":{"name":"danger"},"Result":{}"#),
            r#"{"JSONRPC":"2.0","id":1,"method":"tools/call","params":{"name":"danger"}}"#.to_owned(),
            call(r#""Name":"danger""#),
            call(r#""name":"safe","Name":"danger""#),
            call(r#""NAME":"danger","name":"safe""#),
            call(r#""name":"safe","nAme":"danger","arguments":{}"#),
            call(r#""name":"write","arguments":{"path":"/tmp"},"Arguments":{"path":"/etc/passwd"}"#),
            call(r#""name":"write","argumentſ":{"path":"/etc/passwd"}"#),
            write_to(r#"{"Path":"/etc/passwd"}"#),
            write_to(r#"{"path":"/tmp","PATH":"/etc/passwd"}"#),
            write_to(r#"{"PATH":"/etc/passwd","path":"/tmp"}"#),
        ],
    );
}

fn methods_and_names(all: &mut Attempts) {
    let methods = [
        "Tools/Call",
        "TOOLS/CALL",
        "tools/Call",
        "toolS/calL",
        "toolſ/call",
        "tools//call",
        "/tools/call",
        "tools/call/",
        "tools.call",
        "tools:call",
        "tools_call",
        "tools-call",
        "toolscall",
        "toolsCall",
        "tools%2fcall",
        "tools%2Fcall",
        "tools\\\\call",
        "tools/./call",
        "tools/call?",
        "tools/call#",
        "tools/call;",
        "tools/call\\n",
        "tools/call\\r\\nx",
        "",
        "rpc.tools/call",
        "mcp/tools/call",
        "call",
        "call_tool",
        "tools/call/danger",
    ];
    all.add("Methods", methods.map(with_method));
    all.add(
        "Methods",
        [with_method(&full_width("tools/call")), with_method("tools／call"), with_method("tооls/call")],
    );
    all.add(
        "Methods with what is invisible",
        INVISIBLE.iter().flat_map(|c| {
            [format!("{c}tools/call"), format!("tools/call{c}"), format!("tools{c}/call")]
                .map(|method| with_method(&method))
        }),
    );
    all.add(
        "Methods that are no text",
        ["null", "7", "true", r#"["tools/call"]"#, r#"{"name":"tools/call"}"#]
            .map(|method| message(&format!(r#""id":1,"method":{method},"params":{DANGER}"#))),
    );
    let names = [
        "Danger",
        "DANGER",
        "dAnGeR",
        "danger.",
        "./danger",
        "server.danger",
        "server__danger",
        "server/danger",
        "danger/",
        "dan-ger",
        "d.a.n.g.e.r",
        "danger\\n",
        "danger\\u0008",
        "danger()",
        "danger;safe",
        "safe,danger",
        "danger\\u0301",
    ];
    all.add("Names", names.map(with_name));
    all.add(
        "Names",
        [with_name(&full_width("danger")), with_name(&full_width("DANGER")), with_name("dаnger")],
    );
    all.add(
        "Names with what is invisible",
        INVISIBLE.iter().flat_map(|c| {
            [format!("{c}danger"), format!("danger{c}"), format!("dan{c}ger")].map(|name| with_name(&name))
        }),
    );
    all.add(
        "Names that are no text",
        ["null", "7", "true", r#"["danger"]"#, r#"{"name":"danger"}"#, r#"{"toString":"danger"}"#]
            .map(|name| call(&format!(r#""name":{name}"#))),
    );
    all.add("Names that are no text", [call(r#""arguments":{"name":"danger"}"#), call(r#""tool":"danger""#)]);
}

fn envelopes(all: &mut Attempts) {
    let ids = [
        "null",
        "1.5",
        "1.0",
        "1e0",
        "-0",
        "0",
        "-7",
        "true",
        "{}",
        "[]",
        "[1]",
        r#""""#,
        r#""1""#,
        r#""a\u0000b""#,
        "123456789012345678",
        "1234567890123456789",
        "9007199254740993",
        "1e400",
        r#""callgate-0""#,
        r#"{"$ref":1}"#,
    ];
    all.add("Ids", ids.map(with_id));
    all.add(
        "Without an id",
        [
            message(&format!(r#""method":"tools/call","params":{DANGER}"#)),
            message(&format!(r#""method":"Tools/Call","params":{DANGER}"#)),
            message(&format!(r#""method":"notifications/tools/call","params":{DANGER}"#)),
            message(r#""method":"tools/call","params":{"name":"write","arguments":{"path":"/etc/passwd"}}"#),
        ],
    );
    all.add(
        "Asking and answering at once",
        [
            message(&format!(r#""id":1,"method":"tools/call","params":{DANGER},"result":{{}}"#)),
            message(&format!(r#""id":1,"result":{{}},"method":"tools/call","params":{DANGER}"#)),
            message(&format!(
                r#""id":1,"method":"tools/call","params":{DANGER},"error":{{"code":1,"message":""}}"#
            )),
            message(&format!(r#""id":1,"method":"tools/call","params":{DANGER},"result":null"#)),
            message(&format!(r#""id":1,"method":null,"params":{DANGER},"result":{{}}"#)),
            message(r#""id":1,"result":{"method":"tools/call","params":{"name":"danger"}}"#),
            message(r#""id":1,"result":{},"error":{"code":1,"message":""}"#),
            message(r#""id":null,"error":{"code":-32700,"message":"tools/call danger"}"#),
            message(r#""id":1,"error":"tools/call""#),
            message(r#""result":{}"#),
            message(r#""id":1"#),
        ],
    );
    all.add(
        "Versions",
        ["\"1.0\"", "2.0", "2", "null", "\"2.0 \"", "\"2.00\"", "[\"2.0\"]"].map(|version| {
            format!(r#"{{"jsonrpc":{version},"id":1,"method":"tools/call","params":{DANGER}}}"#)
        }),
    );
    all.add("Versions", [format!(r#"{{"id":1,"method":"tools/call","params":{DANGER}}}"#)]);
    all.add(
        "Parameters that are no object",
        [
            "null",
            "[]",
            r#"["danger"]"#,
            r#"[{"name":"danger"}]"#,
            r#""danger""#,
            r#""{\"name\":\"danger\"}""#,
            "7",
            "false",
        ]
        .map(|params| message(&format!(r#""id":1,"method":"tools/call","params":{params}"#))),
    );
    all.add(
        "Messages inside of messages",
        [
            message(&format!(r#""id":1,"method":"batch","params":{{"messages":[{DENIED}]}}"#)),
            message(&format!(r#""id":1,"method":"ping","params":{{"message":{DENIED}}}"#)),
            message(&format!(r#""id":1,"method":"ping","params":{{"_meta":{DENIED}}}"#)),
            message(&format!(r#""id":1,"method":"ping","message":{DENIED}"#)),
            message(&format!(r#""id":1,"message":{DENIED}"#)),
            message(&format!(r#""id":1,"result":{DENIED}"#)),
            call(&format!(r#""name":"safe","params":{DANGER}"#)),
            call(&format!(r#""name":"safe","arguments":{DENIED}"#)),
            call(r#""params":{"name":"danger"}"#),
        ],
    );
}

fn several_messages(all: &mut Attempts) {
    all.add(
        "Batches",
        [
            format!("[{DENIED}]"),
            format!("[{PING},{DENIED}]"),
            format!("[[{DENIED}]]"),
            "[]".to_owned(),
            format!(r#"{{"0":{DENIED}}}"#),
        ],
    );
    all.add(
        "Several messages on what is one line to us, or not to others",
        [
            "", " ", "\r", "\r\r", "\t", "\u{b}", "\u{c}", "\0", "\u{1e}", "\u{85}", "\u{2028}", "\u{2029}",
            ",", ";", "\r\n", "\n",
        ]
        .map(|between| format!("{PING}{between}{DENIED}")),
    );
    all.add(
        "Several messages on what is one line to us, or not to others",
        [
            format!("\r{DENIED}"),
            format!("{DENIED}\r"),
            DENIED.replace(",\"method\"", ",\r\"method\""),
            DENIED.replace(",\"method\"", ",\n\"method\""),
            message(&format!(r#""id":1,"method":"ping","params":{{"x":"\r{DENIED_IN_TEXT}\r"}}"#)),
            message(&format!(
                "\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\"\u{2028}{DENIED_IN_TEXT}\"}}"
            )),
            message(&format!("\"id\":1,\"method\":\"ping\",\"params\":{{\"x\":\"\u{85}{DENIED_IN_TEXT}\"}}")),
            format!("Content-Length: {}\r\n\r\n{DENIED}", DENIED.len()),
            format!("{}{DENIED}", "\u{1e}"),
        ],
    );
}

/// A denied call, escaped for a JSON string.
const DENIED_IN_TEXT: &str =
    r#"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"danger\"}}"#;

fn invalid_json(all: &mut Attempts) {
    let values = [
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
        "+1",
        "0x1",
        "1.",
        ".5",
        "1e",
        "undefined",
        "'a'",
        "a",
        "True",
        "None",
        "1_000",
        "\"\t\"",
        "\"\\x41\"",
        "\"\\",
        "[1,]",
        "{\"a\":1,}",
        "/**/1",
        "1//",
    ];
    all.add(
        "Values that some readers take",
        values.map(|value| with_arguments(&format!(r#"{{"x":{value}}}"#))),
    );
    all.add(
        "Texts that some readers take",
        [
            format!("\u{feff}{DENIED}"),
            format!("\u{feff}\u{feff}{DENIED}"),
            format!(" {DENIED} "),
            format!("\t{DENIED}"),
            format!("\u{a0}{DENIED}"),
            format!("{DENIED},"),
            format!("{DENIED};"),
            format!("{DENIED}}}"),
            format!("{DENIED}x"),
            format!("({DENIED})"),
            format!("// x\n{DENIED}"),
            format!("/* x */{DENIED}"),
            format!("data: {DENIED}"),
            format!(")]}}',{DENIED}"),
            DENIED.replace('"', "'"),
            DENIED.replace("\"method\"", "method"),
            DENIED.replace("\"id\":1", "\"id\":1,"),
            DENIED.trim_end_matches('}').to_owned(),
            format!("\"{DENIED_IN_TEXT}\""),
            "null".to_owned(),
            "tools/call danger".to_owned(),
        ],
    );
}

fn invalid_utf8(all: &mut Attempts) {
    let replaced = |with: &[u8]| {
        let (before, after) = DENIED.split_once("danger").unwrap();
        [before.as_bytes(), with, after.as_bytes()].concat()
    };
    let in_names: [&[u8]; 9] = [
        b"danger\xff",
        b"\xffdanger",
        b"dan\xffger",
        b"\xc1\xa4anger",
        b"danger\xc3",
        b"danger\xed\xa0\x80",
        b"danger\xf8\x88\x80\x80\x80",
        b"\xe0\x81\xa4anger",
        b"danger\x80",
    ];
    all.add("Bytes that are no UTF-8", in_names.map(replaced));
    let in_methods: [&[u8]; 3] = [b"tools\xc0\xafcall", b"tools/call\xff", b"\xfe\xfftools/call"];
    all.add(
        "Bytes that are no UTF-8",
        in_methods.map(|method| {
            let (before, after) = DENIED.split_once("tools/call").unwrap();
            [before.as_bytes(), method, after.as_bytes()].concat()
        }),
    );
    let wide = |bytes: fn(u16) -> [u8; 2]| DENIED.encode_utf16().flat_map(bytes).collect::<Vec<u8>>();
    all.add(
        "Bytes that are no UTF-8",
        [wide(u16::to_le_bytes), wide(u16::to_be_bytes), b"\xff\xfe".to_vec()],
    );
    all.add(
        "Half of a pair of surrogates",
        [
            with_name("danger\\ud800"),
            with_name("\\udc00danger"),
            with_name("dan\\udc00\\ud800ger"),
            with_method("tools/call\\ud83d"),
            with_arguments(r#"{"x":"\ud800"}"#),
            with_arguments(r#"{"\ud800":1}"#),
            with_id("\"\\udfff\""),
            with_name("danger\\ud83d\\ude00"),
        ],
    );
}

fn arguments(all: &mut Attempts) {
    let any = ["null", "[]", "[1]", "\"\"", "\"{}\"", "7", "0", "false", "true", "{}"];
    all.add("Arguments that are no object, of a tool that never runs", any.map(with_arguments));
    all.add("Arguments that are no object, of a tool that never runs", [call(r#""name":"danger""#)]);
    all.add(
        "Arguments that are no object, of a tool with conditions",
        [
            r#""/etc/passwd""#,
            r#""{\"path\":\"/etc/passwd\"}""#,
            r#"["/etc/passwd"]"#,
            r#"[{"path":"/etc/passwd"}]"#,
            r#"{"path":["/etc/passwd"]}"#,
            r#"{"path":{"path":"/etc/passwd"}}"#,
            r#"{"path":null}"#,
            "null",
            "7",
            r#"{"path":"/etc/passwd"}"#,
        ]
        .map(write_to),
    );
}

fn sizes(all: &mut Attempts) {
    let long = " ".repeat(100_000);
    all.add(
        "Long",
        [
            format!("{long}{DENIED}"),
            format!("{DENIED}{long}"),
            with_name(&format!("danger{}", "\\u200b".repeat(1_000))),
            with_name(&"danger".repeat(20_000)),
            with_arguments(&format!(r#"{{"x":"{}"}}"#, "a".repeat(1_000))),
            with_arguments(&format!(r#"{{"x":"{}"}}"#, "a".repeat(100_000))),
            with_arguments(&format!(r#"{{"x":1{}}}"#, "0".repeat(1_000))),
            with_id(&format!("\"{}\"", "i".repeat(1_000))),
            with_method(&"tools/call".repeat(1_000)),
            call(&format!(
                r#""name":"danger",{}"#,
                (0..1_000).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(",")
            )),
        ],
    );
    for depth in [50, 126, 127, 128, 129, 1_000, 20_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        all.add(
            "Deep",
            [with_arguments(&format!(r#"{{"x":{open}{close}}}"#)), format!("{open}{DENIED}{close}")],
        );
    }
}

fn protocols(all: &mut Attempts) {
    let meta = |version: &str| {
        call(&format!(
            r#""_meta":{{"io.modelcontextprotocol/protocolVersion":{version},"io.modelcontextprotocol/clientCapabilities":{{}}}},"name":"danger","arguments":{{}}"#
        ))
    };
    all.add(
        "The protocol of 2026-07-28 without a handshake, and versions that are none",
        [r#""2026-07-28""#, r#""2025-11-25""#, r#""1999-01-01""#, "7", "null", "[]"].map(meta),
    );
    all.add(
        "The protocol of 2026-07-28 without a handshake, and versions that are none",
        [
            call(r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"danger""#),
            call(r#""_meta":null,"name":"danger""#),
            call(r#""_meta":"x","name":"danger""#),
            call(r#""_meta":{"progressToken":{"a":1}},"name":"danger""#),
            call(r#""task":{"ttl":60000},"name":"danger""#),
        ],
    );
    all.add(
        "Answers to questions that were not asked",
        [
            call(r#""name":"danger","requestState":"callgate.1.""#),
            call(r#""name":"danger","requestState":"callgate.1.e30""#),
            call(r#""name":"danger","requestState":"callgate.1.!!""#),
            call(r#""name":"danger","requestState":7"#),
            call(r#""name":"danger","requestState":"other","inputResponses":{"dev.callgate/approval":{"action":"accept","content":{"decision":"approve"}}}"#),
            call(r#""name":"danger","inputResponses":{"dev.callgate/approval":{"action":"accept","content":{"decision":"approve"}}}"#),
            // {"carried":{"name":"danger","requestState":"x"}}
            call(r#""name":"safe","requestState":"callgate.1.eyJjYXJyaWVkIjp7Im5hbWUiOiJkYW5nZXIiLCJyZXF1ZXN0U3RhdGUiOiJ4In19""#),
        ],
    );
}

fn in_flight(all: &mut Attempts) {
    let cancel =
        |id: &str| message(&format!(r#""method":"notifications/cancelled","params":{{"requestId":{id}}}"#));
    let slow = message(r#""id":1,"method":"tools/call","params":{"name":"slow"}"#);
    let safe = message(r#""id":3,"method":"tools/call","params":{"name":"safe"}"#);
    all.add(
        "Cancelled, and with ids that are in use",
        [
            format!("{DENIED}\n{}", cancel("1")),
            format!("{}\n{DENIED}", cancel("1")),
            format!("{DENIED}\n{}\n{DENIED}", cancel("1.0")),
            format!("{slow}\n{DENIED}\n{PING}"),
            format!("{DENIED}\n{}", message(r#""id":1,"result":{"content":[]}"#)),
            format!(
                "{}\n{safe}",
                message(r#""method":"notifications/cancelled","params":{"requestId":{"name":"danger"}}"#)
            ),
        ],
    );
}
