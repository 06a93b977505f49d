// Settings: who acts here, and how it looks.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answered } from "../api";
import { useDoing } from "../hooks";
import { Card, ProblemBox } from "../parts/basics";
import { settings, type Theme } from "../settings";

// What a header of HTTP can carry; a name with other letters needs a token, whose name the server knows.
const SENDABLE = /^[\x20-\x7e\xa0-\xff]*$/;

export function SettingsView(): JSX.Element {
  const [token, setToken] = useState(settings.token);
  const [actor, setActor] = useState(settings.actor);
  const [theme, setTheme] = useState(settings.theme);
  const [said, say] = useState("");
  const doing = useDoing();
  const fits = SENDABLE.test(actor);
  const save = async () => {
    settings.token = token;
    settings.actor = actor;
    say("");
    if (await doing.run(() => answered("stats"))) say("The server lets you in.");
  };
  return (
    <>
      <h1>Settings</h1>
      <Card title="Who you are">
        <form
          class="fields"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <label>
            Token
            <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
            <small>Kept for this tab only. Without one, the server takes you for somebody at its own machine, if it allows that.</small>
          </label>
          <label>
            Name
            <input type="text" value={actor} onInput={(event) => setActor(event.currentTarget.value)} aria-invalid={!fits} />
            <small>
              {fits
                ? "Recorded as the actor of what you do here, where no token says who you are."
                : "A name without a token can have Latin letters only."}
            </small>
          </label>
          <ProblemBox problem={doing.problem} />
          <div class="actions">
            <span role="status">{said}</span>
            <button type="submit" class="main" disabled={doing.busy || !fits}>
              Save
            </button>
          </div>
        </form>
      </Card>
      <Card title="How it looks">
        <label class="inline">
          Theme
          <select
            value={theme}
            onChange={(event) => {
              settings.theme = event.currentTarget.value as Theme;
              setTheme(settings.theme);
            }}
          >
            <option value="system">as the system</option>
            <option value="light">light</option>
            <option value="dark">dark</option>
          </select>
        </label>
      </Card>
      <p class="faint">
        The page uses the work of others: <a href="./licences.txt">their licences</a>.
      </p>
    </>
  );
}
