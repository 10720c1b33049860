// A large body in parts, a few at a time; the object shows when the parts are completed, and with `ifNoneMatch`
// only then is it known whether the key was free. A failed upload is aborted, so that parts don't cost for ever.
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { FloeError } from '../../base/error.ts';
import { Semaphore } from '../../base/queue.ts';
import { bodySize } from './keys.ts';
import type { PutOptions } from './object-store.ts';
import { joined, type S3Context } from './s3-context.ts';

/** S3's limit of parts. */
const MAX_PARTS = 10_000;
const PARALLEL_PARTS = 4;

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
