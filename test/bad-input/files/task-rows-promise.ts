import { defineTask } from "touchstone-rl";

export default defineTask({ name: "mine", rows: async () => [], verify: () => true });
