// Keeps this process until a piece of work is done. Pauses between attempts and idle connections don't: a command that
// waits for a store to be well again would otherwise end in the middle, with exit code 13 and no reason.

/** Longer than any work; it never goes off. */
const LONG_MS = 2 ** 31 - 1;

export async function stayingAlive<T>(work: () => Promise<T>): Promise<T> {
  const hold = setInterval(() => {}, LONG_MS);
  try {
    return await work();
  } finally {
    clearInterval(hold);
  }
}
