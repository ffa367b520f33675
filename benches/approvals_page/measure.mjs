// Measures the approvals page: `node measure.mjs ADDRESS TOKEN`. Prints four times in milliseconds: first paint, first request, new request,
// answered request; each is the median of five.
import { chromium } from "playwright-core";

const [address, token] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const median = (values) => Math.round(values.sort((a, b) => a - b)[Math.floor(values.length / 2)]);
// The content security policy of the page does not allow the conditions that are waited for.
const page = await (await browser.newContext({ bypassCSP: true })).newPage();
await page.goto(`${address}/#token=${token}`);
await page.locator("article").first().waitFor();

const paints = [];
const firsts = [];
for (let round = 0; round < 5; round += 1) {
  await page.reload();
  // Polled at each frame, with the clock that starts when the page is opened.
  const shown = await page.waitForFunction(() => document.querySelector("article") !== null && performance.now(), null, { polling: "raf" });
  firsts.push(await shown.jsonValue());
  // The browser reports a paint some time after it.
  const painted = await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  paints.push(await painted.jsonValue());
}

const count = () => page.evaluate(() => Number(document.getElementById("pending-count").textContent));
const untilCount = (number) => page.waitForFunction(
  (expected) => document.getElementById("pending-count").textContent === String(expected), number, { polling: "raf", timeout: 120_000 });

const news = [];
const answers = [];
for (let round = 0; round < 5; round += 1) {
  const before = await count();
  let started = performance.now();
  const call = { id: `new${round}`, tool: "pay", input: { amount: round, note: "a new invoice" } };
  const sent = await fetch(`${address}/v1/calls`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ session: "new", call }),
  });
  if (!sent.ok) throw new Error(await sent.text());
  await untilCount(before + 1);
  news.push(performance.now() - started);
  started = performance.now();
  await page.locator("article").first().getByRole("button", { name: "Deny" }).click();
  await untilCount(before);
  answers.push(performance.now() - started);
}
await browser.close();
console.log([paints, firsts, news, answers].map(median).join(" "));
