// One connection that speaks Kafka's protocol with our own definitions: for operator commands, which must show the
// broker's own words (ordinary clients drop error messages). Not for: data; `produce` and `consume` use a real client.
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { FloeError } from '../base/error.ts';
import { systemPrng } from '../base/prng.ts';
import {
  type AnyApi,
  decodeResponse,
  type Encodable,
  encodeRequest,
  FrameDecoder,
  type ResponseOf,
} from '../protocol/index.ts';
import { parseAddress } from './address.ts';
import { certificateFault, clientAuth } from './client-auth.ts';

const CONNECT_LIMIT_MS = 5_000;
const ANSWER_LIMIT_MS = 60_000;

/** A request with whatever has a default left out, at any depth. */
type Sent<A extends AnyApi> = Loose<Encodable<A['request']['schema']>>;

type Loose<T> = T extends readonly (infer E)[]
  ? readonly Loose<E>[]
  : T extends object
    ? { readonly [K in keyof T]?: Loose<T[K]> }
    : T;

export interface WireClient {
  /** Sends one request in `version` (the API's newest if not said) and waits for its answer. */
  ask<A extends AnyApi>(api: A, request: Sent<A>, version?: number): Promise<ResponseOf<A>>;
  close(): void;
}

/** Runs `work` on one connection to `server`. @throws FloeError that names the server when nobody answers. */
export async function withWire<T>(
  server: string,
  work: (client: WireClient) => Promise<T>,
): Promise<T> {
  const client = await openWire(server);
  try {
    const { login } = clientAuth();
    if (login !== undefined) {
      const { authenticate } = await import('./sasl-client.ts');
      await authenticate(client, login, systemPrng);
    }
    return await work(client);
  } finally {
    client.close();
  }
}

async function openWire(server: string): Promise<WireClient> {
  const socket = await open(server);
  const frames = new FrameDecoder(256 * 1024 * 1024);
  const waiting: { resolve(frame: Buffer): void; reject(error: Error): void }[] = [];
  let ended: Error | undefined;
  const fail = (error: Error) => {
    ended ??= error;
    for (const { reject } of waiting.splice(0)) reject(error);
  };
  socket.setTimeout(ANSWER_LIMIT_MS, () =>
    socket.destroy(new FloeError('timeout', `${server} doesn't answer`)),
  );
  socket.on('error', fail);
  socket.on('close', () => fail(new FloeError('unavailable', `${server} closed the connection`)));
  socket.on('data', (chunk) => {
    try {
      for (const frame of frames.push(chunk)) waiting.shift()?.resolve(frame);
    } catch (cause) {
      socket.destroy(notKafka(server, cause));
    }
  });
  let correlationId = 0;
  return {
    async ask(api, request, version = api.maxVersion) {
      // No event comes any more that would settle an answer.
      if (ended !== undefined) throw ended;
      const answer = new Promise<Buffer>((resolve, reject) => waiting.push({ resolve, reject }));
      correlationId += 1;
      for (const piece of encodeRequest({
        api,
        version,
        correlationId,
        clientId: 'floe-cli',
        // The encoder fills what is left out.
        request: request as never,
      })) {
        socket.write(piece);
      }
      const frame = await answer;
      try {
        return decodeResponse(api, version, frame).response;
      } catch (cause) {
        throw notKafka(server, cause);
      }
    },
    close: () => socket.destroy(),
  };
}

/** Bytes came that are no answer, such as an HTTP server's. */
function notKafka(server: string, cause: unknown): FloeError {
  const text = `what answers at ${server} doesn't speak Kafka's protocol: --server is the Kafka address`;
  return new FloeError('invalid', text, { cause });
}

function open(server: string): Promise<Socket> {
  const { host, port } = parseAddress('--server', server);
  return new Promise((resolve, reject) => {
    const socket = clientAuth().tls
      ? connectTls({ host, port, ...(isIP(host) === 0 ? { servername: host } : {}) })
      : connect({ host, port, noDelay: true });
    const connected = clientAuth().tls ? 'secureConnect' : 'connect';
    const failed = (cause?: unknown) => {
      socket.destroy();
      const certificate = certificateFault(cause);
      if (certificate !== undefined) {
        reject(new FloeError('unauthorized', `${server}: ${certificate}`, { cause }));
        return;
      }
      reject(
        new FloeError(
          'unavailable',
          `nothing answers at ${server}: is Floe running there? (--server HOST:PORT)`,
          { cause },
        ),
      );
    };
    socket.setTimeout(CONNECT_LIMIT_MS, failed);
    socket.once('error', failed);
    socket.once(connected, () => {
      socket.off('error', failed);
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}
