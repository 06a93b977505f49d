// Small charts. They are drawn from numbers; beside each stands what it says in words.

import type { JSX } from "preact";

const WIDTH = 300;
const HEIGHT = 80;

interface Series {
  name: string;
  values: number[];
}

/** Lines over time, all by one scale. */
export function Lines({ series, label }: { series: Series[]; label: string }): JSX.Element {
  const most = Math.max(1, ...series.flatMap((one) => one.values));
  const count = Math.max(2, ...series.map((one) => one.values.length));
  const path = (values: number[]) =>
    values.map((value, index) => `${index ? "L" : "M"}${((index / (count - 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (value / most) * (HEIGHT - 6)).toFixed(1)}`).join("");
  return (
    <svg class="chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {series.map((one) => (
        <path key={one.name} class={one.name} d={path(one.values)} vector-effect="non-scaling-stroke" />
      ))}
    </svg>
  );
}

/** A part of a whole. */
export function Meter({ share, label }: { share: number; label: string }): JSX.Element {
  return (
    <div class="meter" role="img" aria-label={label}>
      <span style={{ width: `${Math.min(1, Math.max(0, share)) * 100}%` }} />
    </div>
  );
}
