import { determinism, shapes } from "./test-determinism.js";

const repeats = { alone: 40, pairs: 80, sevens: 98, many: 200, scored: 200 };

for (const name of [48, 60, 128, 576, "qwen2", "qwen3"] as const) determinism({ shape: shapes[name], threads: 1, repeats });
determinism({ shape: shapes[576], threads: 2, repeats });
determinism({ shape: shapes[576], threads: 2, rank: 40, repeats: { ...repeats, scored: 40 } });
