/** Unicode as it appears in answers, brought to one alphabet of signs. */

/** Signs that stand for a sign of another spelling. */
const signs: { readonly [spelling: string]: string } = {
  "−–—‐‑‒﹣－": "-",
  "＋﹢": "+",
  "×·⋅∙∗✕✖": "*",
  "÷": "÷",
  "∕⁄／": "/",
  "＝": "=",
  "≠": "≠",
  "≤⩽≦⪯": "≤",
  "≥⩾≧⪰": "≥",
  "＜": "<",
  "＞": ">",
  "≈≃≅≒": "≈",
  "∼〜": "∼",
  "≡": "≡",
  "±": "±",
  "∓": "∓",
  "∈∊": "∈",
  "∉": "∉",
  "∪⋃": "∪",
  "∩⋂": "∩",
  "∖": "∖",
  "⊂⊆": "⊂",
  "→⟶↦": "→",
  "⇒⟹": "⇒",
  "⇔⟺": "⇔",
  "∧": "∧",
  "∨": "∨",
  "∀": "∀",
  "∃": "∃",
  "°º˚": "°",
  "∘": "∘",
  "…⋯": "…",
  "′’‘´ʹ": "'",
  "∠": "∠",
  "△": "△",
  "⊥": "⊥",
  "∥": "∥",
  "∣｜": "|",
  "，、": ",",
  "；": ";",
  "：∶": ":",
  "。": ".",
  "％﹪": "%",
  "“”„″": '"',
};

export const signOf: ReadonlyMap<string, string> = new Map(Object.entries(signs).flatMap(([spellings, sign]) => [...spellings].map((each) => [each, sign])));

const digitsOfOthers = "٠۰०";

/**
 * A text with digits of other scripts as ASCII digits, and a wide full stop between digits as one: every character stays where it was.
 */
export const withPlainDigits = (text: string): string =>
  /[٠-٩۰-۹०-९．]/.test(text)
    ? text
        .replace(/[٠-٩۰-۹०-९]/g, (digit) => {
          const code = digit.charCodeAt(0);
          const zero = [...digitsOfOthers].map((each) => each.charCodeAt(0)).find((each) => code >= each && code < each + 10) as number;
          return String(code - zero);
        })
        .replace(/(?<=[0-9０-９])．(?=[0-9０-９])/g, ".")
    : text;

/** Letters and digits of mathematical alphabets (𝐱, 𝟓) as plain ones; undefined for all others. */
export const plainLetter = (character: string): string | undefined => (/^[\u{1d400}-\u{1d7ff}]$/u.test(character) ? character.normalize("NFKC") : undefined);

/** Currency signs and the code of their currency. */
export const currencyOf: ReadonlyMap<string, string> = new Map([
  ["$", "USD"],
  ["＄", "USD"],
  ["€", "EUR"],
  ["£", "GBP"],
  ["¥", "JPY"],
  ["₹", "INR"],
  ["₽", "RUB"],
  ["₩", "KRW"],
  ["¢", "cent"],
]);

/** Brackets: what opens or closes, and as which bracket. */
export const bracketOf: ReadonlyMap<string, readonly ["open" | "close", string]> = new Map([
  ["(", ["open", "("]],
  [")", ["close", ")"]],
  ["（", ["open", "("]],
  ["）", ["close", ")"]],
  ["[", ["open", "["]],
  ["]", ["close", "]"]],
  ["【", ["open", "["]],
  ["】", ["close", "]"]],
  ["｛", ["open", "\\{"]],
  ["｝", ["close", "\\}"]],
  ["⟨", ["open", "⟨"]],
  ["⟩", ["close", "⟩"]],
  ["〈", ["open", "⟨"]],
  ["〉", ["close", "⟩"]],
  ["⌊", ["open", "⌊"]],
  ["⌋", ["close", "⌋"]],
  ["⌈", ["open", "⌈"]],
  ["⌉", ["close", "⌉"]],
]);

const greek =
  "α alpha β beta γ gamma δ delta ε epsilon ϵ epsilon ζ zeta η eta θ theta ϑ theta ι iota κ kappa λ lambda μ mu µ mu ν nu ξ xi ο o π pi ϖ pi ρ rho ς sigma σ sigma τ tau υ upsilon φ phi ϕ phi χ chi ψ psi ω omega Γ Gamma Δ Delta ∆ Delta Θ Theta Λ Lambda Ξ Xi Π Pi Σ Sigma Υ Upsilon Φ Phi Ψ Psi Ω Omega Ω Omega ∞ infinity ℓ ell ℝ Reals ℤ Integers ℕ Naturals ℚ Rationals ℂ Complexes ∅ emptyset ⌀ emptyset ∂ partial ∇ nabla ⅈ i ℯ e";

/** Letters that are one symbol by themselves, by name. */
export const nameOf: ReadonlyMap<string, string> = pairs(greek);

/** Roots, sums and products written as one character. */
export const commandOf: ReadonlyMap<string, string> = new Map([
  ["√", "sqrt"],
  ["∛", "cbrt"],
  ["∜", "fourthroot"],
  ["∑", "sum"],
  ["∏", "prod"],
  ["∫", "int"],
]);

/** Fractions written as one character. */
export const vulgarOf: ReadonlyMap<string, string> = pairs(
  "½ 1/2 ⅓ 1/3 ⅔ 2/3 ¼ 1/4 ¾ 3/4 ⅕ 1/5 ⅖ 2/5 ⅗ 3/5 ⅘ 4/5 ⅙ 1/6 ⅚ 5/6 ⅐ 1/7 ⅛ 1/8 ⅜ 3/8 ⅝ 5/8 ⅞ 7/8 ⅑ 1/9 ⅒ 1/10",
);

/** Raised and lowered characters, and what they are on the line. */
export const raisedOf: ReadonlyMap<string, string> = pairs("⁰ 0 ¹ 1 ² 2 ³ 3 ⁴ 4 ⁵ 5 ⁶ 6 ⁷ 7 ⁸ 8 ⁹ 9 ⁺ + ⁻ - ⁽ ( ⁾ ) ⁿ n ⁱ i ˣ x ʸ y ᵏ k ᵐ m");
export const loweredOf: ReadonlyMap<string, string> = pairs("₀ 0 ₁ 1 ₂ 2 ₃ 3 ₄ 4 ₅ 5 ₆ 6 ₇ 7 ₈ 8 ₉ 9 ₊ + ₋ - ₙ n ₖ k ₓ x ᵢ i ⱼ j ₐ a");

function pairs(text: string): ReadonlyMap<string, string> {
  const words = text.split(" ");
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < words.length; i += 2) map.set(words[i] as string, words[i + 1] as string);
  return map;
}
