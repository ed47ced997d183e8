/** What the doctor can say of a machine without computing anything. */
import { readFileSync } from "node:fs";
import { arch, availableParallelism, cpus, platform, release, totalmem } from "node:os";
import { packageVersion } from "../../core/version.js";
import { availableMemory } from "../../engine/onnx/memory.js";
import { runtimeVersion } from "../../engine/onnx/runtime.js";

export interface Machine {
  readonly versions: { readonly touchstone: string; readonly node: string; readonly onnxruntime: string };
  /** `linux x64 6.1.0`. */
  readonly system: string;
  readonly processor: string;
  /** Vector instructions that matter to matrix products; empty where the system does not tell. */
  readonly vectors: readonly string[];
  /** Cores that this process may run on. */
  readonly cores: number;
  /** Cores' worth of time that a control group grants, where it grants less. */
  readonly quota: number | null;
  readonly memory: {
    /** Of the machine, or of the control group where that has less. Bytes. */
    readonly total: number;
    readonly available: number;
    /** Whether a control group limits it. */
    readonly limited: boolean;
  };
}

const told = ["avx2", "fma", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "asimd", "sve", "bf16"];

export function inspectMachine(): Machine {
  const total = totalmem();
  // 0 or a number beyond all memory where there is no limit.
  const limit = process.constrainedMemory();
  const limited = limit > 0 && limit < total;
  const cores = availableParallelism();
  const quota = cpuQuota([text("/sys/fs/cgroup/cpu.max"), text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), text("/sys/fs/cgroup/cpu/cpu.cfs_period_us")]);
  return {
    versions: { touchstone: packageVersion(), node: process.version.slice(1), onnxruntime: runtimeVersion },
    system: `${platform()} ${arch()} ${release()}`,
    processor: cpus()[0]?.model.trim() ?? "unknown",
    vectors: vectorsOf(text("/proc/cpuinfo")),
    cores,
    quota: quota !== null && quota < cores ? quota : null,
    memory: { total: limited ? limit : total, available: availableMemory(), limited },
  };
}

function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return ""; // not Linux, or not that kind of control group
  }
}

/** The vector instructions in the text of /proc/cpuinfo. */
export function vectorsOf(cpuinfo: string): string[] {
  const flags = new Set(/^(?:flags|Features)\s*:(.*)$/m.exec(cpuinfo)?.[1].split(/\s+/));
  return told.filter((flag) => flags.has(flag));
}

/** Cores' worth of time from cpu.max (control groups v2), or quota and period (v1); null without a limit. */
export function cpuQuota([max, quota, period]: readonly [string, string, string]): number | null {
  const [, granted, each] = /^(\d+) (\d+)/.exec(max) ?? /^(\d+) (\d+)/.exec(`${quota.trim()} ${period.trim()}`) ?? [];
  return granted === undefined ? null : Number(granted) / Number(each);
}
