/** Words by which a writer denies an answer, offers another, or takes it back. */

/** A denial or a question around the answer. */
const denied =
  /(?:\b(?:not|never|neither|nor|cannot be|rather than|instead of|other than|except)\b|n['’]t(?: be)?\b)[\s$\\([*:]{1,6}(?:(?:equal|equals|to|the|be|simply|just|answer|is)[\s$\\([*:]{1,4}){0,3}$/i;

const mistaken =
  /\b(?:wrong|incorrect|false)[ \t]+(?:answer|result|value|choice|option)\b[^.,;:!?]{0,30}$|\b(?:wrong|incorrect|mistake|error|mistaken|tempting|temptation|trap|fallacy|pitfall)\b[ \t]+(?:(?:is|was|would be|would|might be|here|there)[ \t]+){0,3}(?:to|of|in)[ \t]+(?:answer|answering|say|saying|write|writing|conclude|concluding|give|giving|choose|choosing|pick|picking|take|taking|think|thinking|get|getting|put|putting|report|claim)\b[^.,;:!?]{0,30}$/i;
/** "Assume the answer is", "If the answer were": no commitment. */
const supposed = /\b(?:assume|suppose|imagine|if|whether|unless|pretend)\b[^.,;:!?\n]{0,30}$/i;

/** "If the coin were fair, the answer would be": what is contrary to fact. */
const contrary = /\bif\b[^.;!?\n]*\b(?:were|had|weren['’]t|hadn['’]t)\b[^.;!?\n]*$/i;

/** Whether what leads to an announcement of these words makes it a supposition. */
export const isSupposed = (lead: string, announcement: string): boolean =>
  supposed.test(lead) || (/\bwould (?:have been|be)\b/i.test(announcement) && contrary.test(lead));

/** Whether an answer is denied by what leads to it, or asked by what follows it. */
export function isUncertain(lead: string, behind: string): boolean {
  const sentence = lead.split(/[.!?\n]\s/).at(-1) as string;
  return denied.test(sentence) || mistaken.test(sentence) || /^[$)\]]?\?/.test(behind);
}

/** Words that set one answer beside another. */
const another =
  /\b(?:alternatively|or (?:maybe|perhaps|possibly|else|rather|it (?:could|might|may) be)|another (?:possibility|option|possible answer) is|(?:could|might|may) also be|either)\b|(?:^|[\n.!?,])\s{0,8}or\b|^[\s$*)\]\\,.]*or\b/i;

/** Whether the text between two answers makes the second an alternative. */
export const offersAnother = (between: string): boolean => another.test(between);

const surely = "(?:clearly |obviously |definitely |probably |actually |certainly )?";
const negative = String.raw`(?:wrong|incorrect|not right|not correct|not the (?:final |correct |right )?answer|a mistake|mistaken|false|invalid|impossible|too (?:large|small|big|high|low))\b`;
const positive = String.raw`(?:right|correct|the (?:final |correct |right )?answer|it\b|possible)`;
const denies = "(?:can(?:no|['’])t be|cannot be|isn['’]t|is not|['’]s not|was not|wasn['’]t)";
const said =
  "(?:that|this|it|which|the above|my (?:previous |earlier |first )?(?:answer|result|solution)|the (?:previous |earlier |above |first )?(?:answer|result))";
/** Words about the answer that take it back: of what was just said, or as an exclamation. */
const back = new RegExp(
  [
    String.raw`^[\s$*)\]}\\.,:;–—-]{0,12}(?:(?:is|was|seems|looks|must be|would be)[ \t]+${surely}${negative}|${denies}[ \t]+${surely}${positive})`,
    String.raw`\b${said}(?:(?:['’]s| is| was| seems| looks| must be)[ \t]+${surely}${negative}|[ \t]?${denies}[ \t]+${surely}${positive})`,
    String.raw`\b(?:scratch that|ignore (?:that|this|the (?:above|previous|box))|disregard (?:that|this|the (?:above|previous))|strike that|i take (?:that|it) back|i (?:was|am) (?:wrong|mistaken)|i made (?:a|an) (?:mistake|error)|wait[,.… ]{1,4}no\b|oops|i should(?:n['’]t| not)? have (?!mentioned|said|noted|added)|i (?:missed|overlooked|miscounted|miscalculated|misread|misunderstood|double[- ]counted|forgot (?!to (?:mention|say|add that|note|point)))|just kidding|on second thoughts?|never ?mind)\b`,
  ].join("|"),
  "i",
);
/** An alternative behind the last answer that gives none of its own form. */
const orElse = /^[\s$*)\]}\\.,;]{0,8}(?:or|or maybe|or perhaps|or possibly|alternatively|but (?:it )?(?:could|might|may) also be)\b[^\n]{0,40}?(?:[$\\(]|\d)/i;

/** Whether what follows an answer takes it back, or offers another beside it. */
export function isTakenBack(rest: string): boolean {
  if (rest.trim() === "") return false;
  return orElse.test(rest) || back.test(rest);
}
