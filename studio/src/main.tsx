// The page: what is around the views, and which of them is shown.

import { render, type JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./style.css";
import { UNKNOWN } from "./api";
import { PLACES, listenToKeys } from "./keys";
import { useRoute, type Route } from "./route";
import { settings, showTheme, type Theme } from "./settings";
import { Empty } from "./parts/basics";
import { DoorView } from "./views/door";
import { InstanceView } from "./views/instance";
import { InstancesView } from "./views/instances";
import { LettersView } from "./views/letters";
import { OverviewView } from "./views/overview";
import { PausesView } from "./views/pauses";
import { SchedulesView } from "./views/schedules";
import { SettingsView } from "./views/settings";
import { TaskView } from "./views/task";
import { TasksView } from "./views/tasks";
import { WorkersView } from "./views/workers";
import { WorkflowView, WorkflowsView } from "./views/workflow";

function view(route: Route): JSX.Element {
  const [place, first, second] = route.parts;
  switch (place) {
    case undefined:
      return <OverviewView />;
    case "instances":
      return first && second ? <InstanceView key={`${first}/${second}`} workflow={first} id={second} route={route} /> : <InstancesView route={route} />;
    case "workflows":
      return first ? <WorkflowView key={first} name={first} route={route} /> : <WorkflowsView />;
    case "tasks":
      return first ? <TaskView key={first} id={first} /> : <TasksView route={route} />;
    case "dead-letters":
      return <LettersView route={route} />;
    case "pauses":
      return <PausesView />;
    case "schedules":
      return <SchedulesView route={route} />;
    case "workers":
      return <WorkersView />;
    case "settings":
      return <SettingsView />;
    default:
      return (
        <>
          <h1>Nowhere</h1>
          <Empty>There is no such place here. The menu leads to those that there are.</Empty>
        </>
      );
  }
}

const THEMES: Theme[] = ["system", "light", "dark"];

function ThemeSwitch(): JSX.Element {
  const [theme, set] = useState(settings.theme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  const change = () => {
    settings.theme = next;
    set(next);
  };
  return (
    <button type="button" class="theme" onClick={change} aria-label={`Theme: ${theme}. Change to ${next}.`} title={`Theme: ${theme}`}>
      {theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐"}
    </button>
  );
}

function Help({ onClose }: { onClose: () => void }): JSX.Element {
  return (
    <aside class="help" aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {PLACES.map(([key, title]) => (
          <div key={key}>
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>j</kbd> <kbd>k</kbd>
          </dt>
          <dd>next and previous row</dd>
        </div>
        <div>
          <dt>
            <kbd>←</kbd> <kbd>→</kbd>
          </dt>
          <dd>one event back and forth, in an instance</dd>
        </div>
        <div>
          <dt>
            <kbd>Home</kbd> <kbd>End</kbd>
          </dt>
          <dd>its first and its last event</dd>
        </div>
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>search</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>out of a field, a dialog, this list</dd>
        </div>
      </dl>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </aside>
  );
}

/** Whether the server knows who looks. Elsewhere it is asked again: a token may have been given meanwhile. */
function useKnown(place: string): [boolean, () => void] {
  const [known, know] = useState(true);
  useEffect(() => know(true), [place]);
  useEffect(() => {
    const refuse = () => know(false);
    addEventListener(UNKNOWN, refuse);
    return () => removeEventListener(UNKNOWN, refuse);
  }, []);
  return [known, () => know(true)];
}

/** Another place begins at its top; and if the link that led there is gone, its content has the focus. */
function useArrival(place: string): void {
  const before = useRef(place);
  useEffect(() => {
    if (before.current === place) return;
    before.current = place;
    scrollTo(0, 0);
    if (document.activeElement === document.body) document.getElementById("content")?.focus({ preventScroll: true });
  }, [place]);
}

function App(): JSX.Element {
  const route = useRoute();
  const [help, showHelp] = useState(false);
  const [menu, showMenu] = useState(false);
  useEffect(() => {
    showMenu(false);
    showHelp(false);
  }, [route.parts.join("/")]);
  useEffect(() => listenToKeys({ onHelp: () => showHelp((shown) => !shown), onEscape: () => showHelp(false) }), []);
  const here = `#/${route.parts[0] ?? ""}`;
  const title = PLACES.find(([, , where]) => where === here)?.[1] ?? "mainspring";
  useEffect(() => {
    document.title = [route.parts.slice(1).join("/"), title, "mainspring studio"].filter(Boolean).join(" · ");
  }, [route]);
  useArrival(route.parts.join("/"));
  const [known, letIn] = useKnown(route.parts.join("/"));
  const toContent = (event: Event) => {
    // Its link has no address of its own here: what stands behind the # is where one is.
    event.preventDefault();
    document.getElementById("content")?.focus();
  };
  return (
    <>
      <a class="skip" href="#content" onClick={toContent}>
        To the content
      </a>
      <nav class={menu ? "places open" : "places"} aria-label="Places">
        <span class="brand">mainspring</span>
        <button type="button" class="menu" aria-expanded={menu} onClick={() => showMenu(!menu)}>
          {title} ▾
        </button>
        {PLACES.map(([key, name, where]) => (
          <a key={key} href={where} aria-current={where === here ? "page" : undefined} title={`g ${key}`}>
            {name}
          </a>
        ))}
        <span class="grow" />
        <div class="tools">
          <button type="button" onClick={() => showHelp(!help)} aria-label="Keys" aria-expanded={help} title="Keys: ?">
            ?
          </button>
          <ThemeSwitch />
        </div>
      </nav>
      <main id="content" tabIndex={-1} aria-label={title}>
        {known || here === "#/settings" ? view(route) : <DoorView onLetIn={letIn} />}
      </main>
      {help && <Help onClose={() => showHelp(false)} />}
    </>
  );
}

showTheme();
const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
