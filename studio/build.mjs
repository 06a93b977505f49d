// Bundles the page into the folder that is named. What is loaded first is one script and one style; what draws graphs comes
// when a graph is looked at. Names carry a hash of their content, so that a browser may keep them for ever.
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const FIRST_PAGE_BYTES = 150_000;
const here = fileURLToPath(new URL(".", import.meta.url));
const target = process.argv[2];
if (!target) throw new Error("Name the folder to build into: node build.mjs FOLDER");

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
const built = await build({
  absWorkingDir: here,
  entryPoints: { app: "src/main.tsx" },
  outdir: target,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  entryNames: "[name]-[hash]",
  chunkNames: "part-[hash]",
  metafile: true,
  logLevel: "warning",
});

const names = Object.keys(built.metafile.outputs).map((path) => basename(path));
const entry = Object.entries(built.metafile.outputs).find(([, output]) => output.entryPoint === "src/main.tsx");
const script = basename(entry[0]);
const style = basename(entry[1].cssBundle);
const icon = await readFile(join(here, "src/icon.svg"));
const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8).toUpperCase()}.svg`;
await writeFile(join(target, iconName), icon);
const shell = await readFile(join(here, "src/index.html"), "utf8");
await writeFile(
  join(target, "index.html"),
  shell.replace("{style}", style).replace("{script}", script).replace("{icon}", iconName),
);
await writeFile(join(target, "licences.txt"), await licences());

const statics = entry[1].imports.filter((one) => one.kind === "import-statement").map((one) => basename(one.path));
await tell(["index.html", script, style, ...statics], names.filter((name) => name.startsWith("part-") && !statics.includes(name)));

/** The licences of what is bundled ask to be passed on with it. */
async function licences() {
  const used = new Set();
  for (const path of Object.keys(built.metafile.inputs)) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path);
    if (found) used.add(found[1]);
  }
  const texts = [];
  for (const name of [...used].sort()) {
    const folder = join(here, "node_modules", name);
    const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
    if (!file) throw new Error(`${name} comes without its licence.`);
    texts.push(`${name}\n\n${(await readFile(join(folder, file), "utf8")).trim()}\n`);
  }
  return texts.join("\n----\n\n");
}

async function tell(first, later) {
  const sizes = async (list) => {
    const contents = await Promise.all(list.map((name) => readFile(join(target, name))));
    return [contents.reduce((sum, one) => sum + one.length, 0), contents.reduce((sum, one) => sum + gzipSync(one).length, 0)];
  };
  const [raw, packed] = await sizes(first);
  const [rawLater, packedLater] = await sizes(later);
  console.log(`first page ${raw} bytes (${packed} gzipped), later ${rawLater} (${packedLater} gzipped)`);
  if (raw > FIRST_PAGE_BYTES) throw new Error(`The first page has ${raw} bytes; at most ${FIRST_PAGE_BYTES} are agreed.`);
}
