/** Dark, light, or as the system says; kept in the browser. */
export type Theme = "system" | "light" | "dark";

const themes: readonly Theme[] = ["system", "light", "dark"];
const key = "touchstone-theme";

/** A file opened from disk, or a browser that keeps nothing, has no storage. */
function stored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function themeNow(): Theme {
  return themes.find((theme) => theme === stored()) ?? "system";
}

function apply(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function nextTheme(): Theme {
  const shown = (document.documentElement.dataset.theme as Theme | undefined) ?? "system";
  const next = themes[(themes.indexOf(shown) + 1) % themes.length];
  try {
    localStorage.setItem(key, next);
  } catch {
    // It holds for this page then.
  }
  apply(next);
  return next;
}

apply(themeNow());
