import type { Json } from "../../src/core/json.js";

/** Options without which a method cannot run on digits, answered at once: for tests that run every method (laws, replay). */
export const onDigits: { readonly [method: string]: { readonly [option: string]: Json } } = {
  "om-grpo": { judge_prompt: "{problem}{first}{second}", judge_choices: ["0", "1"] },
  "oc-grpo": { hard_samples: 0, continue_prompt: "{problem}{guidance}", verify_prompt: "{problem}{guidance}" },
  cscr: { right_prompt: "{problem}1", wrong_prompt: "{problem}0", kappa: 0 },
  h2sd: { rephrase_prompt: "{problem}{response}", hint_prompt: "{problem}{solution}" },
};
