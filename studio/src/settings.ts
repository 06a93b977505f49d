// What somebody has chosen here. A token is kept for this tab only: whoever opens the browser later has to bring it again.

export type Theme = "system" | "light" | "dark";

const TOKEN = "mainspring.token";
const ACTOR = "mainspring.actor";
const THEME = "mainspring.theme";

/** Browsers may forbid a page to keep anything; then it forgets, and works all the same. */
function kept(storage: () => Storage, key: string): string {
  try {
    return storage().getItem(key) ?? "";
  } catch {
    return "";
  }
}

function keep(storage: () => Storage, key: string, value: string): void {
  try {
    if (value) storage().setItem(key, value);
    else storage().removeItem(key);
  } catch {
    // See above: nothing is lost but the convenience.
  }
}

const memory = {
  token: kept(() => sessionStorage, TOKEN),
  actor: kept(() => localStorage, ACTOR),
  theme: (kept(() => localStorage, THEME) || "system") as Theme,
};

export const settings = {
  get token(): string {
    return memory.token;
  },
  set token(value: string) {
    memory.token = value.trim();
    keep(() => sessionStorage, TOKEN, memory.token);
  },
  get actor(): string {
    return memory.actor;
  },
  set actor(value: string) {
    memory.actor = value.trim();
    keep(() => localStorage, ACTOR, memory.actor);
  },
  get theme(): Theme {
    return memory.theme;
  },
  set theme(value: Theme) {
    memory.theme = value;
    keep(() => localStorage, THEME, value === "system" ? "" : value);
    showTheme();
  },
};

/** The styles know both themes; an attribute says which, if the system's own is not wanted. */
export function showTheme(): void {
  const root = document.documentElement;
  if (memory.theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", memory.theme);
}
