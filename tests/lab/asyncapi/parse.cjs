// Usage: node parse.cjs DOCUMENT: what AsyncAPI's parser says of it; 1 if it is refused.
const { readFileSync } = require("fs");
const { createRequire } = require("module");
const { Parser } = createRequire(process.cwd() + "/")("@asyncapi/parser");

(async () => {
  const source = readFileSync(process.argv[2], "utf8");
  const { document, diagnostics } = await new Parser().parse(source);
  for (const { severity, path, message } of diagnostics) {
    console.log(severity, path.join("/"), message);
  }
  if (!document) process.exit(1);
  console.log(document.channels().all().length, "channels");
})();
