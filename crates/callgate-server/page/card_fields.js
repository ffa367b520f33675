// What a card shows of a call: the arguments, what was changed, and notes.

import { element, readable, visible } from "./elements.js";

/** The fields of a card. Its texts are escaped by the server, and have every digit of a number. */
export function cardFields(card) {
  const list = element("dl", { class: "fields" });
  const notes = [];
  for (const field of card.fields) {
    // Shown above.
    if (["tool", "server", "policies", "expires"].includes(field.kind)) continue;
    if (field.kind === "note") {
      notes.push(element("p", { class: "note" }, visible(field.value)));
      continue;
    }
    const isChanged = ["changed", "added", "removed"].includes(field.kind);
    const value = element("dd", { class: isChanged ? "changed" : undefined }, readable(field.value));
    if (field.was !== undefined) value.append(element("span", { class: "was" }, element("span", { class: "visually-hidden" }, "before: "), readable(field.was)));
    list.append(element("dt", {}, readable(field.label)), value);
  }
  return element("div", {}, ...notes, list);
}
