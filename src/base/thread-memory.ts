// How much garbage a helper thread may gather before it is collected.
// The front thread gets its own, larger, limit by a flag of the process (`--max-semi-space-size`, decision 0017).

/** For `new Worker`: a young generation of three semi-spaces of 4 MiB each; what threads make is dead at once. */
export const THREAD_LIMITS = { maxYoungGenerationSizeMb: 12 } as const;
