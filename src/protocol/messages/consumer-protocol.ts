// What members of a classic group of type "consumer" tell each other through the broker: subscriptions when they
// join, assignments when the leader has made them. The broker looks inside only to know a group's topics.
// Both start with their version (i16); a newer one than we know reads as our newest, as its fields come later.
import { message } from '../compile.ts';
import { array, bytes, type Decoded, type Encodable, int32, string } from '../fields.ts';
import { malformed, Reader } from '../reader.ts';
import { Writer } from '../writer.ts';

const topicPartition = {
  topic: string,
  partitions: array(int32),
};

export const consumerSubscription = message({
  name: 'ConsumerProtocolSubscription',
  versions: '0-3',
  flexible: 'none',
  schema: {
    topics: array(string),
    userData: bytes.nullable().default(null),
    // What the member holds now (KIP-429), as of `generationId` (KIP-792).
    ownedPartitions: array(topicPartition).since(1).default([]),
    generationId: int32.since(2).default(-1),
    rackId: string.since(3).nullable().default(null),
  },
});

export const consumerAssignment = message({
  name: 'ConsumerProtocolAssignment',
  versions: '0-3',
  flexible: 'none',
  schema: {
    assignedPartitions: array(topicPartition),
    userData: bytes.nullable().default(null),
  },
});

export interface ConsumerSubscription extends Decoded<typeof consumerSubscription.schema> {}
export interface ConsumerAssignment extends Decoded<typeof consumerAssignment.schema> {}

const NEWEST = 3;

/** @throws FloeError `invalid` when the bytes are no subscription: not every member's are. */
export function decodeSubscription(metadata: Uint8Array): ConsumerSubscription {
  const reader = new Reader(metadata);
  return consumerSubscription.decode(reader, readVersion(reader));
}

export function encodeSubscription(
  value: Encodable<typeof consumerSubscription.schema>,
  version = NEWEST,
): Buffer {
  const writer = new Writer();
  writer.int16(version);
  consumerSubscription.encode(writer, value, version);
  return Buffer.concat(writer.finish());
}

/** As {@link decodeSubscription}. */
export function decodeAssignment(assignment: Uint8Array): ConsumerAssignment {
  const reader = new Reader(assignment);
  return consumerAssignment.decode(reader, readVersion(reader));
}

export function encodeAssignment(
  value: Encodable<typeof consumerAssignment.schema>,
  version = NEWEST,
): Buffer {
  const writer = new Writer();
  writer.int16(version);
  consumerAssignment.encode(writer, value, version);
  return Buffer.concat(writer.finish());
}

function readVersion(reader: Reader): number {
  const version = reader.int16();
  if (version < 0) throw malformed(`consumer protocol version ${version}`);
  return Math.min(version, NEWEST);
}
