/** Units of measure: how they are written, and what one is in base units. */
import { multiply, type Rational, rational } from "../number/rational.js";
import type { Unit } from "./types.js";

interface Known {
  readonly powers: { readonly [base: string]: number };
  readonly factor: Rational;
}

const known = new Map<string, Known>();

/** `cm=1/100`: names of one unit, then its factor; the powers are those of the line. */
function line(powers: { readonly [base: string]: number }, entries: string): void {
  for (const entry of entries.split("; ")) {
    const [names, value] = entry.split("=") as [string, string];
    const [over, under = "1"] = value.split("/") as [string, string?];
    const [exact, by] = [decimal(over), decimal(under)];
    for (const name of names.split(" ")) known.set(name, { powers, factor: rational(exact.n * by.d, exact.d * by.n) });
  }
}

function decimal(text: string): Rational {
  const [whole, fraction = ""] = text.split(".") as [string, string?];
  return rational(BigInt(whole + fraction), 10n ** BigInt(fraction.length));
}

line(
  { m: 1 },
  "m meter meters metre metres=1; km kilometer kilometers kilometre kilometres kms=1000; dm decimeter decimeters=1/10; cm centimeter centimeters centimetre centimetres cms=1/100; mm millimeter millimeters millimetre millimetres=1/1000; nm nanometer nanometers=1/1000000000; micrometer micrometers micron microns=1/1000000; in inch inches=0.0254; ft foot feet=0.3048; yd yds yard yards=0.9144; mi mile miles=1609.344",
);
line(
  { m: 3 },
  "L l liter liters litre litres=1/1000; ml mL milliliter milliliters millilitre millilitres cc=1/1000000; gallon gallons gal=0.003785411784; quart quarts qt=0.000946352946; pint pints=0.000473176473",
);
line({ m: 2 }, "hectare hectares ha=10000; acre acres=4046.8564224");
line(
  { kg: 1 },
  "kg kilogram kilograms kgs kilo kilos=1; g gram grams gm=1/1000; mg milligram milligrams=1/1000000; tonne tonnes=1000; lb lbs pound pounds=0.45359237; oz ounce ounces=0.028349523125; ton tons=907.18474",
);
line(
  { s: 1 },
  "s sec secs second seconds=1; ms millisecond milliseconds=1/1000; min mins minute minutes=60; h hr hrs hour hours=3600; day days=86400; week weeks=604800",
);
line({ month: 1 }, "month months=1; year years yr yrs=12; decade decades=120; century centuries=1200");
line({ degree: 1 }, "degree degrees deg °=1; arcminute arcminutes=1/60; arcsecond arcseconds=1/3600");
line({ radian: 1 }, "rad radian radians=1");
line({ percent: 1 }, "percent percentage percentages pct %=1");
line({ USD: 1 }, "USD dollar dollars=1; cent cents=1/100; bucks buck=1");
for (const [code, names] of Object.entries({
  EUR: "EUR euro euros",
  GBP: "GBP",
  JPY: "JPY yen",
  INR: "INR rupee rupees Rs",
  CNY: "CNY yuan",
  RUB: "RUB ruble rubles",
  KRW: "KRW",
}))
  line({ [code]: 1 }, `${names}=1`);
line({ m: -2 }, "mpg=1609.344/0.003785411784");
line({ m: 1, s: -1 }, "mph=0.44704; kph kmh=5/18");
line({ kg: 1, m: 1, s: -2 }, "N newton newtons=1; kN=1000");
line({ kg: 1, m: 2, s: -2 }, "J joule joules=1; kJ kilojoule kilojoules=1000; calorie calories cal=4.184; kcal=4184; kWh=3600000");
line({ kg: 1, m: 2, s: -3 }, "W watt watts=1; kW kilowatt kilowatts=1000");
line({ kg: 1, m: -1, s: -2 }, "Pa pascal pascals=1; kPa=1000");
line({ s: -1 }, "Hz hertz=1; kHz=1000; MHz=1000000; rpm=1/60");
line({ A: 1, s: 1 }, "C coulomb coulombs=1");
line({ A: 1 }, "ampere amperes amp amps=1");
line({ V: 1 }, "V volt volts=1");
line({ ohm: 1 }, "ohm ohms Omega=1");
line({ mol: 1 }, "mol mole moles=1");
line({ K: 1 }, "K kelvin kelvins=1");
line({ celsius: 1 }, "celsius Celsius=1");
line({ fahrenheit: 1 }, "fahrenheit Fahrenheit=1");
line({}, "unit units=1");

/** Units of one letter, which stand for a variable where nothing tells that they are units. */
export const isUnit = (name: string): boolean => known.has(name) || (name.length > 2 && known.has(name.toLowerCase()));

export const currencies: ReadonlySet<string> = new Set(["USD", "EUR", "GBP", "JPY", "INR", "CNY", "RUB", "KRW"]);

/** The unit of a name; a word that is none is a noun, which counts things of its kind. */
export function unitOf(name: string): Unit {
  const unit = known.get(name) ?? known.get(name.toLowerCase());
  return unit === undefined ? { powers: { [`#${noun(name)}`]: 1 }, factor: rational(1n, 1n), name } : { ...unit, name };
}

/** Singular and plural are one. */
function noun(word: string): string {
  const lower = word.toLowerCase();
  if (lower === "people") return "person";
  if (lower === "children") return "child";
  if (lower === "men" || lower === "women") return lower.replace("men", "man");
  if (/(?:ss|us|is)$/.test(lower)) return lower;
  return lower
    .replace(/ies$/, "y")
    .replace(/(x|ch|sh|s)es$/, "$1")
    .replace(/s$/, "");
}

export const noUnit: Unit = { powers: {}, factor: rational(1n, 1n), name: "" };

/** a · bⁿ. */
export function combine(a: Unit, b: Unit, power: number): Unit {
  const powers: { [base: string]: number } = { ...a.powers };
  for (const [base, times] of Object.entries(b.powers)) {
    const sum = (powers[base] ?? 0) + times * power;
    if (sum === 0) delete powers[base];
    else powers[base] = sum;
  }
  let factor = a.factor;
  const step = power > 0 ? b.factor : rational(b.factor.d, b.factor.n);
  for (let i = 0; i < Math.abs(power); i++) factor = multiply(factor, step);
  const name = power === 1 ? b.name : `${b.name}^${power}`;
  return { powers, factor, name: a.name === "" ? name : `${a.name} ${name}` };
}

export const sameDimension = (a: Unit, b: Unit): boolean => {
  const names = Object.keys(a.powers);
  return names.length === Object.keys(b.powers).length && names.every((name) => a.powers[name] === b.powers[name]);
};

/** A percentage, of whatever noun. */
export const isPercent = (unit: Unit): boolean =>
  unit.powers.percent === 1 && Object.keys(unit.powers).every((base) => base === "percent" || base.startsWith("#"));
export const isDegree = (unit: Unit): boolean => unit.powers.degree === 1 && Object.keys(unit.powers).length === 1;
export const isCurrency = (unit: Unit): boolean => Object.keys(unit.powers).some((base) => currencies.has(base));
/** Nothing is measured: no unit, or the word "units". */
export const isPlain = (unit: Unit): boolean => Object.keys(unit.powers).length === 0;
