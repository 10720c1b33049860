// The sequencer's thread: holds the data directory's lock and what sequencer-backend.ts or postgres-backend.ts open
// (SQLite and the local WAL, or connections to PostgreSQL). Flushes come as messages of typed arrays; other metadata
// calls come on ports of their own (metadata/remote.ts) and take their turn between flushes in the event loop. Entry
// point of a worker; see sequencer-client.ts for the other end.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type ErrorShape, errorToShape } from '../../base/error.ts';
import { createLogger, type LogLevel } from '../../base/log.ts';
import type { FlushRow } from '../../metadata/log.ts';
import { serveMetadata } from '../../metadata/remote.ts';
import { lockDataDir } from './data-dir-lock.ts';
import {
  type BackendStart,
  type MetadataChoice,
  openSqliteBackend,
  type SequencerBackend,
} from './sequencer-backend.ts';
import type { FlushReply, FlushRequest, SequencerPort } from './sequencer-port.ts';

/** Given at birth. */
export interface SequencerThreadData {
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly producerExpirationMs: number;
  readonly metadata: MetadataChoice;
}

export type ToSequencer =
  | { readonly kind: 'metadata'; readonly port: MessagePort }
  | ({ readonly kind: 'start' } & Omit<BackendStart, 'onSealed' | 'onMarkers'>)
  | { readonly kind: 'flush'; readonly id: number; readonly request: FlushRequest }
  | { readonly kind: 'retire'; readonly id: number; readonly keys: readonly string[] }
  | { readonly kind: 'roll'; readonly id: number }
  | { readonly kind: 'stop' };

export type FromSequencer =
  | { readonly kind: 'opened' | 'started' | 'stopped' }
  | { readonly kind: 'refused'; readonly error: ErrorShape }
  | { readonly kind: 'reply'; readonly id: number; readonly reply: FlushReply | undefined }
  | { readonly kind: 'error'; readonly id: number; readonly error: ErrorShape }
  | { readonly kind: 'sealed'; readonly objectId: number }
  | { readonly kind: 'markers'; readonly commit: FlushRow };

const port = parentPort;
if (port !== null) void run(port, workerData as SequencerThreadData);

async function run(port: MessagePort, data: SequencerThreadData): Promise<void> {
  const say = (message: FromSequencer, transfer: ArrayBuffer[] = []) =>
    port.postMessage(message, transfer);
  try {
    const lock = lockDataDir(data.dataDir);
    serve(port, say, { backend: await openBackend(data), lock });
    say({ kind: 'opened' });
  } catch (caught) {
    say({ kind: 'refused', error: errorToShape(caught) });
  }
}

async function openBackend(data: SequencerThreadData): Promise<SequencerBackend> {
  const { metadata, logLevel } = data;
  const options = { ...data, logger: createLogger(logLevel) };
  if (metadata.kind === 'sqlite') return openSqliteBackend(options);
  // One node alone needs no client of PostgreSQL in memory.
  const { openPostgresBackend } = await import('./postgres-backend.ts');
  return openPostgresBackend(metadata, options);
}

interface Opened {
  readonly backend: SequencerBackend;
  readonly lock: ReturnType<typeof lockDataDir>;
}

function serve(
  port: MessagePort,
  say: (message: FromSequencer, transfer?: ArrayBuffer[]) => void,
  { backend, lock }: Opened,
): void {
  let sequencer: SequencerPort | undefined;
  const start = (message: Extract<ToSequencer, { kind: 'start' }>) => {
    try {
      sequencer = backend.start({
        ...message,
        onSealed: (objectId) => say({ kind: 'sealed', objectId }),
        onMarkers: (commit) => say({ kind: 'markers', commit }),
      });
      say({ kind: 'started' });
    } catch (caught) {
      say({ kind: 'refused', error: errorToShape(caught) });
    }
  };
  const stop = async () => {
    await backend.stop();
    lock.release();
    say({ kind: 'stopped' });
    port.close();
  };
  const answer = (id: number, work: Promise<FlushReply | undefined>) =>
    work.then(
      (reply) => {
        const transfer = reply === undefined ? [] : [reply.columns.buffer];
        say({ kind: 'reply', id, reply }, transfer);
      },
      (caught) => say({ kind: 'error', id, error: errorToShape(caught) }),
    );
  port.on('message', (message: ToSequencer) => {
    switch (message.kind) {
      case 'metadata':
        serveMetadata(backend.metadata, message.port);
        return;
      case 'start':
        start(message);
        return;
      case 'flush':
        void answer(message.id, sequencer!.submit(message.request));
        return;
      case 'retire':
        void answer(message.id, sequencer!.retireFiles(message.keys).then(nothing));
        return;
      case 'roll':
        void answer(message.id, sequencer!.roll().then(nothing));
        return;
      case 'stop':
        void stop();
        return;
    }
  });
}

const nothing = (): undefined => undefined;
