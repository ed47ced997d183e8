/** A reward of one's own that takes its time where the answer says so. */
import type { Reward } from "../../src/verify/reward/module.js";

const reward: Reward = async (_, response) => {
  if (response.endsWith("slow")) await new Promise((resolve) => setTimeout(resolve, 100));
  return 1;
};

export default reward;
