// The keyboard, for who works here all day.

import { moveFocus } from "./parts/list";
import { go } from "./route";

export const PLACES: [key: string, title: string, where: string][] = [
  ["o", "Overview", "#/"],
  ["i", "Instances", "#/instances"],
  ["w", "Workflows", "#/workflows"],
  ["t", "Tasks", "#/tasks"],
  ["d", "Dead letters", "#/dead-letters"],
  ["s", "Schedules", "#/schedules"],
  ["p", "Pauses", "#/pauses"],
  ["k", "Workers", "#/workers"],
  ["e", "Settings", "#/settings"],
];
const SECOND_KEY_MS = 1_500;

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName));
}

/** Listen to keys; `onHelp` is called for "?". */
export function listenToKeys({ onHelp, onEscape }: { onHelp: () => void; onEscape: () => void }): () => void {
  let begun = 0;
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      if (isWriting(event.target)) (event.target as HTMLElement).blur();
      else onEscape();
    }
    if (isWriting(event.target)) return;
    if (begun && event.timeStamp - begun < SECOND_KEY_MS) {
      begun = 0;
      const place = PLACES.find(([key]) => key === event.key);
      if (place) return go(place[2]);
    }
    begun = event.key === "g" ? event.timeStamp : 0;
    if (event.key === "j") moveFocus(1);
    else if (event.key === "k") moveFocus(-1);
    else if (event.key === "?") onHelp();
    else if (event.key === "/") {
      const search = document.querySelector<HTMLElement>("[data-search]");
      if (search) {
        event.preventDefault();
        search.focus();
      } else go("#/instances");
    }
  };
  addEventListener("keydown", pressed);
  return () => removeEventListener("keydown", pressed);
}
