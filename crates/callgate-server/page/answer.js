// The page of a link: shows the call, and answers it when the button is pressed.

import { request } from "./api_client.js";
import { element, visible } from "./elements.js";
import { requestSummary, statusText } from "./request_view.js";

const byId = (id) => document.getElementById(id);
// The token does not stay in the address, where others could read it.
const link = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

function say(text) { byId("message").textContent = text; }

async function show() {
  say("");
  try {
    shown(await request("POST", "/v1/answer-links", { link }));
  } catch (error) {
    if (error.code === "sign_in_required") signIn();
    else explain(error);
  }
}

function signIn() {
  byId("sign-in").hidden = false;
  byId("token").focus();
}

function explain(error) {
  byId("sign-in").hidden = true;
  byId("request").replaceChildren();
  say(error.message);
  byId("main").focus();
}

function shown({ choice, request: item, principal, signed_in: isSignedIn, has_answered: hasAnswered }) {
  byId("sign-in").hidden = true;
  const name = visible(principal ?? "an approver");
  byId("who").textContent = isSignedIn ? `Signed in as ${name}` : `Answering as ${name}`;
  const article = element("article", { class: "request", "aria-labelledby": "request-title" }, ...requestSummary(item, "request-title"));
  if (item.stage !== "waiting") article.append(element("p", { class: "status" }, statusText(item)));
  else if (hasAnswered) article.append(element("p", { class: "status" }, "You have answered already; more approvals are needed."));
  else article.append(...form(choice, item));
  byId("request").replaceChildren(article);
}

function form(choice, item) {
  const reason = element("input", { id: "reason", type: "text", autocomplete: "off", maxlength: 2000 });
  const known = item.card.actions.find((action) => action.choice === choice)?.label;
  const label = known ?? (choice === "approve" ? "Approve" : "Deny");
  const button = element("button", { type: "button", class: choice, "data-action": choice, onclick: async () => {
    button.disabled = true;
    try {
      const body = { link };
      if (reason.value.trim() !== "") body.reason = reason.value;
      const after = await request("POST", "/v1/answer-links/answers", body);
      shown({ choice, request: after, principal: null, signed_in: true, has_answered: true });
      byId("who").textContent = "";
      say(choice === "approve" ? "Your approval is recorded." : "Your denial is recorded.");
      byId("main").focus();
    } catch (error) {
      explain(error);
    }
  } }, visible(label));
  return [element("label", { for: "reason" }, "Reason, which the agent sees (optional)"), reason, element("div", { class: "actions" }, button)];
}

byId("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await request("POST", "/v1/browser-session", { token: byId("token").value });
    byId("token").value = "";
    byId("sign-in-error").textContent = "";
    await show();
  } catch (error) {
    byId("sign-in-error").textContent = error.status === 401 ? "This token is not valid." : error.message;
    byId("token").focus();
  }
});

if (link === "") say("This page is opened by the links of messages. Open the link in the message again.");
else show();
