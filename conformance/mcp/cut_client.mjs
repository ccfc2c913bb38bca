// Calls `eval` again and again with the official TypeScript client and prints what came of each call.
// Arguments: the client's module, the server's address, its token, how many calls.
import { pathToFileURL } from "node:url";

const [module, url, token, calls] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(module));

const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const client = new Client({ name: "cut", version: "0" });
client.onerror = () => {}; // a broken connection is what this is about
await client.connect(transport);
const results = [];
for (let call = 0; call < Number(calls); call += 1) {
  try {
    const request = { name: "eval", arguments: { code: `print(${call} * 2)` } };
    const result = await client.callTool(request, { timeout: 20_000 });
    results.push(result.content[0].text);
  } catch (error) {
    results.push(`failed: ${error.message}`);
  }
}
console.log(JSON.stringify(results));
await client.close();
