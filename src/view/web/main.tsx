/** The page: its frame, its pages, and what goes for all of them. */
import { type JSX, render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Home, RunCard } from "../shapes.js";
import { Audit } from "./audit.js";
import { Compare } from "./compare.js";
import { source, unpack } from "./data.js";
import { count, digits, percent } from "./format.js";
import { useKeys, useLink, useLoad, useNews } from "./hooks.js";
import { Overview } from "./overview.js";
import { Fault, Standing, Waiting, Wide } from "./parts.js";
import { Report, Reports } from "./reports.js";
import { Rollouts } from "./rollouts.js";
import { address, go, type Route, useRoute } from "./route.js";
import { Word } from "./text.js";
import { nextTheme, type Theme, themeNow } from "./theme.js";

function App(): JSX.Element {
  const route = useRoute();
  const news = useNews();
  const { value: home, fault } = useLoad(() => source.home(), [news]);
  const [help, setHelp] = useState(false);
  const main = useRef<HTMLElement>(null);
  const place = route.path.join("/");
  useEffect(() => {
    document.title = [...titleOf(route, home), "Touchstone"].join(" · ");
    scrollTo(0, 0);
  }, [place, home === undefined]);
  useKeys({ "?": () => setHelp((open) => !open), Escape: help ? () => setHelp(false) : undefined });
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Header route={route} home={home} onHelp={() => setHelp(true)} />
      <main id="main" ref={main} tabIndex={-1}>
        {fault && !home ? <Fault text={fault} /> : home ? <Page route={route} home={home} /> : <Waiting />}
      </main>
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

function titleOf({ path }: Route, home: Home | undefined): string[] {
  const [first, id, part] = path;
  const name = home?.runs.find((run) => run.id === id)?.name ?? id;
  if (first === "run" && name) return part === "rollouts" ? [name, "rollouts"] : [name];
  return first === "compare" ? ["Compare"] : first === "reports" ? ["Reports"] : first === "audits" && id ? [`Audit ${id}`] : [];
}

function Page({ route, home }: { readonly route: Route; readonly home: Home }): JSX.Element {
  const [first, id, part] = route.path;
  if (first === "compare") return <Compare home={home} query={route.query} />;
  if (first === "reports") return id === undefined ? <Reports home={home} /> : <Report id={id} />;
  if (first === "audits" && id !== undefined) return <Audit id={id} />;
  if (first === "run" && id !== undefined) {
    const card = home.runs.find((run) => run.id === id);
    if (!card) return <Fault text={`There is no run ${id} in this view.`} />;
    return part === "rollouts" ? <Rollouts key={id} id={id} query={route.query} /> : <Overview key={id} id={id} query={route.query} />;
  }
  if (first !== undefined) return <Fault text={`There is no page ${route.path.join("/")}.`} />;
  const [only] = home.runs;
  return home.runs.length === 1 && only ? <Overview key={only.id} id={only.id} query={route.query} /> : <Runs home={home} />;
}

function Header({ route, home, onHelp }: { readonly route: Route; readonly home: Home | undefined; readonly onHelp: () => void }): JSX.Element {
  const [theme, setTheme] = useState<Theme>(themeNow());
  const link = useLink();
  const [first, id] = route.path;
  const run = home?.runs.find((each) => each.id === (first === "run" ? id : home.runs.length === 1 && first === undefined ? home.runs[0]?.id : undefined));
  const runs = home?.runs ?? [];
  const current = (is: boolean): { "aria-current"?: "page" } => (is ? { "aria-current": "page" } : {});
  return (
    <header>
      <a class="brand" href="#/" aria-label="Touchstone, all runs">
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d="M3 15 L12 3 L21 15 L12 21 Z" />
          <path d="M7 15 L17 10" />
        </svg>
        <span>Touchstone</span>
      </a>
      <nav aria-label="Pages">
        {runs.length > 1 && (
          <select
            aria-label="Run"
            value={run?.id ?? ""}
            onChange={(event) =>
              go(event.currentTarget.value === "" ? "#/" : address(["run", event.currentTarget.value, ...(route.path[2] ? [route.path[2]] : [])]))
            }
          >
            <option value="">all runs</option>
            {runs.map(({ id: each, name }) => (
              <option key={each} value={each}>
                {name}
              </option>
            ))}
          </select>
        )}
        {run && (
          <>
            <a href={address(["run", run.id])} {...current(route.path[2] === undefined)}>
              Overview
            </a>
            <a href={address(["run", run.id, "rollouts"])} {...current(route.path[2] === "rollouts")}>
              Rollouts
            </a>
          </>
        )}
        {runs.length + (home?.samples.length ?? 0) > 1 && (
          <a href="#/compare" {...current(first === "compare")}>
            Compare
          </a>
        )}
        {(home?.records.length ?? 0) + (home?.audits.length ?? 0) > 0 && (
          <a href="#/reports" {...current(first === "reports" || first === "audits")}>
            Reports
          </a>
        )}
      </nav>
      <div class="right">
        {source.live && link === false && (
          <span class="link-state off" role="status">
            not connected
          </span>
        )}
        {source.live && link && <span class="link-state on">live</span>}
        <button type="button" class="icon" onClick={onHelp} aria-label="Keys and help">
          ?
        </button>
        <button type="button" class="icon" onClick={() => setTheme(nextTheme())} aria-label={`Colours: ${theme}. Change`} title={`Colours: ${theme}`}>
          {theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐"}
        </button>
      </div>
    </header>
  );
}

function Runs({ home }: { readonly home: Home }): JSX.Element {
  if (home.runs.length === 0) {
    return (
      <div class="empty">
        <h1>No runs here</h1>
        <p>
          {home.records.length + home.audits.length > 0 ? (
            <a href="#/reports">Reports of reproductions and audits</a>
          ) : (
            "touchstone train --view shows a run while it trains; touchstone view RUN shows one that is there."
          )}
        </p>
      </div>
    );
  }
  return (
    <>
      <h1>Runs</h1>
      <Wide label="Runs">
        <table class="runs">
          <thead>
            <tr>
              <th scope="col">run</th>
              <th scope="col">state</th>
              <th scope="col">method</th>
              <th scope="col">problems</th>
              <th scope="col" class="n">
                seed
              </th>
              <th scope="col" class="n">
                step
              </th>
              <th scope="col" class="n">
                reward
              </th>
              <th scope="col" class="n">
                held-out
              </th>
              <th scope="col" class="n">
                rollouts
              </th>
            </tr>
          </thead>
          <tbody>
            {home.runs.map((card) => (
              <Row key={card.id} card={card} />
            ))}
          </tbody>
        </table>
      </Wide>
    </>
  );
}

function Row({ card }: { readonly card: RunCard }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <a href={address(["run", card.id])}>
          <Word text={card.name} />
        </a>
      </th>
      <td>
        <Standing card={card} />
        {card.fault && (
          <div class="why">
            <Word text={card.fault} />
          </div>
        )}
      </td>
      <td>
        <Word text={card.method} />
      </td>
      <td>
        <Word text={card.problems} />
      </td>
      <td class="n">{card.seed ?? "–"}</td>
      <td class="n">
        {count(card.step)}
        {card.steps > 0 && <span class="muted"> / {count(card.steps)}</span>}
      </td>
      <td class="n">{digits(card.reward)}</td>
      <td class="n">{percent(card.score)}</td>
      <td class="n">{count(card.rollouts)}</td>
    </tr>
  );
}

const keys: readonly (readonly [string, string])[] = [
  ["j  k", "next, previous group"],
  ["]  [", "next, previous step"],
  ["c", "next colouring of the tokens"],
  ["t", "tokens or text"],
  ["/", "search"],
  ["← →", "in a chart: along the steps; in tokens: along the tokens"],
  ["+  −", "in a chart: zoom, whole run"],
  ["?", "this list"],
];

function Help({ onClose }: { readonly onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="muted">Drag over a chart to zoom, double-click for the whole run. Every address can be kept and opened again.</p>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </dialog>
  );
}

const root = document.getElementById("app");
unpack().then(
  () => root && render(<App />, root),
  (error: Error) => root && render(<Fault text={`What this file holds cannot be unpacked: ${error.message}`} />, root),
);
