// Before everything else, where the server asks who somebody is: the token, and then what the address says.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answered } from "../api";
import { useDoing } from "../hooks";
import { Card, ProblemBox } from "../parts/basics";
import { settings } from "../settings";

export function DoorView({ onLetIn }: { onLetIn: () => void }): JSX.Element {
  const [token, set] = useState("");
  const doing = useDoing();
  const knock = async () => {
    settings.token = token;
    if (await doing.run(() => answered("stats"))) onLetIn();
  };
  return (
    <>
      <h1>Who are you?</h1>
      <Card title="Show a token">
        <form
          class="fields"
          onSubmit={(event) => {
            event.preventDefault();
            void knock();
          }}
        >
          <label>
            Token
            <input type="password" autocomplete="off" value={token} onInput={(event) => set(event.currentTarget.value)} />
            <small>Kept for this tab only. Where a proxy says who you are, it does not know you: ask whoever runs it.</small>
          </label>
          <ProblemBox problem={doing.problem} />
          <div class="actions">
            <button type="submit" class="main" disabled={doing.busy || !token.trim()}>
              Go in
            </button>
          </div>
        </form>
      </Card>
    </>
  );
}
