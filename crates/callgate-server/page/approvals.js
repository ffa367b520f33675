// The page: signs in, shows requests, activity and policies, and keeps them up to date.

import { RequestError, request } from "./api_client.js";
import { element, time, visible } from "./elements.js";
import { requestView } from "./request_view.js";
import { keepOnly, prepare } from "./selection.js";

const pageSize = 50;
const byId = (id) => document.getElementById(id);
const state = { view: "pending", search: "", offset: 0, policy: null, session: null, events: null, generation: 0 };

function say(text) { byId("message").textContent = text; }

async function start() {
  try {
    const caller = await request("GET", "/v1/caller");
    if (!caller.access.includes("approver")) throw new RequestError(401, null);
    byId("who").textContent = `Signed in as ${visible(caller.context.principal ?? "an approver")}`;
    byId("sign-in").hidden = true;
    byId("content").hidden = false;
    byId("sign-out").hidden = false;
    listen();
    await show();
  } catch (error) {
    signedOut(error);
  }
}

function signedOut(error) {
  state.events?.close();
  byId("content").hidden = true;
  byId("sign-out").hidden = true;
  byId("who").textContent = "";
  byId("connection").textContent = "";
  byId("sign-in").hidden = false;
  const isExpected = error === undefined || (error instanceof RequestError && (error.status === 401 || error.status === 403));
  byId("sign-in-error").textContent = isExpected ? "" : error.message;
  byId("token").focus();
}

async function signIn(token) {
  try {
    await request("POST", "/v1/browser-session", { token });
    byId("token").value = "";
    byId("sign-in-error").textContent = "";
    await start();
  } catch (error) {
    byId("sign-in-error").textContent = error.status === 401 ? "This token is not valid." : error.message;
    byId("token").focus();
  }
}

/** Follows the events of the server: lists are read again when something changes. */
function listen() {
  state.events?.close();
  const events = new EventSource("/v1/events");
  state.events = events;
  let scheduled = false;
  const refresh = () => {
    if (scheduled) return;
    scheduled = true;
    setTimeout(() => { scheduled = false; if (!isEditing()) show(false); }, 300);
  };
  events.onopen = () => { byId("connection").textContent = "Live"; refresh(); };
  events.onerror = () => { byId("connection").textContent = "Reconnecting…"; };
  for (const name of ["approval_requested", "approval_answered", "answer_recorded", "approvals_changed", "lagged"]) events.addEventListener(name, refresh);
  for (const name of ["call_completed", "rules_applied", "rules_pending"]) {
    events.addEventListener(name, () => { if (state.view !== "pending") refresh(); });
  }
}

/** Whether the person is writing an answer: the list is then not replaced under their hands. */
function isEditing() {
  const active = document.activeElement;
  const list = byId("list");
  if (active !== null && list.contains(active) && active.matches("input[type=text], textarea")) return true;
  return [...list.querySelectorAll("textarea, .reply input[type=text]")].some((field) => field.tagName === "TEXTAREA" || field.value !== "");
}

async function show(isNew = true) {
  if (isNew) state.offset = 0;
  const generation = ++state.generation;
  const views = { pending: showRequests, all: showRequests, activity: showActivity, policies: showPolicies };
  try {
    const children = await views[state.view]();
    if (generation !== state.generation) return;
    const focused = document.activeElement?.closest?.("article")?.id;
    byId("list").replaceChildren(...children);
    if (focused !== undefined) document.getElementById(focused)?.focus();
  } catch (error) {
    if (error.status === 401) signedOut(error);
    else say(error.message);
  }
}

function listPath(offset, limit) {
  const query = new URLSearchParams({ status: state.view, limit: String(limit), offset: String(offset) });
  if (state.search !== "") query.set("search", state.search);
  return `/v1/approvals?${query}`;
}

async function showRequests() {
  const shown = Math.max(pageSize, state.offset + pageSize);
  const answer = await request("GET", listPath(0, shown));
  byId("pending-count").textContent = String(answer.pending);
  keepOnly(answer.approvals);
  document.title = answer.pending > 0 ? `(${answer.pending}) Approvals · Callgate` : "Approvals · Callgate";
  byId("more").hidden = answer.found <= answer.approvals.length;
  if (answer.approvals.length === 0) {
    const text = state.search === "" ? "No request is pending. New ones appear here by themselves." : "No request matches the search.";
    return [element("p", { class: "empty" }, state.view === "all" && state.search === "" ? "There are no requests yet." : text)];
  }
  const sessions = new Map();
  for (const item of answer.approvals) {
    if (!sessions.has(item.conversation)) sessions.set(item.conversation, []);
    sessions.get(item.conversation).push(item);
  }
  return [...sessions].map(([conversation, items]) => element("section", { class: "session", "aria-label": `Session ${visible(items[0].session)}` },
    element("h2", {}, "Session ", element("button", { type: "button", class: "link", onclick: () => openActivity({ session: conversation }) }, visible(items[0].session))),
    ...items.map((item) => requestView(item, answered, failed))));
}

function answered(item) {
  const done = item.stage !== "waiting";
  const decision = item.answers.at(-1)?.decision ?? "answered";
  say(`${visible(item.tool)}: ${decision}${done ? "" : "; more approvals are needed"}.`);
  show(false);
  byId("main").focus();
}

function failed(error, item) {
  say(`${visible(item.tool)}: ${error.message}`);
  if (error instanceof RequestError && error.status === 409) show(false);
}

function openActivity({ session = null, policy = null }) {
  state.session = session;
  state.policy = policy;
  setView("activity");
}

async function showActivity() {
  const query = new URLSearchParams({ limit: "200" });
  if (state.session !== null) query.set("session", state.session);
  if (state.policy !== null) query.set("policy", state.policy);
  byId("more").hidden = true;
  const { events } = await request("GET", `/v1/activity?${query}`);
  const filter = state.session ?? state.policy;
  const heading = filter === null ? [] : [element("p", { class: "facts" }, `Only ${visible(filter)} · `,
    element("button", { type: "button", class: "link", onclick: () => openActivity({}) }, "show everything"))];
  if (events.length === 0) return [...heading, element("p", { class: "empty" }, "Nothing has happened since the server started.")];
  const rows = events.map((event) => element("tr", {},
    element("td", {}, time(event.time)),
    element("td", {}, event.conversation === null ? "" : element("button", { type: "button", class: "link", onclick: () => openActivity({ session: event.conversation }) }, visible(event.session ?? ""))),
    element("td", {}, visible(event.tool ?? "")),
    element("td", {}, describe(event))));
  const head = element("thead", {}, element("tr", {}, ...["When", "Session", "Tool", "What happened"].map((name) => element("th", { scope: "col" }, name))));
  return [...heading, element("table", {}, head, element("tbody", {}, ...rows))];
}

function describe(event) {
  if (event.event === "call_completed") return `${event.outcome}: ${visible(event.reason?.message ?? "")}`;
  if (event.event === "approval_requested") return `approval requested: ${visible(event.message ?? "")}`;
  if (event.event === "answer_recorded") return `${event.decision} by ${visible(event.by ?? "anonymous")}${event.comment === null ? "" : `: ${visible(event.comment)}`}`;
  if (event.event === "approval_answered") return event.approved ? "approved" : `not approved: ${event.code}`;
  return event.event.replaceAll("_", " ");
}

async function showPolicies() {
  byId("more").hidden = true;
  const rules = await request("GET", "/v1/rules");
  const notes = [element("p", { class: "facts" }, `Revision ${rules.revision.slice(0, 12)}, in effect since `, time(rules.loaded_at))];
  if (rules.rejected !== null) notes.push(element("p", { class: "note" }, `Newer rules were rejected: ${visible(rules.rejected.summary)}`));
  if (rules.pending !== null) {
    const confirm = element("button", { type: "button", onclick: async () => {
      try {
        await request("POST", "/v1/rules/confirm", { revision: rules.pending.revision });
        say("The new rules are in effect.");
        show();
      } catch (error) { say(error.message); }
    } }, "Confirm the new rules");
    notes.push(element("div", { class: "request" }, element("h3", {}, "Newer rules may allow more, and wait for confirmation"),
      element("ul", {}, ...rules.pending.relaxations.map((text) => element("li", {}, visible(text)))), confirm));
  }
  if (rules.policies.length === 0) return [...notes, element("p", { class: "empty" }, "The rules have no policies.")];
  const rows = rules.policies.map((policy) => element("tr", {},
    element("td", {}, element("button", { type: "button", class: "link", onclick: () => openActivity({ policy: policy.id }) }, visible(policy.id))),
    element("td", {}, policy.kind), element("td", {}, policy.mode), element("td", {}, visible(policy.description ?? ""))));
  const head = element("thead", {}, element("tr", {}, ...["Policy", "Kind", "Mode", "Purpose"].map((name) => element("th", { scope: "col" }, name))));
  return [...notes, element("table", {}, head, element("tbody", {}, ...rows))];
}

function answeredSeveral(count, problems) {
  const answered = count === 1 ? "1 request answered." : `${count} requests answered.`;
  say([answered, ...problems].join(" "));
  show(false);
  byId("main").focus();
}

function setView(view) {
  state.view = view;
  for (const button of document.querySelectorAll("nav button")) button.setAttribute("aria-pressed", String(button.dataset.view === view));
  byId("search-form").hidden = !["pending", "all"].includes(view);
  if (!["pending", "all"].includes(view)) keepOnly([]);
  say("");
  show();
}

byId("sign-in").addEventListener("submit", (event) => { event.preventDefault(); signIn(byId("token").value); });
byId("sign-out").addEventListener("click", async () => {
  try { await request("DELETE", "/v1/browser-session"); } finally { signedOut(); }
});
byId("search-form").addEventListener("submit", (event) => event.preventDefault());
let searching = 0;
byId("search").addEventListener("input", (event) => {
  clearTimeout(searching);
  searching = setTimeout(() => { state.search = event.target.value.trim(); show(); }, 200);
});
for (const decision of ["approve", "deny"]) byId(`${decision}-selected`).addEventListener("click", () => prepare(decision, answeredSeveral));
byId("more").addEventListener("click", () => { state.offset += pageSize; show(false); });
for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => { state.session = null; state.policy = null; setView(button.dataset.view); });
}

// A link with the token signs in once; the token does not stay in the address.
const link = new URLSearchParams(location.hash.slice(1));
const given = link.get("token");
// A link of a notification searches for its tool.
state.search = link.get("search") ?? "";
byId("search").value = state.search;
if (given === null) start();
else {
  history.replaceState(null, "", location.pathname);
  signIn(given);
}
