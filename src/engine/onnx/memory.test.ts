import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { freemem, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { MemoryError } from "../../core/errors.js";
import { parseModelConfig } from "./config.js";
import { availableMemory, estimateMemory, refuseUnlessFits, rowsThatFit } from "./memory.js";

const config = parseModelConfig(
  {
    architectures: ["LlamaForCausalLM"],
    vocab_size: 49152,
    hidden_size: 576,
    intermediate_size: 1536,
    num_hidden_layers: 30,
    num_attention_heads: 9,
    num_key_value_heads: 3,
    max_position_embeddings: 8192,
    tie_word_embeddings: true,
  },
  "test",
);
const model = 4 * 134_515_008;
const train = { kind: "train", slots: 1024, length: 256 } as const;

describe("estimateMemory", () => {
  it("counts weights, gradients and two moments exactly: 2.15 GB at 134.5M", () => {
    const { parts, total } = estimateMemory(config, { ...train, activations: "recompute" });
    expect(parts).toMatchObject({ weights: model, gradients: model, moments: 2 * model });
    expect(total).toBe(Object.values(parts).reduce((sum, bytes) => sum + bytes, 0));
    expect(estimateMemory(config, { ...train, activations: "recompute", moments: 0 }).total).toBe(total - 2 * model);
    expect(estimateMemory(config, { kind: "load" }, { copies: 2 }).parts).toMatchObject({ weights: model, copies: 2 * model });
  });

  it("lies near what a training step of that size was measured to take: 3.5 GB", () => {
    const { total } = estimateMemory(config, { ...train, activations: "recompute" });
    expect(total).toBeGreaterThan(3.0e9);
    expect(total).toBeLessThan(4.0e9);
  });

  it("asks for more when activations are kept, and less for the head when its rows are fewer", () => {
    const [kept, not] = (["keep", "recompute"] as const).map((activations) => estimateMemory(config, { ...train, activations }));
    // Per token and layer: q, its mixture, k and v, a residual, gate and up.
    expect(kept.total - not.total).toBe(4 * 1024 * 30 * (2 * 576 + 2 * 192 + 576 + 2 * 1536));
    const narrow = estimateMemory(config, { ...train, activations: "keep" }, { headRows: 64 });
    expect(kept.parts.head - narrow.parts.head).toBe(4 * 5 * 49152 * (Math.floor(25e6 / 49152) - 64));
  });

  it("counts the cache of sampling: 46,080 bytes a token, a quarter and 16 more places than needed, and the copy while it grows", () => {
    const { parts } = estimateMemory(config, { kind: "sample", sequences: 32, length: 1000 });
    expect(parts.cache).toBeCloseTo(1.8 * 32 * 1266 * 46_080, 3);
  });

  it("grows with every size of the work", () => {
    const total = (slots: number, length: number) => estimateMemory(config, { kind: "score", slots, length }).total;
    expect(total(2048, 256)).toBeGreaterThan(total(1024, 256));
    expect(total(1024, 512)).toBeGreaterThan(total(1024, 256));
  });
});

describe("refuseUnlessFits", () => {
  const estimate = estimateMemory(config, { ...train, activations: "recompute" });

  it("lets pass what fits, to the byte", () => {
    expect(() => refuseUnlessFits(estimate, estimate.total, "training")).not.toThrow();
    expect(() => refuseUnlessFits(estimate, estimate.total - 1, "training")).toThrow(MemoryError);
  });

  it("gives the figures, largest first", () => {
    const message =
      /^training policy: it needs about 3\.\d\d GB \(moments 1\.08 GB, head 0\.\d+ GB, weights 0\.538 GB, .*\) and 2\.00 GB are available; take a smaller/;
    expect(() => refuseUnlessFits(estimate, 2e9, "training policy")).toThrow(message);
    try {
      refuseUnlessFits(estimate, 2e9, "training policy");
    } catch (error) {
      expect((error as MemoryError).data).toMatchObject({ needed: estimate.total, available: 2e9, parts: { weights: model } });
    }
  });
});

describe("availableMemory", () => {
  const root = mkdtempSync(join(tmpdir(), "memory-"));
  afterEach(() => rmSync(root, { recursive: true, force: true }));
  const system = (files: { readonly [path: string]: string }): number => {
    for (const [path, text] of Object.entries({ "proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n", ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return availableMemory(root);
  };
  const all = 8000 * 1024;

  it("is what the system has available where no group limits it", () => {
    expect(system({})).toBe(all);
    expect(system({ "proc/self/cgroup": "0::/user\n", "sys/fs/cgroup/user/memory.max": "max\n" })).toBe(all);
  });

  it("is what a group of version 2 leaves; file pages that can be dropped do not count", () => {
    const group = { "memory.max": "5000000\n", "memory.current": "3000000\n", "memory.stat": "anon 1\ninactive_file 1000000\n" };
    const files = Object.fromEntries(Object.entries(group).map(([name, text]) => [`sys/fs/cgroup/a/${name}`, text]));
    expect(system({ "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max", ...files })).toBe(3_000_000);
  });

  it("is what a group of version 1 leaves, also seen from inside of a container", () => {
    const group = { "memory.limit_in_bytes": "4000000\n", "memory.usage_in_bytes": "1500000\n", "memory.stat": "total_inactive_file 500000\n" };
    const files = Object.fromEntries(Object.entries(group).map(([name, text]) => [`sys/fs/cgroup/memory/${name}`, text]));
    expect(system({ "proc/self/cgroup": "5:cpu,memory:/docker/0123\n0::/\n", ...files })).toBe(3_000_000);
  });

  it("is never negative", () => {
    expect(system({ "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "10", "sys/fs/cgroup/memory.current": "50" })).toBe(0);
  });

  it("of this machine lies between 0 and what it has", () => {
    expect(availableMemory()).toBeGreaterThan(0);
    expect(availableMemory()).toBeLessThanOrEqual(totalmem());
    expect(availableMemory(join(root, "nowhere"))).toBeLessThanOrEqual(Math.max(freemem() * 1.5, totalmem()));
  });
});

describe("an adapter", () => {
  // Of rank 16 on all products of a layer: 16 (in + out) numbers each.
  const rank = 16;
  const adapter = 4 * 30 * rank * (2 * (576 + 576) + 2 * (576 + 192) + 3 * (576 + 1536));

  it("alone has gradient and moments, and the table none", () => {
    const work = { ...train, activations: "recompute" } as const;
    const [full, lora] = [estimateMemory(config, work), estimateMemory(config, work, { adapter: { rank, targets: "all-linear" } })];
    expect(lora.parts).toMatchObject({ weights: model, adapter, gradients: adapter, moments: 2 * adapter });
    expect(full.parts.head - lora.parts.head).toBe(4 * 49152 * 576);
    const held = { adapter: { rank, targets: "all-linear" as const }, adapterCopies: 2 };
    expect(estimateMemory(config, { kind: "load" }, held).parts.adapter).toBe(3 * adapter);
  });

  it("is what is told where full training does not fit and it does", () => {
    const work = { ...train, activations: "recompute" } as const;
    const estimate = estimateMemory(config, work);
    const lora = estimateMemory(config, work, { adapter: { rank, targets: ["q_proj"] } });
    const alternatives = () => [
      { what: "--lora 16", estimate: lora },
      { what: "nothing", estimate },
    ];
    expect(() => refuseUnlessFits(estimate, lora.total, "this run", alternatives)).toThrow(/are available; take --lora 16, which needs about 1\.\d\d GB$/);
    expect(() => refuseUnlessFits(estimate, 1e9, "this run", alternatives)).toThrow(/; take a smaller model/);
  });
});

describe("rowsThatFit", () => {
  it("are all, or half as many until they fit, and never less than a step decodes", () => {
    const work = { kind: "sample", sequences: 256, length: 1000 } as const;
    const total = (sequences: number) => estimateMemory(config, { ...work, sequences }).total;
    expect(rowsThatFit(config, work, {}, total(256))).toBe(256);
    expect(rowsThatFit(config, work, {}, total(256) - 1)).toBe(128);
    expect(rowsThatFit(config, work, {}, total(16) + 1)).toBe(16);
    expect(rowsThatFit(config, work, {}, 0)).toBe(2);
  });
});
