// A whole session of an agent with one of the official TypeScript clients, over stdio.
//
// node session.mjs CLIENT TASK   with CLIENT `1` (@modelcontextprotocol/sdk) or `2` (@modelcontextprotocol/client)
// and TASK a JSON object: the folder of packages, how the server is started, the vault. Prints one JSON object
// with what each step gave; a step that fails ends the process.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [which, given] = process.argv.slice(2);
const task = JSON.parse(given);
// Packages are not beside this file, and imports look nowhere else.
const load = createRequire(join(task.packages, "of.js"));

function withClient1(answers, heard) {
  const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
  const { ElicitRequestSchema, ResourceUpdatedNotificationSchema } = load("@modelcontextprotocol/sdk/types.js");
  const client = new Client({ name: "typescript-1", version: "1" }, { capabilities: { elicitation: {} } });
  client.setRequestHandler(ElicitRequestSchema, (request) => answers(request.params));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (notice) => heard(notice.params));
  return {
    client,
    transport: new StdioClientTransport({ ...task.server, stderr: "pipe" }),
    subscribe: async (uri) => {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
  };
}

function withClient2(answers, heard) {
  const { Client } = load("@modelcontextprotocol/client");
  const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");
  const client = new Client(
    { name: "typescript-2", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
  );
  client.setRequestHandler("elicitation/create", (request) => answers(request.params));
  client.setNotificationHandler("notifications/resources/updated", (notice) => heard(notice.params));
  return {
    client,
    transport: new StdioClientTransport({ ...task.server, stderr: "pipe" }),
    subscribe: async (uri) => {
      const stream = await client.listen({ resourceSubscriptions: [uri] });
      return () => stream.close();
    },
  };
}

const asked = [];
let accepts = false;
const answers = (params) => {
  asked.push(params.message);
  const fields = Object.keys(params.requestedSchema.properties);
  const content = Object.fromEntries(fields.map((field) => [field, true]));
  return accepts ? { action: "accept", content } : { action: "decline" };
};
let told;
const edited = new Promise((resolve) => (told = resolve));

const { client, transport, subscribe } = (which === "1" ? withClient1 : withClient2)(answers, told);
let complaints = "";
transport.stderr?.on("data", (data) => (complaints += data));
let protocol; // the 1.x client tells it to its transport alone
transport.setProtocolVersion = (version) => (protocol = version);
await client.connect(transport);
// Both clients check structured content against the output schemas of the tools they have listed.
const { tools } = await client.listTools();
const call = (name, args) => client.callTool({ name, arguments: args });
const good = async (name, args) => {
  const result = await call(name, args);
  if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
  if (!result.structuredContent) throw new Error(`${name} gave nothing structured`);
  return result.structuredContent;
};
const bad = async (name, args) => {
  const result = await call(name, args);
  if (!result.isError) throw new Error(`${name} was not refused`);
  return result.content[0].text;
};

const got = { tools: tools.map((tool) => tool.name) };
got.server = client.getServerVersion();
got.instructions = client.getInstructions();
got.capabilities = client.getServerCapabilities();
got.protocol = which === "1" ? protocol : client.getNegotiatedProtocolVersion();
got.wakeUp = await good("wake_up", {});
got.written = await good("write_memory", { content: "Kafka keeps topics. 🦭", title: "Kafka" });
got.exists = await bad("write_memory", { content: "again", path: "Kafka" });
got.conflict = await bad("write_memory", { content: "x", path: "Kafka", mode: "replace", if_rev: "0000" });
got.found = await good("search_room", { query: "topics" });
got.read = await good("read_memory", { path: got.written.saved_path });
got.rated = await good("rate_memory", { id: got.written.id, density: 0.8 });
got.unknown = await bad("read_memory", { pth: "x" });

got.resources = (await client.listResources()).resources.map((one) => one.uri);
got.templates = (await client.listResourceTemplates()).resourceTemplates.map((one) => one.uriTemplate);
const uri = `palace://memory/${got.written.saved_path}`;
got.resource = (await client.readResource({ uri })).contents[0];
got.prompts = (await client.listPrompts()).prompts.map((one) => one.name);

const stop = await subscribe(uri);
writeFileSync(join(task.vault, got.written.saved_path), "A person was here.\n");
got.notice = await edited;
await stop();
got.reread = await good("read_memory", { path: got.written.saved_path });

got.declined = await bad("purge_memory", { path: got.written.saved_path });
accepts = true;
got.accepted = await good("purge_memory", { path: got.written.saved_path });
got.asked = asked;
const server = transport.pid;
await client.close();
got.gone = await ended(server);
got.complaints = complaints;
console.log(JSON.stringify(got));

async function ended(pid) {
  for (let tries = 0; tries < 600; tries += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}
