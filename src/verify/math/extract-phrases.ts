/** Answers that are announced: by a phrase, a marker such as ####, or tags. */

import { formulaAt, sentenceEnd, unwrapped } from "./extract-text.js";
import type { Candidate } from "./extract-types.js";

/** What announces an answer, up to its verb or colon. */
const subject = String.raw`\b(?:answers?|ans(?=[ \t]{0,4}[.:=])|final (?:result|solution|value)|(?:correct|right|best) (?:option|choice|letter|alternative|statement|one)|solution(?=[*_ \t]{0,4}:))`;
const about = String.raw`(?:[ \t]*\([^()\n]{0,60}\))?(?:[ \t]+(?:to|of|for|in|choice|option)\b(?:(?!\b(?:is|are|was|be)\b)[^.:=\n]){0,80})?`;
const verb = String.raw`[*_"'”\x60 \t]*(?:[ \t](?:is|are|was|will be|would be|would have been|should be|must be|should read|equals?|becomes|comes out (?:to|as)|to be)\b(?:[ \t]+(?:therefore|thus|then|simply|just|actually|now|indeed|hence|found to be|given by|equal to|exactly|as follows))*[*_ \t]*[:=]?|[:=：]|[-=]+>|→|⇒|—)`;
const announced = new RegExp(subject + about + verb, "iy");
/** Where `subject` may begin, lower case: texts that are found faster than a pattern. */
const beginnings = ["answer", "ans", "final result", "final solution", "final value", "correct ", "right ", "best ", "solution"];
const foreign = new RegExp(
  [
    "答案(?:是|为|為|應為|应为|[:：])|答[:：]|答えは|解答[:：]|(?:최종 )?(?:정답|답)(?:은|:)",
    String.raw`(?:la )?r[ée]ponse(?: finale)?[ \t]*(?:est|:)|(?:la )?respuesta(?: final| correcta)?[ \t]*(?:es|:)|(?:die )?(?:end)?antwort[ \t]*(?:ist|lautet|:)|(?:a )?resposta(?: final)?[ \t]*(?:é|:)`,
    String.raw`(?:la )?risposta(?: finale)?[ \t]*(?:è|:)|(?:het )?antwoord[ \t]*(?:is|:)|svaret[ \t]*(?:är|er|:)|\bsvar[ \t]*:|odpowied[źz][ \t]*(?:to|:)|odpověď[ \t]*(?:je|:)|răspuns(?:ul)?[ \t]*(?:este|:)`,
    String.raw`cevap[ \t]*:|đáp (?:án|số)[ \t]*(?:là|:)|jawaban(?:nya)?[ \t]*(?:adalah|:)|απάντηση[ \t]*:|ответ[ \t]*[:—-]|відповідь[ \t]*[:—-]`,
    String.raw`(?:ال)?(?:جواب|إجابة)(?: النهائي(?:ة)?)?[ \t]*(?:هو|هي|:)|उत्तर[ \t]*(?:है|:)`,
  ].join("|"),
  "giu",
);
const foreignBeginnings = "ponse respuesta antwort resposta risposta antwoord svar odpowied cevap jawaban".split(" ");
/** Those that no ASCII text has. */
const otherBeginnings = "答 정답 답 odpověď răspuns đáp απάντηση ответ відповідь جواب إجابة उत्तर".split(" ");
const beyondAscii = /[^\0-\x7f]/;
/** What ends a sentence behind its number in languages that put the verb, or the word for what is counted, there. */
const behindNumber =
  /[ \t]*(?:です|だ|である|입니다|이다|이에요|है|个|個|人|元|円|圆|岁|只|本|次|天|小时|时|分钟|分|度|块|种|名|页|米|公里|개|명|원|일|시간)[。.]?$/u;
/** "### Answer" or "**Final Answer**" as a line of its own. */
const heading = /^[ \t]*(?:#{1,6}[ \t]*)?(?:step[ \t]*\d+:?[ \t]*)?[*_]{0,3}(?:the[ \t])?(?:final[ \t])?(?:answer|result)[*_:]{0,4}[ \t]*$/i;
const markers = /####(?!#)|<\|?answer\|?>/gi;
/** "42 is the answer": the value, and what stands between it and "answer". */
const behind =
  /(\$[^$\n]{1,200}\$|\\\((?:[^\\\n]|\\(?!\))){1,200}\\\)|\*\*[^*\n]{1,80}\*\*|(?<![\w.,/^*+-])[-−]?\$?\d[\d,./]*%?)[ \t]+(?:is|as|becomes)[ \t]+(?:the|my|our)[ \t]+(?:final |correct )?$/i;
/** "Option B is correct" */
const lettered = /\b(?:option|choice|answer)[ \t]+[*_]{0,2}(\(?[A-J]\)?)[*_]{0,2}[ \t]+is[ \t]+(?:the[ \t]+)?(?:correct|right|best|answer)\b/iy;
/** "Wait, it should be 816": behind another answer a correction announces as well as "the answer" does. */
const corrected =
  /\b(?:actually|wait|correction|i mean|sorry|no|mistake|instead)\b[^.\n]{0,60}?\b(?:it|this|that|the (?:value|total|result|number|sum))(?:['’]s|[ \t](?:is|should be|must be))[ \t]+(?=[-−$\\(*\d])|\bcorrection:[ \t]*/gi;

/** Announcements that are looked at, from the last one back: the last decides, those before it say whether it is one of several. */
const mostAnnounced = 16;
/** Most characters of a heading before and behind its word. */
const widestHeading = 40;
/** How far before "is the answer" its value may begin. */
const reach = 240;

type Found = readonly [start: number, read: () => Candidate | undefined];

/** The last announcements of a text, in order; `since`: where another answer ends, behind which corrections announce too. */
export function announcedIn(text: string, since = text.length): Candidate[] {
  const lower = lowered(text);
  let found: Found[] = [];
  for (const beginning of beginnings) {
    for (let at = lower.indexOf(beginning); at >= 0; at = lower.indexOf(beginning, at + beginning.length)) found.push(...announcementsAt(text, at));
  }
  for (const at of ["option ", "choice "].flatMap((word) => positionsOf(lower, word))) found.push(...letteredAt(text, at));
  const isForeign = foreignBeginnings.some((word) => lower.includes(word)) || (beyondAscii.test(lower) && otherBeginnings.some((word) => lower.includes(word)));
  if (isForeign) found = found.concat(matchesOf(text, foreign, 0, "phrase"));
  found = found.concat(headingsIn(text, lower));
  markers.lastIndex = 0;
  for (let match = markers.exec(text); match !== null; match = markers.exec(text)) {
    const [start, after, hash] = [match.index, markers.lastIndex, match[0].startsWith("#")];
    found.push([start, () => (hash ? captured(text, "marker", start, after) : tagged(text, start, after))]);
  }
  const first = found.reduce((least, [start]) => Math.min(least, start), since);
  if (first < text.length) {
    // "Correction: I forgot to halve it" says that there is another answer, not which.
    const isValue = (candidate: Candidate): boolean => mathematical.test(unwrapped(candidate.text));
    found = found.concat(matchesOf(text, corrected, first, "phrase", isValue));
  }
  found.sort((a, b) => a[0] - b[0]);
  return found.slice(-mostAnnounced).flatMap(([, read]) => read() ?? []);
}

/** In lower case, with every character where it was. */
function lowered(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function positionsOf(text: string, word: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) found.push(at);
  return found;
}

function matchesOf(text: string, pattern: RegExp, from: number, rule: Candidate["rule"], counts = (_: Candidate): boolean => true): Found[] {
  const found: Found[] = [];
  pattern.lastIndex = from;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [start, after] = [match.index, pattern.lastIndex];
    found.push([
      start,
      () => {
        const candidate = captured(text, rule, start, after);
        return candidate !== undefined && counts(candidate) ? candidate : undefined;
      },
    ]);
  }
  return found;
}

function announcementsAt(text: string, at: number): Found[] {
  announced.lastIndex = at;
  if (announced.test(text)) {
    const after = announced.lastIndex;
    return [[at, () => captured(text, "phrase", at, after)], ...letteredAt(text, at)];
  }
  const back = text.slice(Math.max(0, at - reach), at);
  if (!/(?:the|my|our)[ \t]+(?:final |correct )?$/i.test(back.slice(-24))) return letteredAt(text, at);
  const match = behind.exec(back);
  if (match === null) return [];
  const start = at - back.length + match.index;
  return [[start, () => ({ rule: "phrase", start, end: at, textStart: start, text: match[1] as string })]];
}

function letteredAt(text: string, at: number): Found[] {
  lettered.lastIndex = at;
  const match = lettered.exec(text);
  if (match === null) return [];
  const end = lettered.lastIndex;
  return [[at, () => ({ rule: "phrase", start: at, end, textStart: at, text: match[1] as string })]];
}

function headingsIn(text: string, lower: string): Found[] {
  return ["answer", "result"].flatMap((word) =>
    positionsOf(lower, word).flatMap((at): Found[] => {
      const lead = text.slice(Math.max(0, at - widestHeading), at);
      const start = at - lead.length + lead.lastIndexOf("\n") + 1;
      const newline = at + text.slice(at, at + widestHeading).indexOf("\n");
      if (newline < at || (start > 0 && text[start - 1] !== "\n") || !heading.test(text.slice(start, newline))) return [];
      return [[start, () => captured(text, "phrase", start, newline)]];
    }),
  );
}

function tagged(text: string, start: number, inside: number): Candidate | undefined {
  const rest = /<\|?\/?answer\|?>/i.exec(text.slice(inside));
  const end = rest === null ? text.length : inside + rest.index;
  // A closing tag of the same spelling (<|answer|>…<|answer|>) or none at all: what stands there is the answer either way.
  const close = rest === null ? end : end + rest[0].length;
  const content = text.slice(inside, end);
  return content.trim() === "" ? undefined : { rule: "tag", start, end: close, textStart: inside, text: content };
}

/** What follows an announcement: the formula or sentence there, or on the next line that is not blank. */
function captured(text: string, rule: Candidate["rule"], start: number, after: number): Candidate | undefined {
  let at = after;
  const skip = /[ \t*_:"“>]*(?:\n[ \t*_>-]*(?:```\w*)?[ \t*_>]*)*/y;
  skip.lastIndex = at;
  const skipped = skip.exec(text)?.[0] ?? "";
  // What only sets the answer stays with it, so that pairs of marks stay pairs.
  at += skipped.length - (/[*_"“]*$/.exec(skipped)?.[0].length ?? 0);
  if (at >= text.length) return undefined;
  const formula = formulaAt(text, at);
  const display = formula !== undefined && (text.startsWith("$$", at) || text.startsWith("\\[", at) || text.startsWith("\\b", at));
  const member = text[start - 1] === '"' ? memberAt(text, rule, start, at) : undefined;
  if (member !== undefined) return member;
  const end = display ? formula.end : beforeTag(text, at, sentenceEnd(text, at, text.length));
  const inside = text.slice(at, end);
  return inside.trim() === "" ? undefined : { rule, start, end, textStart: at, text: inside };
}

/** A closing tag ends an announcement within it. */
function beforeTag(text: string, at: number, end: number): number {
  const tag = text.slice(at, end).search(/<\/[A-Za-z_|]/);
  return tag < 0 ? end : at + tag;
}

function unescaped(json: string): string {
  try {
    return String(JSON.parse(json));
  } catch {
    return json.slice(1, -1);
  }
}

/** The value of `"answer": …` in a JSON object. */
function memberAt(text: string, rule: Candidate["rule"], start: number, at: number): Candidate | undefined {
  const pattern = /("(?:[^"\\\n]|\\.){1,2000}"|-?\d[\d.eE+-]*|true|false)\s*(?=[,}\]])/y;
  const from = text[at - 1] === '"' ? at - 1 : at;
  pattern.lastIndex = from;
  const found = pattern.exec(text)?.[1];
  if (found === undefined) return undefined;
  // Backslashes of formulas are often not doubled.
  const isRaw = /(?<!\\)(?:\\\\)*\\(?:[A-Za-z]{2}|[^"\\/bfnrtu])/.test(found);
  const said = isRaw ? found.slice(1, -1) : found.startsWith('"') ? unescaped(found) : found;
  return { rule, start: start - 1, end: from + found.length, textStart: from, text: said };
}

/** How an answer begins that is no word: a number, formula, bracket, sign, or a letter by itself. */
const mathematical = /^(?:[-+−±–~≈]?[ \t]*[$€£¥₹\\(|[{<√π∞∅ℝ\d.]|[A-Za-z](?:['_^=(<>²³ ]|[^A-Za-z\s]|$)(?!(?:[A-Za-z]+[ ,.]){3})|\d|[½⅓⅔¼¾])/;
/** Words with which a sentence about the answer goes on. */
const aboutIt =
  /^(?:not\b|correct|right|wrong|incorrect|checked|verified|obtained|found|based|given|that|because|when|if|reasonable|consistent|in |on |as |to |simple|clear|still|also|always|only|unique|of course|determined|calculated|derived|what|how|below|above|here|therefore|the (?:same|one|sum of|product of|difference|number of))/i;
const mostWords = 6;

/** Whether a phrase announces an answer, not a remark about one; `worded`: it is words alone. */
export function announces(candidate: Candidate): { readonly worded: boolean } | undefined {
  const text = unwrapped(candidate.text);
  if (text === "") return undefined;
  if (mathematical.test(text)) return { worded: false };
  if (candidate.rule !== "phrase") return { worded: true };
  if (aboutIt.test(text)) return undefined;
  return text.split(/\s+/).length <= mostWords || /^(?:\\text|\*|option|choice|the (?:number|value|letter|option))/i.test(text) ? { worded: true } : undefined;
}

/** Words that begin a clause about an answer and are no part of it. */
const clause =
  /(?:,[ \t]{0,4}|[ \t]{1,4}|[ \t]{0,4}\()(?:because|since|which|as (?:we|the|it|required|shown|can|desired|expected)|when|where|so\b|given|after|using|due|assuming|obtained|and (?:this|that|it|we|the)\b|making|meaning|i\.e\.|according|based|by|if\b|for (?:the|all|each|every|a)\b|from|in (?:total|all|the|this|simplest)|on|at|per|with|left|altogether|remaining|more|than)\b/i;
/** Words that begin a reason: unlike a condition it can hold no other answer, whatever formulas stand in it. */
const reason = /^[ \t]{0,8},?[ \t]{0,8}\(?(?:because|since|as (?:we|the|it|required|shown|desired|expected)|due to|obtained|using)\b/i;
const plainNumber =
  /^((?:[-−+][ \t]?)?(?:[$€£][ \t]?)?\d[\d,]*(?:\.\d+)?(?:\/\d+)?%?)[ \t]+(?!hundred|thousand|million|billion|trillion|dozen|score|percent|per ?cent|and|or|to|times|plus|minus|over|half|halves|third|quarter|squared|cubed|mod|base|degrees?)([A-Za-z][A-Za-z'’ ,()-]*)$/i;
const lead =
  /^(?:(?:the )?(?:number|value|option|choice|letter|expression|interval|set|point)s?[ \t]+|(?:equal|equals)[ \t]+(?:to[ \t]+)?|(?:approximately|about|exactly|roughly|simply|just|only|indeed)[ \t]+)/i;

/** "42 (forty-two)": the same in words. */
const inWords = /^(.*\d\S*)[ \t]*\((?!(?:mod|base|not|wrong|incorrect)\b)[a-z][a-z -]{1,60}\)$/i;
/** "if n is odd, and 41 if n is even": one value for each case. */
const isByCases = (text: string): boolean =>
  (text.match(/\b(?:if|when|for|unless|otherwise|else)\b/gi)?.length ?? 0) > 1 && /(?:\band\b|[,;])\s.*(?:\d|\$|\\)/.test(text);

/** "(approximately 0.833)" behind a formula, which has to hold. */
const aboutValue =
  /^[ \t]*[,(]?[ \t]*(?:(?:or|which is|that is|i\.e\.)[, \t]+)?(?:about|approximately|approx\.?|roughly|≈|\$?\\approx)[ \t]*\$?([-−]?\d[\d,]*(?:\.\d+)?)\$?[ \t]*\)?$/i;

/** "if we round, but …": it holds under a condition alone, and another answer is begun. */
const onlyUnder = /^[,( \t]{0,8}(?:if|when|assuming)\b.*\bbut\b/i;

function withoutCounter(said: string): string {
  const counter = behindNumber.exec(said.slice(-16));
  const before = counter === null ? "" : said.slice(0, -counter[0].length).trimEnd();
  return /\d[^\p{L}]*$/u.test(before.slice(-60)) ? before : said;
}

/** Readings of what an announcement captured: the whole, then without the clause behind it, then the number before words. */
export function readingsOf(candidate: Candidate): [string, ...string[]] {
  const said = unwrapped(candidate.text).replace(lead, "");
  const whole = withoutCounter(said);
  if (candidate.rule === "box" || candidate.rule === "whole") return [unwrapped(candidate.text)];
  const texts: [string, ...string[]] = [whole];
  const add = (text: string): void => {
    const clean = unwrapped(text);
    if (clean !== "" && !texts.includes(clean)) texts.push(clean);
  };
  const formula = formulaAt(whole, 0);
  if (formula !== undefined) {
    const nearly = whole.length - formula.end < 80 ? aboutValue.exec(whole.slice(formula.end)) : null;
    if (nearly !== null) return [`${formula.inner} \\approx ${nearly[1]}`];
    // Behind a formula only words may stand, or a reason, and none that offer another answer.
    const rest = whole.slice(formula.end);
    if ((reason.test(rest) || !/[\d$\\]/.test(rest)) && !/\bor\b|\balternatively\b/i.test(rest)) add(whole.slice(0, formula.end));
    return texts;
  }
  const cut = clause.exec(whole);
  if (
    cut !== null &&
    !/^[ \t]*(?:more|than|less|fewer)\b/i.test(whole.slice(cut.index)) &&
    !/\bor\b|\balternatively\b/i.test(whole.slice(cut.index)) &&
    !isByCases(whole.slice(cut.index)) &&
    !onlyUnder.test(whole.slice(cut.index))
  )
    add(whole.slice(0, cut.index));
  const worded = whole.length > 400 ? null : inWords.exec(whole);
  if (worded !== null) add(worded[1] as string);
  for (const text of [...texts]) {
    const number = plainNumber.exec(text);
    if (number !== null && !/\bor\b/i.test(number[2] as string) && !onlyUnder.test(number[2] as string)) add(number[1] as string);
  }
  return texts;
}
