// A progress bar on a terminal; elsewhere nothing, so that logs stay readable.
import { Presets, SingleBar } from 'cli-progress';

export interface Progress {
  add(count: number): void;
  stop(): void;
}

export function startProgress(label: string, total: number): Progress {
  if (!process.stderr.isTTY) return { add() {}, stop() {} };
  const bar = new SingleBar(
    {
      format: `${label} {bar} {percentage}% | {value}/{total} | {eta_formatted} left`,
      stream: process.stderr,
      hideCursor: true,
    },
    Presets.shades_classic,
  );
  bar.start(total, 0);
  return { add: (count) => bar.increment(count), stop: () => bar.stop() };
}
