/** Ids of tokens whose texts alone are known: only where there can be no doubt. */
import type { LocalModel } from "./settings.js";
import type { Drawn } from "./wire.js";

export type LocalVocabulary = LocalModel["tokenizer"];

/** The ids of a response, where the tokenizer makes of its text exactly the tokens that the server names; undefined else. */
export function exactIds({ texts }: Pick<Drawn, "texts">, tokenizer: LocalVocabulary): Int32Array | undefined {
  let ids: Int32Array;
  try {
    // Special tokens come by their names; what only looks like one is several tokens, which are counted.
    ids = tokenizer.raw(texts.join(""));
  } catch {
    return undefined; // A text that the tokenizer cannot write.
  }
  // A text begins with a token of its own, which a response does not.
  if (ids.length === texts.length + 1 && ids[0] === tokenizer.bosId) ids = ids.slice(1);
  if (ids.length !== texts.length) return undefined;
  return ids.every((id, t) => tokenizer.decode([id], "show") === texts[t]) ? ids : undefined;
}
