// Drives the approvals page in a real browser: `node check.mjs ADDRESS TOKEN`. Prints what it finds as one line of JSON.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [address, token] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const found = { errors: [], violations: [], overflow: [] };

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(address)) found.errors.push(`a request to ${request.url()}`); });
  await page.goto(address);
  return page;
}

async function signIn(page) {
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.locator("article").first().waitFor();
}

/** Accessibility (WCAG 2.2 AA), and whether everything fits. The content security policy of the page does not allow the checker. */
async function check(options, name) {
  const page = await open({ ...options, bypassCSP: true });
  const audit = async (view) => {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] }));
    for (const violation of violations) found.violations.push(`${name} ${view}: ${violation.id} ${violation.nodes[0].html}`);
    if (await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)) found.overflow.push(`${name} ${view}`);
  };
  await page.getByLabel("Token").waitFor();
  await audit("sign in");
  await signIn(page);
  await audit("pending");
  await page.getByRole("checkbox").first().check();
  await audit("selected");
  await page.getByRole("button", { name: "Approve…" }).click();
  await audit("dialog");
  found.dialog = await page.getByRole("dialog").innerText();
  await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
  for (const view of ["Activity", "Policies"]) {
    await page.getByRole("button", { name: view, exact: true }).click();
    await page.locator("table").waitFor();
    await audit(view);
  }
  await page.context().close();
}

await check({ viewport: { width: 1100, height: 900 }, colorScheme: "light" }, "light");
await check({ viewport: { width: 360, height: 740 }, colorScheme: "dark" }, "phone, dark");

const first = await open({});
await first.getByLabel("Token").fill("guess");
await first.keyboard.press("Enter");
await first.getByText("This token is not valid.").waitFor();
await signIn(first);
const second = await open({});
await signIn(second);
found.text = await first.locator("article").first().innerText();
found.injected = await first.evaluate(() => window.injected === true || document.querySelector("article b, article img, article script") !== null);
found.requests = await first.locator("article").count();

// By keyboard alone: from the reason to the button.
await first.locator("article").first().getByLabel("Reason").focus();
await first.keyboard.type("too much");
const deny = first.locator("article").first().getByRole("button", { name: "Deny" });
for (let steps = 0; steps < 5 && !(await deny.evaluate((button) => button === document.activeElement)); steps += 1) await first.keyboard.press("Tab");
await first.keyboard.press("Enter");
await first.locator("article").nth(3).waitFor({ state: "detached" });
// The other approver sees it without doing anything.
await second.locator("article").nth(3).waitFor({ state: "detached" });
found.live = await second.locator("article").count();

// An edit of the allowed argument.
await second.locator("article").first().getByRole("button", { name: "Edit" }).click();
const arguments_ = second.getByLabel(/Arguments; you may change/);
await arguments_.fill((await arguments_.inputValue()).replace("rent", "late rent"));
await second.getByRole("button", { name: "Approve with changes" }).click();
await second.locator("article").nth(2).waitFor({ state: "detached" });
// Several at once: what is selected is listed before it is answered.
await first.locator("article").nth(2).waitFor({ state: "detached" });
for (const box of await first.getByRole("checkbox").all()) await box.check();
found.selected = await first.locator("#selected-count").innerText();
await first.getByRole("button", { name: "Deny…" }).click();
found.bulk = await first.getByRole("dialog").innerText();
await first.getByRole("dialog").getByRole("button", { name: "Back" }).click();
found.afterBack = await first.locator("article").count();
await first.getByRole("button", { name: "Deny…" }).click();
await first.getByRole("dialog").getByLabel(/Reason/).fill("budget is used up");
await first.getByRole("button", { name: "Deny these 2 calls" }).click();
await first.getByText("2 requests answered.").waitFor();
await first.getByText("New ones appear here by themselves").waitFor();
await second.getByRole("button", { name: "Sign out" }).click();
await second.getByLabel("Token").waitFor();
await second.reload();
// The page asks the server first whether its cookie is still valid.
await second.getByLabel("Token").waitFor();
found.signedOut = (await second.locator("article").count()) === 0;
await browser.close();
console.log(JSON.stringify(found));
