/** What `touchstone methods` lists: the sixty papers, built or not, and the families; each with slots, needs, engines and what its demonstration showed. */
import { readFileSync } from "node:fs";
import type { Capability, EngineInfo } from "../engine/contract.js";
import { type AnyMethod, inOrder, type MethodFolder, methodFolders, methodOf, paperId, withDefaults } from "../methods/catalogue.js";
import type { Method, Need } from "../methods/contract.js";
import { capabilitiesOf, type Paper, papers } from "../methods/papers.js";
import { type FoundDemonstration, loadDemonstration } from "./find.js";
import type { Outcome } from "./judge.js";
import { type ReproductionRecord, recordOf } from "./record.js";

/** One that is built. */
export interface BuiltMethod {
  readonly folder: MethodFolder;
  /** Absent of an audit, which is a demonstration alone. */
  readonly method?: AnyMethod;
  readonly demonstration?: FoundDemonstration;
}

export interface Listed {
  /** P06; null of a family and of a method of one's own. */
  readonly paper: string | null;
  readonly name: string;
  readonly title: string;
  /** The name that `--method` takes; null: not built, or a demonstration alone. */
  readonly method: string | null;
  readonly built: boolean;
  /** Slots that it fills, in the order of a step, and where else its parts live. */
  readonly slots: readonly string[];
  readonly also: readonly string[];
  readonly needs: readonly string[];
  /** Engines that can do what it needs. */
  readonly engines: readonly string[];
  /** What the recorded run of its demonstration showed; null: there is no record. */
  readonly demonstration: Outcome | null;
  readonly record?: Pick<ReproductionRecord, "date" | "commit">;
}

type Engines = readonly Pick<EngineInfo, "name" | "has">[];

/** The methods and demonstrations in the folders: those that come with Touchstone, and those of a folder of one's own. */
export async function builtMethods(own?: string): Promise<BuiltMethod[]> {
  const folders = [...methodFolders(), ...(own === undefined ? [] : methodFolders(own))];
  return Promise.all(
    folders.map(async (folder) => {
      const { module, demonstration } = folder;
      return {
        folder,
        ...(module === undefined ? {} : { method: await methodOf({ ...folder, module }) }),
        ...(demonstration === undefined ? {} : { demonstration: await loadDemonstration(demonstration) }),
      };
    }),
  );
}

/** Papers in order of their numbers, and the other methods in the order of the documentation. */
export function listing(built: readonly BuiltMethod[], engines: Engines): { readonly papers: readonly Listed[]; readonly families: readonly Listed[] } {
  const known = new Set(papers.map(({ paper }) => paper));
  const paperOf = ({ method, demonstration }: BuiltMethod): string | undefined => paperId(method?.paper ?? demonstration?.demonstration.paper ?? "");
  const listed = papers.map((paper) => {
    const found = built.find((each) => paperOf(each) === paper.paper);
    return found ? entryOf(found, engines, paper) : unbuilt(paper, engines);
  });
  const others = built.filter((each) => !known.has(paperOf(each) ?? ""));
  const ordered = inOrder(others.flatMap(({ method }) => method ?? []));
  return { papers: listed, families: ordered.map((method) => entryOf(others.find((each) => each.method === method) as BuiltMethod, engines)) };
}

function unbuilt(paper: Paper, engines: Engines): Listed {
  const { paper: id, name, title, slots, also = [], needs } = paper;
  const wanted = capabilitiesOf(paper);
  return { paper: id, name, title, method: null, built: false, slots, also, needs, engines: able(engines, [[wanted]]), demonstration: null };
}

function entryOf(built: BuiltMethod, engines: Engines, paper?: Paper): Listed {
  const { method, demonstration } = built;
  const made = method && withDefaults(method);
  const record = demonstration && recordOf(demonstration.id);
  return {
    paper: paper?.paper ?? null,
    name: paper?.name ?? built.folder.name,
    title: paper?.title ?? titleOf(method?.paper ?? ""),
    method: method?.name ?? null,
    built: true,
    slots: made ? Object.keys(made.slots) : (paper?.slots ?? []),
    also: paper?.also ?? [],
    needs: made ? needsOf(made) : (paper?.needs ?? []),
    engines: able(
      engines,
      made ? (made.needs ?? []).map(({ oneOf }) => oneOf.map(({ capabilities = [] }) => capabilities)) : [[paper ? capabilitiesOf(paper) : []]],
    ),
    demonstration: record?.outcome ?? null,
    ...(record && { record: { date: record.date, commit: record.commit } }),
  };
}

/** Of "Yu et al. 2025, DAPO, arXiv 2503.14476" the middle. */
const titleOf = (paper: string): string => paper.split(", ").slice(1, -1).join(", ") || paper;

/** Engines that can go some way of every need. */
function able(engines: Engines, needs: readonly (readonly (readonly Capability[])[])[]): string[] {
  return engines.filter(({ has }) => needs.every((ways) => ways.some((way) => way.every((each) => has.has(each))))).map(({ name }) => name);
}

/** The needs of a method beyond an engine that trains, in words. */
export function needsOf({ needs = [] }: Method): string[] {
  const plain = (way: Need["oneOf"][number]): string =>
    [...(way.roles ?? []).map((role) => `role ${role}`), ...(way.capabilities ?? []).filter((each) => !usual.includes(each))].join(" and ");
  return needs.map(({ oneOf }) => oneOf.map(plain).filter(Boolean).join(" or ")).filter(Boolean);
}

/** What every training run asks for. */
const usual: readonly Capability[] = ["sample", "train"];

/** Built ones by what a user may call them: `P06`, `hispo`. */
export function findBuilt(built: readonly BuiltMethod[], name: string): BuiltMethod | undefined {
  const id = name.toUpperCase();
  return built.find(({ folder, method, demonstration }) => folder.name === name || paperId(method?.paper ?? demonstration?.demonstration.paper ?? "") === id);
}

/** The text above a method's code: formula, source and what is our choice. */
export function headerOf({ module, demonstration }: MethodFolder): string {
  const text = readFileSync(module ?? (demonstration as string), "utf8");
  const [, inside = ""] = /^\s*\/\*\*([\s\S]*?)\*\//.exec(text) ?? [];
  return inside
    .split("\n")
    .map((line) => line.replace(/^\s*\* ?/, "").trimEnd())
    .join("\n")
    .trim();
}
