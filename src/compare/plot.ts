/** Curves with bands as SVG and PNG. Both libraries are optional dependencies, loaded when a plot is asked for. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../core/errors.js";
import type { Report } from "./report.js";

export interface PlotFiles {
  readonly svg?: string;
  readonly png?: string;
  /** Why a file is missing. */
  readonly missing: readonly string[];
}

/** Pixels of the PNG a unit of the SVG. */
const density = 2;

/** Writes `curves.svg` and `curves.png` into a folder, as far as the libraries are there and some arm has a curve. */
export async function writePlot(folder: string, report: Report): Promise<PlotFiles> {
  if (report.arms.every(({ curve }) => curve.length < 2)) return { missing: ["there is no plot: no arm was measured at two steps"] };
  return writePicture(folder, "curves", curvesOf(report));
}

function missingText(what: string, error: unknown): string {
  if (error instanceof ConfigError) return `there is no ${what} of the plot: ${error.message}`;
  throw error;
}

/** Writes a picture as SVG and PNG, `stem.svg` and `stem.png`, as far as the libraries are there. */
export async function writePicture(folder: string, stem: string, spec: Spec): Promise<PlotFiles> {
  let svg: string;
  try {
    svg = await drawn(spec);
  } catch (error) {
    return { missing: [missingText("SVG and PNG", error)] };
  }
  const svgFile = join(folder, `${stem}.svg`);
  writeFileSync(svgFile, svg);
  try {
    const png = join(folder, `${stem}.png`);
    writeFileSync(png, await pngOf(svg));
    return { svg: svgFile, png, missing: [] };
  } catch (error) {
    return { svg: svgFile, missing: [missingText("PNG", error)] };
  }
}

/** A picture as Vega describes it. */
export type Spec = import("vega").Spec;

/** A picture as SVG. Throws ConfigError where vega is not installed. */
export async function drawn(spec: Spec): Promise<string> {
  const { parse, View } = await optional("vega", () => import("vega"));
  const view = new View(parse(spec), { renderer: "none" });
  try {
    return await view.toSVG();
  } finally {
    view.finalize();
  }
}

/** The curves as SVG: the mean of an arm's runs, and a band from the lowest to the highest of them. Throws ConfigError where vega is not installed. */
export async function svgOf(report: Report): Promise<string> {
  return drawn(curvesOf(report));
}

function curvesOf({ metric, arms }: Report): Spec {
  const values = arms.flatMap(({ label, curve }) => curve.map((point) => ({ label, ...point })));
  const x = { scale: "x", field: "step" };
  const colour = { scale: "colour", field: "label" };
  return {
    width: 560,
    height: 320,
    padding: 8,
    background: "white",
    data: [{ name: "curves", values }],
    scales: [
      { name: "x", type: "linear", range: "width", domain: { data: "curves", field: "step" }, zero: false },
      { name: "y", type: "linear", range: "height", domain: { data: "curves", fields: ["low", "high"] }, nice: true, zero: false },
      { name: "colour", type: "ordinal", domain: arms.map(({ label }) => label), range: { scheme: "tableau10" } },
    ],
    axes: [
      { orient: "bottom", scale: "x", title: "step", grid: true, gridOpacity: 0.4 },
      { orient: "left", scale: "y", title: metric, grid: true, gridOpacity: 0.4 },
    ],
    legends: [{ stroke: "colour", symbolType: "stroke", orient: "right", labelLimit: 240 }],
    marks: [
      {
        type: "group",
        from: { facet: { name: "arm", data: "curves", groupby: "label" } },
        marks: [
          {
            type: "area",
            from: { data: "arm" },
            encode: { enter: { x, y: { scale: "y", field: "low" }, y2: { scale: "y", field: "high" }, fill: colour, fillOpacity: { value: 0.18 } } },
          },
          { type: "line", from: { data: "arm" }, encode: { enter: { x, y: { scale: "y", field: "mean" }, stroke: colour, strokeWidth: { value: 2 } } } },
        ],
      },
    ],
  };
}

/** An SVG as PNG. Throws ConfigError where @napi-rs/canvas is not installed. */
export async function pngOf(svg: string): Promise<Buffer> {
  const { createCanvas, loadImage } = await optional("@napi-rs/canvas", () => import("@napi-rs/canvas"));
  const image = await loadImage(Buffer.from(svg));
  const [width, height] = [density * image.width, density * image.height];
  const canvas = createCanvas(width, height);
  canvas.getContext("2d").drawImage(image, 0, 0, width, height);
  return canvas.toBuffer("image/png");
}

async function optional<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const cause = `the optional package ${name} cannot be loaded (${(error as NodeJS.ErrnoException).code ?? (error as Error).message.split("\n")[0]})`;
    throw new ConfigError({ place: "plot", cause, mend: `install it: npm install ${name}` }, { cause: error });
  }
}
