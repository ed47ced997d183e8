/** Saves a chart as a picture: the drawing on the screen with its colours written out, a title and a legend. */
import type { Line } from "./chart.js";
import { colourOf } from "./chart.js";

export interface SaveOptions {
  readonly title: string;
  readonly file: string;
  readonly lines: readonly Line[];
  readonly kind: "svg" | "png";
}

const written = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-size", "font-family", "font-weight"] as const;
const head = 26;
const density = 2;

/** The picture as the text of an SVG. */
export function svgText(drawn: SVGSVGElement, { title, lines }: Pick<SaveOptions, "title" | "lines">): string {
  const copy = drawn.cloneNode(true) as SVGSVGElement;
  const [from, to] = [[...drawn.querySelectorAll("*")], [...copy.querySelectorAll("*")]];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    for (const name of written) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("class");
  });
  for (const cursor of [...drawn.querySelectorAll(".cursor, .brush")].map((element) => to[from.indexOf(element)])) cursor.remove();
  const [width, height] = [drawn.clientWidth, drawn.clientHeight];
  const text = resolved("var(--text)");
  const space = "http://www.w3.org/2000/svg";
  const make = (name: string, attributes: { readonly [name: string]: string | number }, content = ""): SVGElement => {
    const element = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.textContent = content;
    return element;
  };
  const whole = make("svg", {
    xmlns: space,
    width,
    height: height + head + 20 * Math.ceil(lines.length / 3),
    "font-family": "system-ui, sans-serif",
    "font-size": 12,
  });
  whole.append(make("rect", { width: "100%", height: "100%", fill: resolved("var(--panel)") }));
  whole.append(make("text", { x: 10, y: 17, fill: text, "font-size": 13, "font-weight": 600 }, title));
  const chart = make("g", { transform: `translate(0 ${head})` });
  chart.append(...copy.childNodes);
  whole.append(chart);
  lines.forEach(({ label, colour: own }, i) => {
    const [x, y] = [14 + (i % 3) * ((width - 20) / 3), head + height + 12 + 20 * Math.floor(i / 3)];
    whole.append(make("circle", { cx: x, cy: y - 4, r: 4, fill: resolved(colourOf(own ?? i)) }), make("text", { x: x + 9, y, fill: text }, label));
  });
  return new XMLSerializer().serializeToString(whole);
}

/** A colour of the style sheet as the theme of the moment has it. */
function resolved(colour: string): string {
  const probe = document.createElement("i");
  probe.style.color = colour;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** Offers the picture for download. */
export async function saveChart(drawn: SVGSVGElement, options: SaveOptions): Promise<void> {
  const text = svgText(drawn, options);
  const svg = new Blob([text], { type: "image/svg+xml" });
  const name = options.file
    .replace(/[^\w.-]+/g, "-")
    .replace(/^-|-$/g, "")
    .toLowerCase();
  download(options.kind === "svg" ? svg : await pngOf(svg), `${name || "chart"}.${options.kind}`);
}

async function pngOf(svg: Blob): Promise<Blob> {
  const image = new Image();
  const address = URL.createObjectURL(svg);
  try {
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = density * image.width;
    canvas.height = density * image.height;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("the picture could not be made"))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

export function download(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
