// Follows the link of a message in a real browser: `node answer.mjs ADDRESS LINK TOKEN`. Prints what it finds as one line of JSON.
import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [address, link, token] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const found = { errors: [], violations: [], leaks: [] };

async function open(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("request", (request) => {
    const sent = JSON.stringify([request.url(), request.headers()]);
    if (!request.url().startsWith(address) || sent.includes(link)) found.leaks.push(sent);
  });
  await page.goto(`${address}/answer#${link}`);
  await page.getByLabel("Token").waitFor();
  return page;
}

async function signIn(page) {
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
  await page.locator("article").waitFor();
}

// Accessibility on a phone. The content security policy of the page does not allow the checker.
const phone = await open({ viewport: { width: 360, height: 740 }, bypassCSP: true });
const audit = async (view) => {
  await phone.evaluate(axe);
  const { violations } = await phone.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] }));
  for (const violation of violations) found.violations.push(`${view}: ${violation.id} ${violation.nodes[0].html}`);
};
await audit("sign in");
await signIn(phone);
await audit("request");

const page = await open({});
found.address = page.url();
await page.getByLabel("Token").fill("guess");
await page.keyboard.press("Enter");
await page.getByText("This token is not valid.").waitFor();
await signIn(page);
found.text = await page.locator("article").innerText();
found.buttons = await page.locator("article button").allInnerTexts();
found.injected = await page.evaluate(() => window.injected === true);
await page.getByLabel("Reason").fill("fine");
await page.getByRole("button", { name: "Approve" }).click();
await page.getByText("Your approval is recorded.").waitFor();
found.after = await page.locator("article").innerText();
await browser.close();
console.log(JSON.stringify(found));
