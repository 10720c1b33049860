// A port that nobody listens on, for servers of tests that can't choose one themselves or come back under the same one.
// Below those that systems give to outgoing connections (Linux: from 32768): one of these could sit on the port of a server
// that is down for a moment, for as long as it lives.
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

const [FROM, TO] = [10_000, 32_768];
const TRIES = 100;

/** On 127.0.0.1; somebody else may take it before the caller does. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const port = randomInt(FROM, TO);
    if (await isFree(port)) return port;
  }
  throw new Error(`none of ${TRIES} ports of 127.0.0.1 could be listened on`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
