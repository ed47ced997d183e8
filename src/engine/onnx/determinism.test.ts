import { determinism, shapes } from "./test-determinism.js";

const repeats = { alone: 8, pairs: 16, sevens: 28, many: 64, scored: 40 };

for (const name of [48, 60, 128, 576, "qwen2", "qwen3"] as const) determinism({ shape: shapes[name], threads: 1, repeats });
determinism({ shape: shapes[48], threads: 1, rank: 4, repeats });
