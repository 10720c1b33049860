// Metadata across a thread border: the store's thread serves it on a port, any other thread calls it there.
// Plain data in, plain data out; errors keep their code. Not for: the sequencer's flushes (own messages).
import type { MessagePort } from 'node:worker_threads';
import { type ErrorShape, errorFromShape, errorToShape, FloeError } from '../base/error.ts';
import type { Metadata } from './metadata.ts';

interface Call {
  readonly id: number;
  readonly domain: string;
  readonly method: string;
  readonly args: readonly unknown[];
}

type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: ErrorShape };

/** Serves `metadata` to whoever holds the other end of `port`. */
export function serveMetadata(metadata: Metadata, port: MessagePort): void {
  port.on('message', (call: Call) => {
    void answer(metadata, call).then((reply) => port.postMessage(reply));
  });
}

async function answer(metadata: Metadata, { id, domain, method, args }: Call): Promise<Reply> {
  try {
    const target = (metadata as unknown as Record<string, Record<string, unknown>>)[domain];
    const call = target?.[method];
    if (typeof call !== 'function')
      throw new FloeError('unsupported', `metadata has no ${domain}.${method}`);
    return { id, value: await call.apply(target, args) };
  } catch (caught) {
    return { id, error: errorToShape(caught) };
  }
}

/** `domain.method`, of every method that there is. */
type MethodName = {
  readonly [D in keyof Metadata & string]: `${D}.${keyof Metadata[D] & string}`;
}[keyof Metadata & string];

const raising: readonly MethodName[] = [
  'topics.create',
  'topics.addPartitions',
  'topics.delete',
  'topics.alterConfig',
  'topics.alterBrokerConfig',
  'resourceConfigs.alter',
  'security.alterCredentials',
  'security.alterAcls',
  'quotas.alter',
  'log.deleteRecords',
];

/** Calls that raise a version for somebody who waits: what nodes keep copies of has changed once they have succeeded. */
const RAISING: ReadonlySet<string> = new Set(raising);

/**
 * A Metadata whose every call crosses `port`. Closing the port fails what is under way with `unavailable`.
 * @param onRaised called after each call that has raised a version, before its caller goes on.
 */
export function connectMetadata(port: MessagePort, onRaised: () => void = () => {}): Metadata {
  const waiting = new Map<
    number,
    { resolve(value: unknown): void; reject(error: FloeError): void; readonly raises: boolean }
  >();
  let nextId = 0;
  let closed = false;
  port.on('message', (reply: Reply) => {
    const caller = waiting.get(reply.id);
    waiting.delete(reply.id);
    if ('error' in reply) {
      caller?.reject(errorFromShape(reply.error));
      return;
    }
    if (caller?.raises === true) onRaised();
    caller?.resolve(reply.value);
  });
  port.on('close', () => {
    closed = true;
    for (const caller of waiting.values()) caller.reject(gone());
    waiting.clear();
  });
  const call = (domain: string, method: string, args: readonly unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      if (closed) {
        reject(gone());
        return;
      }
      const id = nextId++;
      waiting.set(id, { resolve, reject, raises: RAISING.has(`${domain}.${method}`) });
      port.postMessage({ id, domain, method, args } satisfies Call);
    });
  return new Proxy({} as Metadata, {
    get: (_target, domain) => remoteDomain(String(domain), call),
  });
}

const gone = () => new FloeError('unavailable', 'the metadata thread has stopped');

function remoteDomain(
  domain: string,
  call: (domain: string, method: string, args: readonly unknown[]) => Promise<unknown>,
) {
  return new Proxy(
    {},
    {
      get:
        (_target, method) =>
        (...args: unknown[]) =>
          call(domain, String(method), args),
    },
  );
}
