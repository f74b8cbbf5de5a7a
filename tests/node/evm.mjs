// Compiles Solidity contracts, deploys each on an EVM and calls its verifyProof. In (stdin): a list of {source, contract,
// calls}, a call being a list of 32-byte hex words. Out: a list of {bytes, results: [{ok, gas}]}.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createEVM } from "@ethereumjs/evm";

const solc = createRequire(import.meta.url)("solc");
const jobs = JSON.parse(readFileSync(0, "utf8"));
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const gasLimit = 30_000_000n;

const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources: Object.fromEntries(jobs.map(({ source }, i) => [`${i}.sol`, { content: source }])),
      settings: {
        optimizer: { enabled: true, runs: 200 },
        outputSelection: { "*": { "*": ["evm.bytecode.object", "evm.methodIdentifiers"] } },
      },
    }),
  ),
);
if (output.errors) throw new Error(output.errors.map((e) => e.formattedMessage).join("\n"));

const evm = await createEVM();

async function run(message) {
  const { createdAddress, execResult } = await evm.runCall({ ...message, gasLimit });
  if (execResult.exceptionError) throw new Error(execResult.exceptionError.error);
  return { createdAddress, value: Buffer.from(execResult.returnValue), gas: Number(execResult.executionGasUsed) };
}

const answers = [];
for (const [i, { contract, calls }] of jobs.entries()) {
  const { bytecode, methodIdentifiers } = output.contracts[`${i}.sol`][contract].evm;
  const { createdAddress: to, value: code } = await run({ data: bytes(bytecode.object) });
  const [selector] = Object.values(methodIdentifiers);
  const results = [];
  for (const words of calls) {
    const { value, gas } = await run({ to, data: bytes(selector + words.join("")) });
    results.push({ ok: BigInt("0x" + value.toString("hex")) === 1n, gas });
  }
  answers.push({ bytes: code.length, results });
}
console.log(JSON.stringify(answers));
