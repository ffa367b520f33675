// Parses every `mermaid` block of the given pages. Usage: check_diagrams.cjs MERMAID PAGE…
"use strict";
const fs = require("fs");
const vm = require("vm");

/** As much of a browser as Mermaid needs to parse labels without HTML. */
function installBrowser() {
  const element = () => ({ style: {}, setAttribute() {}, append() {}, appendChild() {} });
  const names = ["DOMParser", "DocumentFragment", "Element", "HTMLFormElement", "HTMLTemplateElement", "NamedNodeMap", "Node"];
  for (const name of names) globalThis[name] = class {};
  globalThis.NodeFilter = {};
  globalThis.window = globalThis;
  globalThis.document = {
    nodeType: 9,
    createElement: element,
    head: element(),
    body: element(),
    addEventListener() {},
    implementation: { createHTMLDocument: () => globalThis.document },
  };
  globalThis.addEventListener = () => {};
}

async function main([library, ...pages]) {
  installBrowser();
  vm.runInThisContext(fs.readFileSync(library, "utf8"), { filename: library });
  for (const page of pages) {
    const text = fs.readFileSync(page, "utf8");
    for (const block of text.matchAll(/^```mermaid\n(.*?)\n```$/gms)) {
      const line = text.slice(0, block.index).split("\n").length;
      await globalThis.mermaid.parse(block[1]).catch((error) => {
        console.error(`${page}:${line}: ${error.message}`);
        process.exitCode = 1;
      });
    }
  }
}

main(process.argv.slice(2));
