//! Generates shell texts: from a grammar, and by changing characters of what the grammar has generated.

/// The programs that record their arguments, with what else they do.
pub const PROGRAMS: [(&str, &str); 9] = [
    ("red", ""),
    ("green", ""),
    ("blue", "exit 1"),
    ("say", "printf '%s\\n' \"$*\""),
    ("tell", "cat 2>/dev/null; read -r line; printf '%s\\n' \"$line\""),
    ("rm", ""),
    ("git", ""),
    ("curl", "echo red from curl"),
    ("sudo", "\"$@\""),
];

pub struct Generator {
    random: fastrand::Rng,
    depth: usize,
    functions: usize,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), depth: 0, functions: 0 }
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random.usize(..choices.len())]
    }

    fn chance(&mut self, one_of: usize) -> bool {
        self.random.usize(..one_of) == 0
    }

    /// A text, of which one of three has been changed.
    pub fn text(&mut self) -> String {
        (self.depth, self.functions) = (0, 0);
        let count = self.random.usize(1..4);
        let lines: Vec<String> = (0..count).map(|_| self.list()).collect();
        let text = lines.join("\n");
        if self.chance(3) { self.change(&text) } else { text }
    }

    /// Removes, repeats or inserts a few characters.
    fn change(&mut self, text: &str) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..self.random.usize(1..4) {
            if chars.is_empty() {
                break;
            }
            let at = self.random.usize(..chars.len());
            match self.random.usize(..4) {
                0 => {
                    chars.remove(at);
                }
                1 => chars.insert(at, chars[at]),
                2 => {
                    let other = self.random.usize(..chars.len());
                    chars.swap(at, other);
                }
                _ => {
                    let special: Vec<char> = "'\"\\$`(){}[];&|<> \n#!*?~=,".chars().collect();
                    chars.insert(at, special[self.random.usize(..special.len())]);
                }
            }
        }
        chars.into_iter().collect()
    }

    fn list(&mut self) -> String {
        let count = self.random.usize(1..4);
        let mut text = self.pipeline();
        for _ in 1..count {
            text.push_str(self.pick(&["; ", " && ", " || ", "\n", " & ", " && \\\n", " ;\n"]));
            text.push_str(&self.pipeline());
        }
        text
    }

    fn pipeline(&mut self) -> String {
        let mut text = if self.chance(12) { "! ".to_owned() } else { String::new() };
        text.push_str(&self.command());
        while self.chance(5) {
            text.push_str(self.pick(&[" | ", "|", " |& ", " | sh", " |\n"]));
            if !text.ends_with("sh") {
                text.push_str(&self.command());
            }
        }
        text
    }

    fn command(&mut self) -> String {
        if self.depth > 3 {
            return self.simple();
        }
        self.depth += 1;
        let text = match self.random.usize(..32) {
            0 => format!("({})", self.list()),
            1 => format!("{{ {}; }}", self.list()),
            2 => format!("if {}; then {}; fi", self.list(), self.list()),
            3 => format!(
                "if {}; then {}; elif {}; then {}; else {}; fi",
                self.pipeline(),
                self.list(),
                self.pipeline(),
                self.list(),
                self.list()
            ),
            4 => format!("for x in {} {}; do {}; done", self.word(), self.word(), self.list()),
            5 => format!("while blue; do {}; done", self.list()),
            6 => format!("until red; do {}; done", self.list()),
            7 => format!(
                "case {} in a) {} ;; {}|*) {} ;; esac",
                self.word(),
                self.list(),
                self.pick(&["b", "'c'", "d*"]),
                self.list()
            ),
            8 => {
                self.functions += 1;
                let name = format!("fun{}", self.functions);
                format!("{name}() {{ {}; }}; {name} {}", self.list(), self.word())
            }
            9 => format!("[[ {} == {} ]] && {}", self.word(), self.word(), self.command()),
            10 => format!("(( 1 + {} )) && {}", self.pick(&["1", "x", "$x", "$(say 2)"]), self.command()),
            11 => format!(
                "{} <<END\n{}\n{}\nEND\n",
                self.pick(&["tell", "sh", "red"]),
                self.pick(&["red in document", "a $x `green q`", "$(blue s)"]),
                self.simple()
            ),
            12 => {
                format!("{} <<'END'\n{}\nEND\n", self.pick(&["tell", "sh", "bash -s", "red"]), self.simple())
            }
            13 => format!("{} <<< {}", self.pick(&["sh", "tell"]), self.quoted_command()),
            14 => format!("{} -c {}", self.pick(&["sh", "bash", "env sh", "bash -e"]), self.quoted_command()),
            15 => format!("eval {}", self.quoted_command()),
            16 => format!("echo {} | {}", self.quoted_command(), self.pick(&["sh", "bash", "tell"])),
            17 => format!(
                "{} {}",
                self.pick(&[
                    "env",
                    "env -u A B=c",
                    "nice",
                    "nice -n 3",
                    "timeout 4",
                    "timeout -s KILL 4",
                    "nohup",
                    "command",
                    "builtin",
                    "exec",
                    "sudo",
                    "time"
                ]),
                self.simple()
            ),
            18 => format!("say a b | xargs {} {}", self.pick(&["", "-n 1", "-I {}", "-r"]), self.simple()),
            19 => format!(
                "find {} -name '*.txt' {}",
                self.pick(&[".", "sub", ""]),
                self.pick(&["-exec red {} ';'", "-exec green x {} +", "-exec sh -c 'red {}' \\;"])
            ),
            20 => format!(
                "cd {} {} {}",
                self.pick(&["sub", "sub/deep", "..", "nothing", "/", "-", "\"$x\"", ""]),
                self.pick(&["&&", ";", "||"]),
                self.simple()
            ),
            21 => format!("{}={}; {}", self.pick(&["x", "y"]), self.word(), self.simple()),
            22 => format!("trap {} EXIT", self.quoted_command()),
            23 => format!("(cd sub && {})", self.list()),
            _ => self.simple(),
        };
        self.depth -= 1;
        text
    }

    fn quoted_command(&mut self) -> String {
        let inner = self.simple();
        if inner.contains('\'') {
            format!("\"{}\"", inner.replace(['"', '\\'], ""))
        } else {
            format!("'{inner}'")
        }
    }

    fn simple(&mut self) -> String {
        let mut words = Vec::new();
        if self.chance(10) {
            words.push(format!("{}={}", self.pick(&["x", "y", "Z"]), self.word()));
        }
        let known = self.pick(&[
            "red",
            "green",
            "blue",
            "say",
            "rm",
            "git",
            "curl",
            "r'e'd",
            "\\red",
            "\"green\"",
            "fun1",
        ]);
        let program = if self.chance(60) { "$x" } else { known };
        words.push(program.to_owned());
        for _ in 0..self.random.usize(..4) {
            words.push(self.word());
        }
        if self.chance(6) {
            words.push(
                self.pick(&[
                    "> out",
                    ">>out",
                    "2>&1",
                    "< one.txt",
                    "&> out",
                    "2>/dev/null",
                    ">| out",
                    "<(red q)",
                    "3<&0",
                ])
                .to_owned(),
            );
        }
        if self.chance(20) {
            words.push("# red comment".to_owned());
            return words.join(" ") + "\n";
        }
        words.join(" ")
    }

    fn word(&mut self) -> String {
        let inner = if self.depth < 4 && self.chance(8) {
            self.depth += 1;
            let inner = self.pipeline();
            self.depth -= 1;
            inner
        } else {
            "green w".to_owned()
        };
        match self.random.usize(..30) {
            0 => format!("$({inner})"),
            1 => format!("\"$({inner})\""),
            2 => "`say a b`".to_owned(),
            3 => "\"`say \\\"q r\\\"`\"".to_owned(),
            4 => "$x".to_owned(),
            5 => "\"$x\"".to_owned(),
            6 => "${x:-$(say d)}".to_owned(),
            7 => "${y:=ab}".to_owned(),
            8 => "$((1 + 2))".to_owned(),
            9 => "$'a\\tb'".to_owned(),
            10 => "'single $x'".to_owned(),
            11 => "\"double 'x'\"".to_owned(),
            12 => "{a,b}".to_owned(),
            13 => "p{1..3}".to_owned(),
            14 => "*.txt".to_owned(),
            15 => "sub/*".to_owned(),
            16 => "~".to_owned(),
            17 => "a\\ b".to_owned(),
            18 => "-rf".to_owned(),
            19 => "--".to_owned(),
            20 => "\"$@\"".to_owned(),
            21 => "\"${x%a}\"".to_owned(),
            22 => "$PWD/z".to_owned(),
            23 => "{x,$(say e)}".to_owned(),
            24 => "a#b".to_owned(),
            25 => "''".to_owned(),
            _ => self.pick(&["a", "b", "one.txt", "sub", "x=y", "/tmp", "7"]).to_owned(),
        }
    }
}
