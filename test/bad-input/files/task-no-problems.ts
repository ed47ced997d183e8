import { defineTask } from "touchstone-rl";

export default defineTask({ name: "mine", verify: () => true });
