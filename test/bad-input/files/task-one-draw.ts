import { defineTask } from "touchstone-rl";

export default defineTask({ name: "mine", draw: () => ({ prompt: "1+1=", answer: "2" }), verify: () => true });
