import { defineTask } from "touchstone-rl";

export default defineTask({ name: "mine", rows: () => [{ prompt: "1+1=", answer: "2" }, { promt: "1+2=", answer: "3" }, { prompt: 7, answer: "3" }, { prompt: "1+3=", answer: Number.NaN }], verify: () => true });
