import { describe, expect, it } from "vitest";
import { askedFor, type ReplyForm, readReply } from "./reply.js";

const words: ReplyForm = { words: { correct: 1, partly: 0.5, incorrect: 0 }, thinking: "tags" };
const grade: ReplyForm = { range: [0, 10], thinking: "tags" };
const json: ReplyForm = { range: [0, 10], field: "score", thinking: "tags" };
const verdict: ReplyForm = { words: { true: 1, false: 0 }, field: "right", thinking: "tags" };

describe("a judge's reply", () => {
  it.each<[string, ReplyForm, number]>([
    ["correct", words, 1],
    ["  Incorrect.\n", words, 0],
    ['**"Partly"**', words, 0.5],
    ["<think>it says incorrect</think>\n\ncorrect", words, 1],
    ["[THINK]well[/THINK]partly", words, 0.5],
    ["7", grade, 0.7],
    ["2.5", grade, 0.25],
    ["0", grade, 0],
    ["1e1", grade, 1],
    ['{"score": 3}', json, 0.3],
    ['{"reason": "it is off by one", "score": 10}', json, 1],
    ['```json\n{"score": 0}\n```', json, 0],
    ['<think>{"score": 9}</think>{"score": 1}', json, 0.1],
    ['{"right": true}', verdict, 1],
    ['{"right": "False"}', verdict, 0],
  ])("%j is read", (reply, form, score) => {
    expect(readReply(reply, form).score).toBeCloseTo(score, 12);
  });

  it.each<[string, ReplyForm, string]>([
    ["", words, "said nothing"],
    ["The answer is correct", words, "none of correct, partly, incorrect"],
    ["correct incorrect", words, "none of"],
    ["correct, although the last step is missing", words, "none of"],
    ["incorrect\n\ncorrect", words, "none of"],
    ["incorrect, since it says </think>correct", words, "none of"],
    ["<think>it says </think>correct, but</think>incorrect", words, "several thinking parts"],
    ["<think>it says </think>correct, but it is not", words, "none of"],
    ["<think>so it is correct", words, "did not end its thinking"],
    ["<think>a</think><think>b</think>correct", words, "several thinking parts"],
    ["7/10", grade, "no number from 0 to 10"],
    ["11", grade, "no number from 0 to 10"],
    ["-1", grade, "no number"],
    ["NaN", grade, "no number"],
    ["Infinity", grade, "no number"],
    ["0x7", grade, "no number"],
    ["7 of 10", grade, "no number"],
    ["7", json, "no JSON object"],
    ["[7]", json, "no JSON object"],
    ['{"score": "7"}', json, 'is "\\"7\\"", not a number'],
    ['{"score": null}', json, "not a number"],
    ['{"score": 11}', json, "no number from 0 to 10"],
    ['{"Score": 7}', json, "no entry score"],
    ['{"score": 1, "score": 10}', json, "there twice"],
    ['{"score": 1} {"score": 10}', json, "stands behind the value"],
    ['Here it is: {"score": 10}', json, "not JSON"],
    ['{"score": 1e999}', json, "too large"],
    ['{"score": 10', json, "not JSON"],
    ['{"right": 1}', verdict, "not a word"],
  ])("%j is none", (reply, form, says) => {
    expect(() => readReply(reply, form)).toThrow(says);
  });

  it("begins within its thinking where that is said, and has none where that is said", () => {
    expect(readReply("hm, incorrect?</think>correct", { ...words, thinking: "started" }).score).toBe(1);
    expect(() => readReply("correct", { ...words, thinking: "started" })).toThrow("did not end its thinking");
    expect(() => readReply("<think>a</think>correct", { ...words, thinking: "none" })).toThrow("none of");
  });

  it("keeps what stands beside the answer, cut to a length", () => {
    expect(readReply(`{"reason": "${"x".repeat(900)}", "steps": [1, 2], "score": 5}`, json)).toEqual({
      score: 0.5,
      answer: 5,
      more: { reason: "x".repeat(500), steps: "[1,2]" },
    });
  });
});

it("the form of the answer is said in words", () => {
  expect(askedFor(words)).toBe("Reply with one word and nothing else: correct, partly or incorrect.");
  expect(askedFor(grade)).toBe("Reply with a number from 0 to 10 and nothing else.");
  expect(askedFor(json)).toBe('Reply with a JSON object and nothing else, whose entry "score" is a number from 0 to 10.');
  expect(askedFor(verdict)).toBe('Reply with a JSON object and nothing else, whose entry "right" is one of "true", "false".');
});
