// What a Node user would write: peers.mjs read NOTEBOOK | edit NOTEBOOK INDEX SOURCE
import { readFileSync, writeFileSync } from "node:fs";

const [action, path, index, source] = process.argv.slice(2);
const notebook = JSON.parse(readFileSync(path, "utf8"));

if (action === "read") {
  const text = notebook.cells
    .map((cell, at) => `# %% [${cell.cell_type}] cell:${at}\n${[].concat(cell.source).join("")}\n`)
    .join("");
  process.stdout.write(text);
} else {
  const cell = notebook.cells[Number(index)];
  cell.source = source.split(/(?<=\n)/);
  cell.outputs = [];
  cell.execution_count = null;
  writeFileSync(path, JSON.stringify(notebook, null, 1) + "\n");
}
