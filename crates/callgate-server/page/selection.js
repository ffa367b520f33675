// Answers to several requests at once: what is selected, and a dialog that lists every call before it is answered.

import { request } from "./api_client.js";
import { cardFields } from "./card_fields.js";
import { element, visible } from "./elements.js";

const selected = new Map();
const byId = (id) => document.getElementById(id);

/** Whether a request is selected. */
export function isSelected(item) { return selected.has(item.key); }

/** Selects a request, or no longer. */
export function select(item, isOn) {
  if (isOn) selected.set(item.key, item);
  else selected.delete(item.key);
  update();
}

/** Forgets what is no longer shown as pending, or has changed. */
export function keepOnly(items) {
  const shown = new Map(items.filter((item) => item.stage === "waiting").map((item) => [item.key, item.digest]));
  for (const [key, item] of selected) if (shown.get(key) !== item.digest) selected.delete(key);
  update();
}

function update() {
  byId("selection").hidden = selected.size === 0;
  byId("selected-count").textContent = selected.size === 1 ? "1 request selected" : `${selected.size} requests selected`;
}

/** Asks whether to answer what is selected; `done` is called with the number of answers, and the problems. */
export function prepare(decision, done) {
  const items = [...selected.values()];
  const verb = decision === "approve" ? "Approve" : "Deny";
  const dialog = byId("bulk");
  const reason = element("input", { id: "bulk-reason", type: "text", autocomplete: "off", maxlength: 2000 });
  const send = element("button", { type: "button", class: decision, onclick: async () => {
    send.disabled = true;
    const text = reason.value.trim() === "" ? undefined : reason.value;
    const answers = items.map(({ key, digest }) => ({ key, digest, decision, reason: text }));
    try {
      const { results } = await request("POST", "/v1/answers", { answers });
      dialog.close();
      selected.clear();
      update();
      const problems = results.filter((result) => result.problem !== undefined).map((result) => {
        const item = items.find((known) => known.key === result.key);
        return `${visible(item.tool)}: ${result.problem.detail}`;
      });
      done(results.length - problems.length, problems);
    } catch (error) {
      send.disabled = false;
      byId("bulk-error").textContent = error.message;
    }
  } }, `${verb} ${items.length === 1 ? "this call" : `these ${items.length} calls`}`);
  const back = element("button", { type: "button", onclick: () => dialog.close() }, "Back");
  const rows = items.map((item) => element("li", {}, element("strong", {}, visible(item.tool)), ` · ${visible(item.session)}`,
    element("p", { class: "question" }, visible(item.message ?? item.card.text)), cardFields(item.card)));
  dialog.replaceChildren(element("h2", { id: "bulk-title" }, `${verb} ${items.length === 1 ? "1 call" : `${items.length} calls`}?`),
    element("ul", { class: "bulk-list", tabindex: "0", "aria-label": "Calls" }, ...rows),
    element("label", { for: "bulk-reason" }, "Reason, which the agents see (optional)"), reason,
    element("p", { id: "bulk-error", role: "alert" }), element("div", { class: "actions" }, send, back));
  dialog.showModal();
  back.focus();
}
