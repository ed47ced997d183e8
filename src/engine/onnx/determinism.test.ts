import { determinism, shapes } from "./test-determinism.js";

const repeats = { alone: 8, pairs: 16, sevens: 28, many: 64, scored: 40 };

for (const width of [48, 60, 128, 576] as const) determinism({ shape: shapes[width], threads: 1, repeats });
