// The thread in which compaction by key takes batches apart, so that neither the front nor the sequencer waits for it.
// Entry point of a worker; range-cleaner-client.ts is the other end, range-cleaner.ts what it does.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { type ErrorShape, errorToShape } from '../../base/error.ts';
import { type CleanedRange, LocalRangeCleaner, type RangeCleaner } from './range-cleaner.ts';

/** Given at birth. */
export interface CleanerThreadData {
  readonly clusterTag: Uint8Array;
  readonly maxDecompressedBytes: number;
}

/** Calls are the methods of RangeCleaner; one is under way at a time. */
export interface CleanerCall {
  readonly method: 'begin' | 'pass' | 'addKeys' | 'clean' | 'end';
  readonly args: readonly unknown[];
}

export type CleanerReply = { readonly value: unknown } | { readonly error: ErrorShape };

const port = parentPort;
if (port !== null) serve(port, workerData as CleanerThreadData);

function serve(port: MessagePort, { clusterTag, maxDecompressedBytes }: CleanerThreadData): void {
  const cleaner: RangeCleaner = new LocalRangeCleaner(clusterTag, maxDecompressedBytes);
  port.on('message', ({ method, args }: CleanerCall) => {
    const call = cleaner[method] as (...args: readonly unknown[]) => Promise<unknown>;
    call.apply(cleaner, args as unknown[]).then(
      (value) => {
        const moved =
          method === 'clean' ? [(value as CleanedRange).bytes.buffer as ArrayBuffer] : [];
        port.postMessage({ value } satisfies CleanerReply, moved);
      },
      (caught) => port.postMessage({ error: errorToShape(caught) } satisfies CleanerReply),
    );
  });
}
