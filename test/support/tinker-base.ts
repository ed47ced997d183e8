/** The folder of the base that the test server has: nothing but its sizes, as for any model whose weights are on a server. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vocabulary } from "./tinker-model.js";

export function baseFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "tinker-base-"));
  const config = { vocab_size: vocabulary, max_position_embeddings: 64, hidden_size: 16, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 32 };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  return folder;
}
