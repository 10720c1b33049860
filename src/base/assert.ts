// Assertions for programmer errors: a failed one is a bug and ends the process (nothing catches it on purpose).
// Not for: the outside world (FloeError) or a client's mistake (a Kafka error code in the reply).

/** Thrown when Floe itself is wrong. Never translated into a reply: see lifecycle's `crash`. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws when `condition` is false. `message` names the invariant, e.g. "L2: offsets ascend". */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(`assertion failed: ${message}`);
}

/** For the default branch of an exhaustive switch: does not compile while a case is missing. */
export function unreachable(value: never, what = 'case'): never {
  throw new AssertionError(`unreachable ${what}: ${JSON.stringify(value)}`);
}
