/** A reproduction as a picture: a panel a metric, a row an arm; a dot a seed, a bar the mean with its 95 % interval. */
import { type PlotFiles, type Spec, writePicture } from "../compare/plot.js";
import type { Reproduction } from "./reproduce.js";

const width = 460;
const rowHeight = 24;
/** Above each panel for its title and below for its axis. */
const panelBesides = 64;

/** Writes `reproduction.svg` and `.png` into a folder, as far as the libraries are there. */
export function writeReproductionPlot(folder: string, reproduction: Reproduction): Promise<PlotFiles> {
  return writePicture(folder, "reproduction", pictureOf(reproduction));
}

export function pictureOf({ arms }: Reproduction): Spec {
  const names = arms.map(({ arm }) => arm);
  const metrics = Object.keys(arms[0]?.metrics ?? {});
  const height = rowHeight * names.length;
  return {
    width,
    height: metrics.length * (height + panelBesides),
    padding: 8,
    background: "white",
    marks: metrics.map((metric, panel) => {
      const of = arms.map(({ arm, metrics }) => ({ arm, ...metrics[metric] }));
      const seeds = of.flatMap(({ arm, seeds = [] }) => seeds.flatMap((value) => (value === null ? [] : [{ arm, value }])));
      const means = of.flatMap(({ arm, mean, interval }) =>
        typeof mean === "number" ? [{ arm, mean, low: interval?.low ?? mean, high: interval?.high ?? mean }] : [],
      );
      const middle = { scale: "y", field: "arm", band: 0.5 };
      return {
        type: "group",
        encode: { update: { y: { value: panel * (height + panelBesides) + 20 }, height: { value: height }, width: { value: width } } },
        title: { text: metric, anchor: "start" },
        data: [
          { name: "seeds", values: seeds },
          { name: "means", values: means },
          { name: "ends", values: [...seeds.map(({ value }) => ({ value })), ...means.flatMap(({ low, high }) => [{ value: low }, { value: high }])] },
        ],
        scales: [
          { name: "x", type: "linear", range: [0, width], domain: { data: "ends", field: "value" }, zero: false, nice: true },
          { name: "y", type: "band", range: [0, height], domain: names },
        ],
        axes: [
          { orient: "bottom", scale: "x", grid: true, gridScale: "y", gridOpacity: 0.4 },
          { orient: "left", scale: "y", ticks: false },
        ],
        marks: [
          {
            type: "rule",
            from: { data: "means" },
            encode: {
              enter: { x: { scale: "x", field: "low" }, x2: { scale: "x", field: "high" }, y: middle, strokeWidth: { value: 2 }, stroke: { value: "#4c78a8" } },
            },
          },
          {
            type: "symbol",
            from: { data: "seeds" },
            encode: { enter: { x: { scale: "x", field: "value" }, y: middle, size: { value: 24 }, fill: { value: "#9ecae9" } } },
          },
          {
            type: "symbol",
            from: { data: "means" },
            encode: { enter: { x: { scale: "x", field: "mean" }, y: middle, size: { value: 60 }, shape: { value: "diamond" }, fill: { value: "#4c78a8" } } },
          },
        ],
      };
    }),
  };
}
