import type { Json } from "../../src/core/json.js";

/** Options without which a method cannot run on digits, answered at once: for tests that run every method (laws, replay). */
export const onDigits: { readonly [method: string]: { readonly [option: string]: Json } } = {
  "om-grpo": { judge_prompt: "{problem}{first}{second}", judge_choices: ["0", "1"] },
  "oc-grpo": { hard_samples: 0, continue_prompt: "{problem}{guidance}", verify_prompt: "{problem}{guidance}" },
};
