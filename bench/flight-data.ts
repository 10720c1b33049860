// The flights as Protobuf and as JSON Schema records behind Confluent's header, in files that the C client replays: made
// once, in the peers' folder of test data. Avro and plain JSON are made by the peers' own script.
// Not for: reading them (connect/ has converters for the Connect sink, Floe's own decoders know the schemas by id).
import { createWriteStream, existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { FLIGHT_SCHEMA, type Flight, readFlights } from '../src/cli/flights.ts';
import { scratchFolder } from './peers.ts';

const FLIGHTS = 3_000_000;
const BATCH = 50_000;

/** Schemas in the order in which a registry gets them: their ids stand in the files. */
export const FLIGHT_SCHEMAS = [
  { format: 'avro', id: 1, schemaType: 'AVRO', schema: FLIGHT_SCHEMA },
  {
    format: 'protobuf',
    id: 2,
    schemaType: 'PROTOBUF',
    schema: `syntax = "proto3";
package floe.bench;
import "google/protobuf/timestamp.proto";
message Flight {
  google.protobuf.Timestamp date = 1;
  sint64 delay = 2;
  int64 distance = 3;
  string origin = 4;
  string destination = 5;
}
`,
  },
  {
    format: 'jsonschema',
    id: 3,
    schemaType: 'JSON',
    schema: JSON.stringify({
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: {
        date: { type: 'string', format: 'date-time' },
        delay: { type: 'integer' },
        distance: { type: 'integer' },
        origin: { type: 'string' },
        destination: { type: 'string' },
      },
      additionalProperties: false,
    }),
  },
] as const;

/** Appends to a buffer that is handed out and begun anew. */
class Bytes {
  #buffer = Buffer.allocUnsafe(2 ** 16);
  #at = 0;

  byte(value: number): void {
    this.#reserve(1);
    this.#buffer[this.#at++] = value;
  }

  varint(value: number): void {
    let rest = value;
    for (; rest > 127; rest = Math.floor(rest / 128)) this.byte((rest % 128) | 128);
    this.byte(rest);
  }

  text(tag: number, value: string): void {
    this.byte(tag);
    this.varint(value.length);
    this.#reserve(value.length);
    this.#at += this.#buffer.write(value, this.#at, 'latin1');
  }

  take(): Buffer {
    const taken = Buffer.from(this.#buffer.subarray(0, this.#at));
    this.#at = 0;
    return taken;
  }

  #reserve(length: number): void {
    if (this.#at + length <= this.#buffer.length) return;
    const larger = Buffer.allocUnsafe(2 * this.#buffer.length + length);
    this.#buffer.copy(larger, 0, 0, this.#at);
    this.#buffer = larger;
  }
}

const zigzag = (value: number) => (value < 0 ? -2 * value - 1 : 2 * value);

/** A record in Protobuf: header, message index 0, then the fields that aren't 0. */
function protobufOf(flight: Flight, bytes: Bytes): Buffer {
  for (const one of [0, 0, 0, 0, 2, 0]) bytes.byte(one);
  const { date, delay, distance, origin, destination } = flight;
  const seconds = new Bytes();
  seconds.byte(0x08);
  seconds.varint(Math.floor(date / 1_000));
  const timestamp = seconds.take();
  bytes.byte(0x0a);
  bytes.varint(timestamp.length);
  for (const one of timestamp) bytes.byte(one);
  if (delay !== 0) {
    bytes.byte(0x10);
    bytes.varint(zigzag(delay));
  }
  if (distance !== 0) {
    bytes.byte(0x18);
    bytes.varint(distance);
  }
  bytes.text(0x22, origin);
  bytes.text(0x2a, destination);
  return bytes.take();
}

const JSON_HEADER = Buffer.from([0, 0, 0, 0, 3]);

function jsonOf(flight: Flight): Buffer {
  const date = new Date(flight.date).toISOString().replace('.000Z', 'Z');
  return Buffer.concat([JSON_HEADER, Buffer.from(JSON.stringify({ ...flight, date }))]);
}

/** Makes `name` of the test data unless it is there: each record behind four bytes of length. */
async function makeFile(name: string, encode: (flight: Flight) => Buffer): Promise<void> {
  const path = join(scratchFolder, 'data', name);
  if (existsSync(path)) return;
  const out = createWriteStream(`${path}.tmp`);
  for await (const flights of readFlights(FLIGHTS, BATCH)) {
    const parts: Buffer[] = [];
    for (const flight of flights) {
      const body = encode(flight);
      const length = Buffer.allocUnsafe(4);
      length.writeUInt32BE(body.length);
      parts.push(length, body);
    }
    out.write(Buffer.concat(parts));
  }
  out.end();
  await finished(out);
  renameSync(`${path}.tmp`, path);
}

/** Makes the files of the formats that the peers' script doesn't know. */
export async function makeFlightData(): Promise<void> {
  const bytes = new Bytes();
  await makeFile('flights.protobuf.framed', (flight) => protobufOf(flight, bytes));
  await makeFile('flights.jsonschema.framed', jsonOf);
}
