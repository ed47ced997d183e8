import { defineTask } from "touchstone-rl";

export default defineTask({ name: "mine", rows: () => [{ prompt: "1+1=", answer: "2" }] });
