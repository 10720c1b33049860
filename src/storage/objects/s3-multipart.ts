// A large body in parts, a few at a time; the object shows when the parts are completed, and with `ifNoneMatch`
// only then is it known whether the key was free. A failed upload is aborted, so that parts don't cost for ever.
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { FloeError } from '../../base/error.ts';
import { Semaphore } from '../../base/queue.ts';
import { bodySize } from './keys.ts';
import type { PutOptions } from './object-store.ts';
import { PARALLEL_PARTS } from './prices.ts';
import { joined, type S3Context } from './s3-context.ts';

/** S3's limit of parts. */
const MAX_PARTS = 10_000;

/** Uploads `parts` (any sizes) as one object. Errors as of a put; `timeout` only from the completion. */
export async function putMultipart(
  context: S3Context,
  parts: readonly Uint8Array[],
  options: PutOptions,
): Promise<void> {
  const target = { Bucket: context.bucket, Key: context.fullKey };
  const { UploadId } = await context.ask('part', (abortSignal) =>
    context.client.send(
      new CreateMultipartUploadCommand({
        ...target,
        ...(options.contentType === undefined ? {} : { ContentType: options.contentType }),
      }),
      { abortSignal },
    ),
  );
  if (UploadId === undefined) throw new FloeError('unavailable', 'the store gave no upload id');
  let completing = false;
  try {
    const uploaded = await uploadParts(
      context,
      UploadId,
      cutParts(parts, partBytes(context, parts)),
    );
    completing = true;
    await context.ask('put', (abortSignal) =>
      context.client.send(
        new CompleteMultipartUploadCommand({
          ...target,
          UploadId,
          MultipartUpload: { Parts: uploaded },
          ...(options.ifNoneMatch === true ? { IfNoneMatch: '*' } : {}),
        }),
        { abortSignal },
      ),
    );
  } catch (caught) {
    const error = FloeError.from(caught);
    // After an unknown completion the object may be there; aborting could only fail.
    if (!(completing && error.code === 'timeout')) await abort(context, UploadId);
    throw error;
  }
}

const partBytes = (context: S3Context, parts: readonly Uint8Array[]): number =>
  Math.max(context.settings['s3.part.bytes'], Math.ceil(bodySize(parts) / MAX_PARTS));

async function uploadParts(
  context: S3Context,
  UploadId: string,
  pieces: readonly (readonly Uint8Array[])[],
): Promise<{ PartNumber: number; ETag: string }[]> {
  const slots = new Semaphore(PARALLEL_PARTS);
  const upload = (piece: readonly Uint8Array[], index: number) =>
    slots.run(async () => {
      const Body = joined(piece);
      // A part sent twice is the same part, so a lost reply is no unknown outcome.
      const { ETag } = await context.ask('part', (abortSignal) =>
        context.client.send(
          new UploadPartCommand({
            Bucket: context.bucket,
            Key: context.fullKey,
            UploadId,
            PartNumber: index + 1,
            Body,
            ContentLength: Body.length,
          }),
          { abortSignal },
        ),
      );
      return { PartNumber: index + 1, ETag: ETag ?? '' };
    });
  const settled = await Promise.allSettled(pieces.map(upload));
  return settled.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/** Cuts a body into pieces of exactly `size` bytes (the last may be shorter), without copying. */
export function cutParts(
  parts: readonly Uint8Array[],
  size: number,
): readonly (readonly Uint8Array[])[] {
  const pieces: Uint8Array[][] = [];
  let piece: Uint8Array[] = [];
  let room = size;
  for (const part of parts) {
    for (let at = 0; at < part.length; ) {
      const cut = part.subarray(at, at + room);
      piece.push(cut);
      at += cut.length;
      room -= cut.length;
      if (room === 0) {
        pieces.push(piece);
        piece = [];
        room = size;
      }
    }
  }
  if (piece.length > 0) pieces.push(piece);
  return pieces;
}

async function abort(context: S3Context, UploadId: string): Promise<void> {
  try {
    await context.ask('delete', (abortSignal) =>
      context.client.send(
        new AbortMultipartUploadCommand({ Bucket: context.bucket, Key: context.fullKey, UploadId }),
        { abortSignal },
      ),
    );
  } catch {
    // Best effort: the bucket's lifecycle rule for incomplete uploads is the net below.
  }
}

/**
 * Aborts uploads under the context's key that began before `beforeMs` and never ended: those of processes that died, whose
 * parts would be paid for until the bucket's lifecycle rule finds them. @returns how many.
 */
export async function abortUploads(context: S3Context, beforeMs: number): Promise<number> {
  let aborted = 0;
  for await (const { key, uploadId } of oldUploads(context, beforeMs)) {
    await abort({ ...context, fullKey: key }, uploadId);
    aborted += 1;
  }
  return aborted;
}

/** How many {@link abortUploads} would give up. */
export async function countUploads(context: S3Context, beforeMs: number): Promise<number> {
  let count = 0;
  for await (const _upload of oldUploads(context, beforeMs)) count += 1;
  return count;
}

async function* oldUploads(
  context: S3Context,
  beforeMs: number,
): AsyncGenerator<{ readonly key: string; readonly uploadId: string }> {
  let marker: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } = {};
  for (;;) {
    const page = await context.ask('list', (abortSignal) =>
      context.client.send(
        new ListMultipartUploadsCommand({
          Bucket: context.bucket,
          Prefix: context.fullKey,
          ...marker,
        }),
        { abortSignal },
      ),
    );
    for (const { Key, UploadId, Initiated } of page.Uploads ?? []) {
      if (Key === undefined || UploadId === undefined) continue;
      if ((Initiated?.getTime() ?? Infinity) >= beforeMs) continue;
      yield { key: Key, uploadId: UploadId };
    }
    if (page.IsTruncated !== true) return;
    marker = {
      ...(page.NextKeyMarker === undefined ? {} : { KeyMarker: page.NextKeyMarker }),
      ...(page.NextUploadIdMarker === undefined ? {} : { UploadIdMarker: page.NextUploadIdMarker }),
    };
  }
}
