import { TinkerEngine } from "./engine.js";
import { ServerLink, type TinkerOptions } from "./link.js";

/**
 * An engine on a server of the Tinker protocol. Asks the server what it does before anything else, which takes seconds
 * where it compiles. Throws ConfigError for addresses and bases that cannot be meant, EngineError where the server fails.
 */
export async function connectTinker(options: TinkerOptions): Promise<TinkerEngine> {
  return new TinkerEngine(await ServerLink.open(options));
}
