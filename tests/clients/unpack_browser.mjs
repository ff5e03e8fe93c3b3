// Unpacks the browser and its shared libraries into TMPDIR, and prints where its program is.
// Usage: node unpack_browser.mjs FOLDER, which holds node_modules.
import { createRequire } from "node:module"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [folder] = process.argv.slice(2)
const require = createRequire(join(folder, "package.json"))
const entry = pathToFileURL(require.resolve("@sparticuz/chromium")).href
const { default: chromium, inflate } = await import(entry)
const packed = join(folder, "node_modules", "@sparticuz", "chromium", "bin")
const program = await chromium.executablePath(packed)
// The libraries that a machine without a desktop lacks.
const libraries = join(packed, "al2023.tar.br")
if (existsSync(libraries)) await inflate(libraries)
const fonts = join(folder, "node_modules", "dejavu-fonts-ttf", "ttf")
writeFileSync(
  join(process.env.TMPDIR, "fonts.conf"),
  `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">` +
    `<fontconfig><dir>${fonts}</dir><cachedir>${process.env.TMPDIR}/fonts</cachedir></fontconfig>`,
)
console.log(program)
