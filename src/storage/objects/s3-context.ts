// What single and multipart requests to S3 share: the client, the deadline, and how bytes are handed over.
import type { S3Client } from '@aws-sdk/client-s3';
import { crc32 } from '@node-rs/crc32';
import type { Values } from '../../base/settings.ts';
import type { S3Operation } from './s3-errors.ts';
import type { objectSettings } from './settings.ts';

export type S3Settings = Values<typeof objectSettings>;

/** What a request needs of its store: the SDK's client, names, and a deadline. */
export interface S3Context {
  readonly client: S3Client;
  readonly bucket: string;
  readonly settings: S3Settings;
  /** The key with the prefix before it. */
  readonly fullKey: string;
  /** Runs one request under the deadline and the caller's signal, errors translated. */
  ask<T>(operation: S3Operation, request: (signal: AbortSignal) => Promise<T>): Promise<T>;
}

/** Parts as one Buffer; a single part isn't copied, shared memory included. */
export function joined(parts: readonly Uint8Array[]): Buffer {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined)
    return Buffer.from(first.buffer, first.byteOffset, first.length);
  return Buffer.concat(parts);
}

/** Of parts end to end, in the form of S3's checksum headers. */
export function crc32Base64(parts: readonly Uint8Array[]): string {
  let sum = 0;
  for (const part of parts) sum = crc32(part, sum);
  const value = Buffer.alloc(4);
  value.writeUInt32BE(sum);
  return value.toString('base64');
}
