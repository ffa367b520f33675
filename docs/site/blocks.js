// Shows the names of files above their blocks, and `mermaid` blocks as diagrams in the colours of the chosen theme.
(() => {
  for (const code of document.querySelectorAll("pre > code[class*='language-']")) {
    const name = [...code.classList].find((word) => word.includes(".") && !word.includes("="));
    if (!name) continue;
    const caption = document.createElement("div");
    caption.className = "file-name";
    caption.textContent = name;
    code.parentElement.before(caption);
  }

  const blocks = [...document.querySelectorAll("code.language-mermaid")];
  if (blocks.length === 0) return;

  const diagrams = blocks.map((code) => {
    const figure = document.createElement("figure");
    figure.className = "diagram";
    (code.closest(".code-wrapper") ?? code.parentElement).replaceWith(figure);
    return { figure, source: code.textContent };
  });
  const isDark = () => ["ayu", "coal", "navy"].some((theme) => document.documentElement.classList.contains(theme));

  let drawn;
  const draw = async () => {
    const theme = isDark() ? "dark" : "default";
    if (theme === drawn) return;
    drawn = theme;
    mermaid.initialize({ startOnLoad: false, securityLevel: "strict", theme, fontFamily: "inherit" });
    for (const [index, { figure, source }] of diagrams.entries()) {
      const { svg } = await mermaid.render(`diagram-${index}`, source);
      figure.innerHTML = svg;
    }
  };

  const library = document.createElement("script");
  library.src = `${path_to_root}mermaid.min.js`;
  library.onload = () => {
    draw();
    new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["class"] });
  };
  document.head.append(library);
})();
