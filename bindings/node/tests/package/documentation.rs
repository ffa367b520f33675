//! The programs of `docs/guides/use-from-typescript.md` print what the page shows.

use std::fs;
use std::process::Command;

use crate::installed_package::{application, project, run};

/// Replaces the provider of a program by a scripted model, which makes one call of `delete_order`.
const PROVIDERS: [(&str, &str); 5] = [
    (
        "import { openai } from '@ai-sdk/openai';",
        "import { scripted } from './ai-sdk-agent.mjs';\nconst openai = () => scripted([{ tool: 'delete_order', input: { id: 7 } }]);",
    ),
    (
        "model: 'openai/gpt-5'",
        "model: (await import('./ai-sdk-agent.mjs')).scripted([{ tool: 'delete_order', input: { id: 7 } }])",
    ),
    (
        "import { openaiText } from '@tanstack/ai-openai';",
        "import { scripted } from './tanstack-ai-model.mjs';\nconst openaiText = () => scripted([{ tool: 'delete_order', input: { id: 7 } }]);",
    ),
    (
        "model: 'gpt-5'",
        "model: (await import('./openai-agents-model.mjs')).scripted([{ tool: 'delete_order', input: { id: 7 } }])",
    ),
    (
        "model: 'openai:gpt-5'",
        "model: new (await import('langchain')).FakeToolCallingModel({ toolCalls: [[{ name: 'delete_order', args: { id: 7 }, id: 'c1', type: 'tool_call' }], []] })",
    ),
];

/// A fenced block of a page: its language with what follows it, and its text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((language.to_owned(), format!("{}\n", text.join("\n"))));
        }
    }
    blocks
}

/// Programs that introduce a framework.
const QUICK_STARTS: [&str; 6] =
    ["ai-sdk.mjs", "openai-agents.mjs", "langchain.mjs", "tanstack-ai.mjs", "mastra.mjs", "mcp-server.mjs"];

#[test]
fn quick_starts_have_ten_lines_beside_their_imports() {
    let page = fs::read_to_string(project().join("docs/guides/use-from-typescript.md")).unwrap();
    let blocks = blocks(&page);
    for name in QUICK_STARTS {
        let (_, program) = blocks.iter().find(|(language, _)| *language == format!("js {name}")).unwrap();
        let lines = program.lines().filter(|line| !line.is_empty() && !line.starts_with("import "));
        assert!(lines.count() <= 10, "{name}");
    }
}

#[test]
fn the_programs_of_the_guide_print_what_it_shows() {
    let page = fs::read_to_string(project().join("docs/guides/use-from-typescript.md")).unwrap();
    let blocks = blocks(&page);
    let programs =
        blocks.windows(2).filter_map(|pair| Some((pair[0].0.strip_prefix("js ")?, &pair[0].1, &pair[1])));
    let mut count = 0;
    for (file, program, (language, shown)) in programs {
        assert_eq!(language, "text", "{file} is not followed by its output");
        let mut program = program.clone();
        for (import, scripted) in PROVIDERS {
            program = program.replace(import, scripted);
        }
        fs::write(application().join(file), program).unwrap();
        let printed = run(Command::new("node").arg(file).current_dir(application()));
        assert_eq!(&printed, shown, "{file}");
        count += 1;
    }
    assert_eq!(count, page.matches("```js ").count());
    assert!(count >= 9);
}
