#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command } from "commander";

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };

const program = new Command("touchstone").description("Trains language-model policies by reinforcement learning with verifiable rewards").version(version);

await program.parseAsync();
