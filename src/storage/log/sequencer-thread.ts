// The sequencer's thread: holds the data directory's lock, the SQLite store and the local WAL. Flushes come as
// messages of typed arrays; other metadata calls come on ports of their own (metadata/remote.ts) and take their turn
// between flushes in the event loop. Entry point of a worker; see sequencer-client.ts for the other end.
import { join } from 'node:path';
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../base/clock.ts';
import { type ErrorShape, errorToShape } from '../../base/error.ts';
import { createLogger, type LogLevel } from '../../base/log.ts';
import type { FlushRow } from '../../metadata/log.ts';
import { serveMetadata } from '../../metadata/remote.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { lockDataDir } from './data-dir-lock.ts';
import { nodeDisk } from './disk.ts';
import { type SequencerHost, type SequencerSettings, startSequencer } from './sequencer-host.ts';
import type { FlushReply, FlushRequest } from './sequencer-port.ts';
import { type SharedSlabs, SlabPool } from './slab.ts';

/** Given at birth. */
export interface SequencerThreadData {
  readonly dataDir: string;
  readonly logLevel: LogLevel;
  readonly producerExpirationMs: number;
}

export type ToSequencer =
  | { readonly kind: 'metadata'; readonly port: MessagePort }
  | {
      readonly kind: 'start';
      readonly settings: SequencerSettings;
      readonly slabs: SharedSlabs;
      /** Directory of the local WAL; undefined when flushes arrive durable. */
      readonly walRoot?: string;
    }
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

/** The database's file within the data directory. */
export const METADATA_FILE = 'metadata.db';

const port = parentPort;
if (port !== null) run(port, workerData as SequencerThreadData);

function run(port: MessagePort, data: SequencerThreadData): void {
  const say = (message: FromSequencer, transfer: ArrayBuffer[] = []) =>
    port.postMessage(message, transfer);
  try {
    const lock = lockDataDir(data.dataDir);
    const metadata = openSqliteMetadata(join(data.dataDir, METADATA_FILE), {
      producerExpirationMs: data.producerExpirationMs,
    });
    serve(port, say, { metadata, logger: createLogger(data.logLevel), lock });
    say({ kind: 'opened' });
  } catch (caught) {
    say({ kind: 'refused', error: errorToShape(caught) });
  }
}

interface Opened {
  readonly metadata: ReturnType<typeof openSqliteMetadata>;
  readonly logger: ReturnType<typeof createLogger>;
  readonly lock: ReturnType<typeof lockDataDir>;
}

function serve(
  port: MessagePort,
  say: (message: FromSequencer, transfer?: ArrayBuffer[]) => void,
  { metadata, logger, lock }: Opened,
): void {
  let host: SequencerHost | undefined;
  const start = ({ settings, slabs, walRoot }: Extract<ToSequencer, { kind: 'start' }>) => {
    try {
      host = startSequencer({
        settings,
        metadata,
        slabs: SlabPool.attach(slabs),
        clock: systemClock,
        logger,
        ...(walRoot === undefined ? {} : { disk: nodeDisk(walRoot) }),
        onSealed: (objectId) => say({ kind: 'sealed', objectId }),
        onMarkers: (commit) => say({ kind: 'markers', commit }),
      });
      say({ kind: 'started' });
    } catch (caught) {
      say({ kind: 'refused', error: errorToShape(caught) });
    }
  };
  const stop = async () => {
    await host?.stop();
    metadata.database.checkpoint();
    metadata.close();
    lock.release();
    say({ kind: 'stopped' });
    port.close();
  };
  port.on('message', (message: ToSequencer) => {
    switch (message.kind) {
      case 'metadata':
        serveMetadata(metadata, message.port);
        return;
      case 'start':
        start(message);
        return;
      case 'flush':
        host!.sequencer.submit(message.request).then(
          (reply) => say({ kind: 'reply', id: message.id, reply }, [reply.columns.buffer]),
          (caught) => say({ kind: 'error', id: message.id, error: errorToShape(caught) }),
        );
        return;
      case 'retire':
        host!.sequencer.retireFiles(message.keys).then(
          () => say({ kind: 'reply', id: message.id, reply: undefined }),
          (caught) => say({ kind: 'error', id: message.id, error: errorToShape(caught) }),
        );
        return;
      case 'roll':
        host!.sequencer.roll().then(
          () => say({ kind: 'reply', id: message.id, reply: undefined }),
          (caught) => say({ kind: 'error', id: message.id, error: errorToShape(caught) }),
        );
        return;
      case 'stop':
        void stop();
        return;
    }
  });
}
