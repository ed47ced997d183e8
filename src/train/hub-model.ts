/** Models of a hub by their id: listed and fetched once, checked against the sizes and hashes that the hub says, and kept in the cache. */
import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { mkdir, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { downloadFile, type ListFileEntry, listFiles, modelInfo } from "@huggingface/hub";
import { cacheFolder } from "../core/cache.js";
import { ModelError } from "../core/errors.js";

/** Between two words about how far a file is. */
const sayMs = 2000;

export interface HubId {
  /** `ORGANISATION/NAME`. */
  readonly name: string;
  /** Branch, tag or commit; default main. */
  readonly revision: string;
  /** A GGUF file of the model in place of its safetensors. */
  readonly file?: string;
}

/** What a model is fetched for: its weights, its configuration and its tokenizer. */
const wanted = /^(config|adapter_config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens)\.json$|^chat_template\.jinja$|^LICENSE/;
const weights = /^((?:adapter_)?model.*\.safetensors|model\.safetensors\.index\.json)$/;

/** `ORGANISATION/NAME`, with `@REVISION`, or with `/FILE.gguf`; undefined for any other text. */
export function hubId(text: string): HubId | undefined {
  const [, name, file, revision = "main"] = /^([\w.-]+\/[\w.-]+?)(?:\/([\w./-]+\.gguf))?(?:@([\w./-]+))?$/.exec(text) ?? [];
  if (name === undefined || /^\.{1,2}\//.test(name)) return undefined;
  return { name, revision, ...(file === undefined ? {} : { file }) };
}

export interface FetchOptions {
  /** Default: HF_ENDPOINT, else the public hub. */
  readonly endpoint?: string;
  /** Default: HF_TOKEN. */
  readonly token?: string;
  /** Default: `hub` in the cache folder. */
  readonly cache?: string;
  /** Whether its weights are wanted too, and not its configuration and tokenizer alone. Default true. */
  readonly weights?: boolean;
  /** What is awaited, with how far it is. */
  readonly onProgress?: (text: string) => void;
}

/**
 * The folder of a model, or the path of the file asked for. What was fetched before is not asked for again where the hub
 * cannot be reached. Throws ModelError for what is not there, may not be had, or arrives damaged.
 */
export async function fetchModel(id: HubId, options: FetchOptions = {}): Promise<string> {
  const { endpoint = process.env.HF_ENDPOINT, token = process.env.HF_TOKEN, cache = join(cacheFolder(), "hub"), onProgress = () => undefined } = options;
  const place = `model ${id.name}`;
  const folder = join(cache, id.name.replace("/", "--"));
  const access = { ...(endpoint ? { hubUrl: endpoint.replace(/\/$/, "") } : {}), ...(token ? { accessToken: token } : {}) };
  const pointer = join(folder, `revision-${encodeURIComponent(id.revision)}`);
  onProgress(`the hub about ${id.name}`);
  let commit: string;
  try {
    commit = (await modelInfo({ name: id.name, revision: id.revision, additionalFields: ["sha"], ...access })).sha;
  } catch (error) {
    const kept = await readFile(pointer, "utf8").catch(() => undefined);
    if (kept !== undefined && statusOf(error) === undefined) return target(join(folder, kept), id);
    throw refused(place, id, error, endpoint);
  }
  const into = join(folder, commit);
  const kind = options.weights === false ? noWeights : mark(id);
  if (!isThere(into, kind) && !isThere(into, mark(id))) {
    try {
      const files = await filesOf(id, commit, access, place);
      await fetchAll(kind === noWeights ? files.filter(({ path }) => !weights.test(path)) : files, { id, commit, kind, into, access, place, onProgress });
    } catch (error) {
      throw error instanceof ModelError ? error : refused(place, id, error, endpoint);
    }
  }
  await writeFile(pointer, commit);
  return target(into, id);
}

const target = (folder: string, { file }: HubId): string => (file === undefined ? folder : join(folder, file));
/** Written when all files of a kind are there. */
const mark = ({ file }: HubId): string => (file === undefined ? ".whole" : `.whole-${encodeURIComponent(file)}`);
const noWeights = ".whole-but-weights";
const isThere = (folder: string, kind: string): boolean => existsSync(join(folder, kind));

type Access = { readonly hubUrl?: string; readonly accessToken?: string };

async function filesOf({ name, file }: HubId, revision: string, access: Access, place: string): Promise<ListFileEntry[]> {
  const listed: ListFileEntry[] = [];
  for await (const entry of listFiles({ repo: { type: "model", name }, revision, recursive: file !== undefined, ...access }))
    if (entry.type === "file") listed.push(entry);
  const refuse = (cause: string, mend: string): never => {
    throw new ModelError({ place, cause, mend });
  };
  const ggufs = listed.flatMap(({ path }) => (path.endsWith(".gguf") ? [path] : []));
  if (file !== undefined) {
    const found = listed.filter(({ path }) => path === file);
    return found.length > 0 ? found : refuse(`it has no file ${file}`, ggufs.length > 0 ? `name one of ${ggufs.join(", ")}` : "name the model alone");
  }
  const found = listed.filter(({ path }) => wanted.test(path) || weights.test(path));
  if (found.some(({ path }) => weights.test(path))) return found;
  if (ggufs.length > 0) return refuse("it has GGUF files alone", `name one of them: ${name}/${ggufs[0]}`);
  const pickled = listed.find(({ path }) => /\.(bin|pt|pth)$/.test(path))?.path;
  return refuse(pickled ? `its weights are in ${pickled}, which only Python can read` : "it has no weights", "name a model that has safetensors");
}

interface Fetching {
  readonly id: HubId;
  readonly commit: string;
  /** Name of the mark that all of it is there. */
  readonly kind: string;
  readonly into: string;
  readonly access: Access;
  readonly place: string;
  readonly onProgress: (text: string) => void;
}

async function fetchAll(files: readonly ListFileEntry[], { id, commit, kind, into, access, place, onProgress }: Fetching): Promise<void> {
  const total = files.reduce((sum, { size }) => sum + size, 0);
  let before = 0;
  await mkdir(into, { recursive: true });
  for (const { path, size, lfs } of files) {
    const to = join(into, path);
    if (!existsSync(to) || statSync(to).size !== size) {
      const blob = await downloadFile({ repo: { type: "model", name: id.name }, path, revision: commit, ...access });
      if (blob === null) throw new ModelError({ place, cause: `its file ${path} is listed and cannot be fetched`, mend: "try again" });
      await mkdir(dirname(to), { recursive: true });
      let said = Number.NEGATIVE_INFINITY;
      const saying = (done: number): void => {
        if (performance.now() - said < sayMs) return;
        said = performance.now();
        onProgress(`${path} of ${id.name}: ${megabytes(before + done)} of ${megabytes(total)}`);
      };
      await save(blob, to, { size, ...(lfs ? { sha256: lfs.oid } : {}) }, `${place}, ${path}`, saying);
    }
    before += size;
  }
  await writeFile(join(into, kind), "");
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

/** Writes beside and renames, so that a file under its name is whole. */
async function save(
  blob: Blob,
  to: string,
  expected: { readonly size: number; readonly sha256?: string },
  place: string,
  saying: (done: number) => void,
): Promise<void> {
  const beside = `${to}.${process.pid}.part`;
  const hash = createHash("sha256");
  let done = 0;
  try {
    const file = await open(beside, "w");
    try {
      for await (const piece of blob.stream() as unknown as AsyncIterable<Uint8Array>) {
        await file.writeFile(piece);
        hash.update(piece);
        done += piece.length;
        saying(done);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    const cause = done !== expected.size ? `${done} of ${expected.size} bytes arrived` : "it arrived damaged: its sha256 is not the hub's";
    if (done !== expected.size || (expected.sha256 !== undefined && hash.digest("hex") !== expected.sha256)) {
      throw new ModelError({ place, cause, mend: "try again" });
    }
    await rename(beside, to);
  } finally {
    await rm(beside, { force: true });
  }
}

const statusOf = (error: unknown): number | undefined => (error as { readonly statusCode?: number } | undefined)?.statusCode;

function refused(place: string, { name, revision }: HubId, error: unknown, endpoint: string | undefined): ModelError {
  const status = statusOf(error);
  const [cause, mend] =
    status === 401 || status === 403
      ? [`the hub refuses it (${status})`, "set HF_TOKEN to a token that may read it, and accept the model's terms on its page"]
      : status === 404
        ? [`the hub has no such model, or no revision ${revision}`, "check the id: ORGANISATION/NAME, with @REVISION for another than main"]
        : [
            `the hub${endpoint ? ` at ${endpoint}` : ""} cannot be reached (${error instanceof Error ? whole(error) : String(error)})`,
            `give the model's folder, or try again where the hub can be reached: ${name} was not fetched before`,
          ];
  return new ModelError({ place, cause, mend }, { cause: error });
}

/** A failed fetch says why in its cause. */
function whole(error: Error): string {
  const { cause } = error;
  return cause instanceof Error && cause.message !== "" ? `${error.message}: ${cause.message}` : error.message;
}
