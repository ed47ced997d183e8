/** The command line as a commander program. What the caller typed wrong is one ConfigError, like any other wrong option. */
import { Command, CommanderError } from "commander";
import { ConfigError } from "../core/errors.js";
import { nearestName } from "../core/options.js";
import { packageVersion } from "../core/version.js";
import { type CommandEntry, commands } from "./commands.js";
import { colours } from "./output.js";

/** Runs the command line `args` (without node and script). Throws ConfigError for a wrong usage, and what the command throws. */
export async function runProgram(args: readonly string[], entries: readonly CommandEntry[] = commands): Promise<void> {
  const program = new Command("touchstone")
    .description("Trains language-model policies by reinforcement learning with verifiable rewards.")
    .version(packageVersion())
    .usage("COMMAND [options]")
    .configureHelp({ styleTitle: (title) => colours(process.stdout).bold(title) })
    .configureOutput({ writeErr: () => undefined })
    .addHelpText("after", "\n`touchstone COMMAND --help` says what a command takes, with an example.");
  refuseClearly(program, args);
  // The first two words that are no options: `doctor`, or `help doctor`.
  const words = args.filter((arg) => !arg.startsWith("-")).slice(0, 2);
  for (const { name, summary, load } of entries) {
    const command = program.command(name).description(summary).usage("[options]");
    refuseClearly(command, args);
    if (words.includes(name)) (await load()).define(command);
  }
  try {
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    // Help and version, printed because they were asked for.
    if (!(error instanceof CommanderError && error.exitCode === 0)) throw error;
  }
}

function refuseClearly(command: Command, args: readonly string[]): void {
  command.exitOverride((error) => {
    if (error.exitCode === 0) throw error;
    const path = command.parent ? `${command.parent.name()} ${command.name()}` : command.name();
    throw new ConfigError({ place: path, ...fault(error, command, path, args) });
  });
}

function fault(error: CommanderError, command: Command, path: string, args: readonly string[]): { cause: string; mend: string } {
  const typed = /'([^']*)'/.exec(error.message)?.[1] ?? "";
  const options = [...command.options.filter(({ hidden }) => !hidden).map(({ long, short }) => long ?? short ?? ""), "--help"];
  // A misspelt option is the likely cause of a missing one, so it is told first.
  const misspelt = error.code === "commander.missingMandatoryOptionValue" ? args.find((arg) => /^--./.test(arg) && !options.includes(bare(arg))) : undefined;
  if (error.code === "commander.unknownOption" || misspelt !== undefined) {
    const name = bare(misspelt ?? typed);
    return { cause: `there is no option ${name}`, mend: offer(name, options) };
  }
  if (error.code === "commander.unknownCommand") {
    return {
      cause: `there is no command ${typed}`,
      mend: offer(
        typed,
        command.commands.map((other) => other.name()),
      ),
    };
  }
  if (error.code === "commander.help")
    return { cause: "no command was given", mend: `give one of ${command.commands.map((other) => other.name()).join(", ")}, or --help` };
  const [line] = error.message.replace(/^error: /, "").split("\n") as [string];
  return { cause: line.replace(/\.$/, "").replace(/\. (\w)/g, (_, letter: string) => `: ${letter.toLowerCase()}`), mend: `see ${path} --help` };
}

/** `--rate` of `--rate=1`. */
const bare = (arg: string): string => arg.split("=")[0] as string;

function offer(name: string, valid: readonly string[]): string {
  const word = (text: string): string => text.replace(/^--?/, "");
  const near = nearestName(word(name), valid.map(word));
  return near === undefined ? `valid here: ${valid.join(", ")}` : `did you mean ${valid.find((other) => word(other) === near)}?`;
}
