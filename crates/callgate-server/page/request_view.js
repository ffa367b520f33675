// One approval request: what is asked, its arguments, and the ways to answer.

import { request } from "./api_client.js";
import { cardFields } from "./card_fields.js";
import { element, time, visible } from "./elements.js";
import { isSelected, select } from "./selection.js";

const stages = {
  answered: "Answered; the call has not resumed yet",
  lapsed: "Expired",
  unproven: "Invalid: not sealed by this server",
  running: "Running, or started without an outcome",
  settled: "Completed",
};

/** What is asked: heading, facts, question, arguments, and the answers so far. `id` is that of the heading. */
export function requestSummary(item, id) {
  const server = item.server === null ? "" : ` on ${visible(item.server)}`;
  const facts = [];
  if (item.requester !== null) facts.push(`requested by ${visible(item.requester)}`);
  if (item.asked_at !== null) facts.push(time(item.asked_at));
  if (item.expires_at !== null && item.stage === "waiting") facts.push(element("span", {}, "expires ", time(item.expires_at)));
  if (item.policies.length > 0) facts.push(`required by ${item.policies.map(visible).join(", ")}`);
  return [
    element("h3", { id }, `${visible(item.tool)}${server}`),
    element("p", { class: "facts" }, facts.flatMap((fact, index) => (index === 0 ? [fact] : [" · ", fact]))),
    element("p", { class: "question" }, visible(item.message ?? item.card.text)),
    cardFields(item.card),
    ...progress(item),
  ];
}

/** The article of a request. `changed` is called with the request after an answer, `failed` with an error. */
export function requestView(item, changed, failed) {
  const id = `request-${item.key}`;
  const article = element("article", { class: "request", id, "aria-labelledby": `${id}-title`, tabindex: "-1" });
  const [heading, ...summary] = requestSummary(item, `${id}-title`);
  article.append(heading);
  if (item.stage === "waiting") {
    const box = element("input", { type: "checkbox", id: `select-${item.key}`, checked: isSelected(item), onchange: () => select(item, box.checked) });
    article.append(element("label", { class: "select", for: box.id }, box, " Select"));
  }
  article.append(...summary);
  if (item.stage === "waiting") article.append(answerForm(item, article, changed, failed));
  else article.append(element("p", { class: "status" }, statusText(item)));
  return article;
}

function progress(item) {
  const shown = [];
  if (item.answers.length > 0) {
    const answers = item.answers.map((answer) => {
      const by = answer.by === null ? "anonymous" : visible(answer.by);
      const reason = answer.reason === null ? "" : `: ${visible(answer.reason)}`;
      const ignored = answer.counts ? "" : ` (does not count: ${visible(answer.why ?? "")})`;
      return element("li", {}, `${by} ${answer.decision}${reason}${ignored} `, answer.at === null ? "" : time(answer.at));
    });
    shown.push(element("ol", { class: "answers", "aria-label": "Answers" }, ...answers));
  }
  for (const ask of item.asks) {
    if (ask.quorum <= 1 && ask.approvers.length === 0) continue;
    const who = ask.approvers.length === 0 ? "anyone" : ask.approvers.map(visible).join(", ");
    const policy = ask.policy === null ? "" : ` for ${visible(ask.policy)}`;
    shown.push(element("p", { class: "facts" }, `${ask.approvals} of ${ask.quorum} approvals${policy}, by ${who}`));
  }
  return shown;
}

/** How far a request is that is no longer pending. */
export function statusText(item) {
  const outcome = item.outcome?.outcome;
  const decision = item.decision === null ? "" : `: ${item.decision}`;
  return `${stages[item.stage] ?? item.stage}${decision}${outcome === undefined ? "" : `: ${outcome}`}`;
}

function answerForm(item, article, changed, failed) {
  const reason = element("input", { id: `reason-${item.key}`, type: "text", autocomplete: "off", maxlength: 2000 });
  const edit = element("div", { class: "reply", hidden: true });
  let edited = null;
  const buttons = [];
  const send = async (body) => {
    buttons.forEach((button) => { button.disabled = true; });
    article.setAttribute("aria-busy", "true");
    try {
      const answer = { ...body, digest: item.digest };
      if (reason.value.trim() !== "") answer.reason = reason.value;
      changed(await request("POST", `/v1/approvals/${item.key}/answers`, answer));
    } catch (error) {
      buttons.forEach((button) => { button.disabled = false; });
      article.removeAttribute("aria-busy");
      failed(error, item);
    }
  };
  const labels = Object.fromEntries(item.card.actions.map((action) => [action.choice ?? action.kind ?? "", action.label]));
  const approve = element("button", { type: "button", class: "approve", "data-action": "approve", onclick: () => {
    if (edited === null) { send({ decision: "approve" }); return; }
    try {
      send({ decision: "approve", input: JSON.parse(edited.value) });
    } catch (error) {
      failed(new Error(`The changed arguments are invalid JSON: ${error.message}`), item);
      edited.focus();
    }
  } }, visible(labels.approve ?? "Approve"));
  const deny = element("button", { type: "button", class: "deny", "data-action": "deny", onclick: () => send({ decision: "deny" }) }, visible(labels.deny ?? "Deny"));
  const cancel = element("button", { type: "button", "data-action": "cancel", onclick: () => send({ decision: "cancel" }) }, "Cancel the run");
  buttons.push(approve, deny, cancel);
  if (item.editable.length > 0) {
    const start = element("button", { type: "button", "data-action": "edit", "aria-expanded": "false", onclick: () => {
      edited = element("textarea", { id: `edit-${item.key}`, spellcheck: "false", value: JSON.stringify(item.input, null, 2) });
      edit.replaceChildren(element("label", { for: `edit-${item.key}` }, `Arguments; you may change ${item.editable.map(visible).join(", ")}`), edited);
      edit.hidden = false;
      start.setAttribute("aria-expanded", "true");
      start.disabled = true;
      approve.textContent = "Approve with changes";
      edited.focus();
    } }, "Edit");
    buttons.push(start);
  }
  return element("div", { class: "reply" }, edit,
    element("label", { for: `reason-${item.key}` }, "Reason, which the agent sees (optional)"), reason,
    element("div", { class: "actions" }, ...buttons));
}
