// Uses the web app of the published program in a browser, against another server.
// Usage: node web_app.mjs FOLDER PAGE SERVER DIRECTORY. Prints a line per step.
import { createRequire } from "node:module"
import { join } from "node:path"

const [folder, origin, server, directory] = process.argv.slice(2)
const { chromium } = createRequire(join(folder, "package.json"))("playwright-core")
const browser = await chromium.launch({
  executablePath: process.env.PERDURE_BROWSER ?? join(folder, "browser", "chromium"),
  args: ["--no-sandbox", "--no-zygote"],
})
const context = await browser.newContext({ viewport: { width: 1200, height: 900 } })
context.setDefaultTimeout(60_000)
await context.addInitScript((url) => {
  const known = { list: [url], projects: {}, lastProject: {} }
  localStorage.setItem("opencode.global.dat:server", JSON.stringify(known))
  localStorage.setItem("opencode.settings.dat:defaultServerUrl", url)
}, server)
const page = await context.newPage()
const faults = []
page.on("pageerror", (error) => faults.push(`error ${error.message}`))
page.on("response", (answer) => {
  const url = new URL(answer.url())
  if (answer.status() >= 400) faults.push(`${answer.request().method()} ${url.pathname} ${answer.status()}`)
})

const sees = (text) => page.getByText(text, { exact: false }).first().waitFor()
const composer = page.locator('[contenteditable="true"]').first()
const sent = (text) => composer.filter({ hasNotText: text }).waitFor({ timeout: 10_000 })
// The app ignores Enter until it has loaded the project. The text then stays in the composer, and a
// person presses Enter again.
const send = async (text) => {
  await composer.click()
  await page.keyboard.type(text)
  for (let presses = 1; presses <= 4; presses++) {
    await composer.press("Enter")
    const empty = await sent(text).then(() => true, () => false)
    if (empty) return
  }
  throw new Error(`the composer keeps the text ${JSON.stringify(text)}`)
}

try {
  await page.goto(`${origin}/${Buffer.from(directory).toString("base64url")}/session`)
  await composer.waitFor()
  console.log("ok opened")
  await send("edit it")
  await sees("All done.")
  await page.getByText("notes.txt").first().waitFor()
  console.log("ok answered")
  await send("run it")
  await sees("echo from the browser")
  await page.getByRole("button", { name: "Allow once" }).click()
  await sees("It ran.")
  console.log("ok allowed")
  await page.reload()
  await sees("It ran.")
  console.log("ok reloaded")
  for (const fault of new Set(faults)) console.log("fault", fault)
} catch (error) {
  console.log(String(error), page.url(), (await page.locator("body").innerText()).slice(0, 2_000))
  for (const fault of new Set(faults)) console.log("fault", fault)
  process.exitCode = 1
} finally {
  await browser.close()
}
