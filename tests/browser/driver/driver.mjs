// A real browser for the tests in Python: a JSON object a line in, `{"result": ...}` or `{"error": ...}` a line out.
// With the argument `prepare` it only unpacks Chromium, into the directory for temporary files.
import { createInterface } from "node:readline";
import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";

const executablePath = await chromium.executablePath();
if (process.argv[2] === "prepare") {
  process.exit(0);
}

// In a container there is neither a sandbox nor a graphics card.
const browser = await playwright.launch({ executablePath, args: ["--no-sandbox", "--no-zygote", "--disable-gpu"] });
let page = null;
let seen = []; // console messages, errors and requests of the page

const COMMANDS = {
  async open({ url, scheme, width, height }) {
    await page?.context().close();
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height }, reducedMotion: "reduce" });
    page = await context.newPage();
    page.setDefaultTimeout(10000);
    seen = [];
    page.on("console", (message) => seen.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => seen.push(`error: ${error.message}`));
    page.on("request", (request) => request.url() !== url && seen.push(`request: ${request.url()}`));
    page.on("dialog", (dialog) => {
      seen.push(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    await page.goto(url);
  },
  evaluate: ({ script }) => page.evaluate(script),
  press: ({ key }) => page.keyboard.press(key),
  click: ({ selector }) => page.click(selector),
  fill: ({ selector, text }) => page.fill(selector, text),
  select: ({ selector, value }) => page.selectOption(selector, value),
  scheme: ({ scheme }) => page.emulateMedia({ colorScheme: scheme }),
  seen: () => seen,
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, ...given } = JSON.parse(line);
  try {
    console.log(JSON.stringify({ result: (await COMMANDS[command](given)) ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ error: String(error) }));
  }
}
await browser.close();
