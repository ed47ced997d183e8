import { defineTask } from "touchstone-rl";

const rows = ["1", "2", "3", "4"].map((prompt) => ({ prompt, answer: prompt, split: "train" as const }));
export default defineTask({ name: "mine", rows, verify: ({ response, reference }) => (/\d/.exec(response) as RegExpExecArray)[0] === reference });
