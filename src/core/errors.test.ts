import { describe, expect, it } from "vitest";
import * as errors from "./errors.js";

const parts = { place: "run.yaml, option rate", cause: "got -1", mend: "give a number above 0", data: { option: "rate", got: -1 } };
const { errorFromJson, errorToJson, TouchstoneError } = errors;
const classes = Object.values(errors).filter((value): value is typeof TouchstoneError => typeof value === "function" && /^class/.test(String(value)));

describe("an error of ours", () => {
  it("is one sentence of place, cause and mend, and carries data", () => {
    const error = new errors.ConfigError(parts);
    expect(error.message).toBe("run.yaml, option rate: got -1; give a number above 0");
    expect(error).toMatchObject({ name: "ConfigError", code: "config", place: parts.place, mend: parts.mend, data: parts.data });
  });

  it("keeps its class, sentence and data across a JSON border, whatever its class", () => {
    expect(classes.length).toBeGreaterThanOrEqual(10);
    expect(new Set(classes.map((Class) => new Class(parts).code)).size).toBe(classes.length);
    for (const Class of classes) {
      const sent = new Class(parts);
      const back = errorFromJson(JSON.parse(JSON.stringify(errorToJson(sent))));
      expect(back).toBeInstanceOf(Class);
      expect(back.name).toBe(Class.name);
      expect([back.code, back.message, back.place, back.mend, back.data]).toEqual([sent.code, sent.message, sent.place, sent.mend, sent.data]);
      expect(errorToJson(back)).toEqual(errorToJson(sent));
    }
  });

  it("prints the sent sentence when it is not caught on the other side", () => {
    const back = errorFromJson(errorToJson(new errors.ModelError({ ...parts, cause: "costs $& and $1" })));
    expect(back.stack?.split("\n")[0]).toBe("ModelError: run.yaml, option rate: costs $& and $1; give a number above 0");
  });

  it("takes foreign errors, thrown values and unknown codes, and always gives an error", () => {
    expect(errorFromJson(errorToJson(new TypeError("x is not a function"))).message).toBe("x is not a function");
    expect(errorFromJson(errorToJson("just text")).message).toBe("just text");
    for (const code of ["no-such-code", "constructor", "__proto__", "toString"]) {
      const back = errorFromJson({ code, message: "m", place: "p", mend: "d", data: {} });
      expect(back).toBeInstanceOf(TouchstoneError);
      expect(back).toBeInstanceOf(Error);
      expect(back.message).toBe("m");
    }
    expect(errorFromJson({}).message).toBe("");
  });
});
