// How much garbage threads may gather before it is collected, and when that begins (decision 0017). The front thread gets its
// own limit by a flag of the process (`--max-semi-space-size`, in MiB), which V8 would put above every thread's own.
import { setFlagsFromString } from 'node:v8';

/** For `new Worker`: a young generation of three semi-spaces of 4 MiB each; what threads make is dead at once. */
export const THREAD_LIMITS = { maxYoungGenerationSizeMb: 12 } as const;

/** Takes the process's flag back, whose work is done once the front's heap exists: before any thread is started. */
export function freeThreadLimits(): void {
  setFlagsFromString('--max-semi-space-size=0');
}

/**
 * Of every thread: to mark the old generation begins when half of what it may grow by is full. V8's own rule looks at what is
 * free beside the size of the young generation; a small old one beside the front's 16 MiB was marked again and again.
 */
export function markWhenHalfFull(): void {
  setFlagsFromString('--incremental-marking-soft-trigger=50');
  setFlagsFromString('--incremental-marking-hard-trigger=20');
}
