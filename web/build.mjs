// Builds the page: node build.mjs OUT. Scripts and styles are named after their content, and each
// file stands beside its gzip form.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { createRequire } from "node:module"
import { gzipSync } from "node:zlib"

// The packages may be in another folder than the sources.
const packages = process.env.PERDURE_WEB_PACKAGES ?? join(dirname(fileURLToPath(import.meta.url)), "node_modules")
const { build } = createRequire(join(packages, "package.json"))("esbuild")
const here = dirname(fileURLToPath(import.meta.url))
const out = resolve(process.argv[2] ?? join(here, "..", "src", "perdure", "data", "web"))
const fresh = `${out}.${process.pid}`
rmSync(fresh, { recursive: true, force: true })
mkdirSync(fresh, { recursive: true })

const common = {
  absWorkingDir: here,
  nodePaths: [packages],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  outdir: fresh,
  jsx: "automatic",
  jsxImportSource: "preact",
  conditions: ["production", "browser"],
  legalComments: "linked",
  metafile: true,
  logLevel: "warning",
  alias: { "perdure-client": join(here, "..", "clients", "typescript", "src", "index.ts") },
}
const named = (result, entry) =>
  basename(Object.entries(result.metafile.outputs).find(([, o]) => o.entryPoint === entry)[0])

const worker = await build({
  ...common,
  format: "iife",
  entryPoints: ["src/worker.ts"],
  entryNames: "worker-[hash]",
})
const page = await build({
  ...common,
  entryPoints: ["src/main.tsx", "src/style.css"],
  splitting: true,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  define: {
    WORKER_PATH: JSON.stringify(`/assets/${named(worker, "src/worker.ts")}`),
    "process.env.NODE_ENV": '"production"',
  },
})
const index = readFileSync(join(here, "index.html"), "utf8")
  .replaceAll("STYLE", `/assets/${named(page, "src/style.css")}`)
  .replaceAll("SCRIPT", `/assets/${named(page, "src/main.tsx")}`)
  .replaceAll("ICON", "/assets/icon.svg")
writeFileSync(join(fresh, "icon.svg"), readFileSync(join(here, "icon.svg")))
writeFileSync(join(fresh, "index.html"), index)

const outputs = { ...worker.metafile.outputs, ...page.metafile.outputs }
const names = [...Object.keys(outputs).map((path) => basename(path)), "icon.svg", "index.html"]
const sizes = {}
for (const name of names) {
  const packed = gzipSync(readFileSync(join(fresh, name)), { level: 9 })
  writeFileSync(join(fresh, `${name}.gz`), packed)
  if (!name.endsWith(".txt")) sizes[name] = packed.length
}
rmSync(out, { recursive: true, force: true })
mkdirSync(dirname(out), { recursive: true })
renameSync(fresh, out)
console.log(JSON.stringify({ out, gzip: sizes }))
