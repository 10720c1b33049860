// Avro values behind Confluent's header, as `floe produce` and the demo send them: what any serialiser does.
import avro from 'avsc';
import { FloeError } from '../base/error.ts';

export interface AvroEncoder {
  /** Magic 0, schema id, Avro binary. @throws FloeError `invalid` naming the field that doesn't fit. */
  encode(value: unknown): Buffer;
}

const HEADER_BYTES = 5;

export function avroEncoder(schemaText: string, schemaId: number): AvroEncoder {
  const type = avro.Type.forSchema(JSON.parse(schemaText) as avro.Schema);
  let scratch = Buffer.alloc(4096);
  const header = (buffer: Buffer) => {
    buffer.writeUInt8(0, 0);
    buffer.writeInt32BE(schemaId, 1);
  };
  header(scratch);
  return {
    encode(value) {
      let end = encodeInto(type, value, scratch);
      if (end < 0) {
        // avsc answers the missing bytes as a negative position.
        scratch = Buffer.alloc(2 * (scratch.length - end));
        header(scratch);
        end = encodeInto(type, value, scratch);
      }
      return Buffer.from(scratch.subarray(0, end));
    },
  };
}

function encodeInto(type: avro.Type, value: unknown, buffer: Buffer): number {
  try {
    return type.encode(value, buffer, HEADER_BYTES);
  } catch (caught) {
    const bad: string[] = [];
    type.isValid(value, { errorHook: (path) => bad.push(path.join('.')) });
    throw new FloeError(
      'invalid',
      `value does not fit the schema at ${bad[0] ?? '(root)'}: ${String(caught)}`,
    );
  }
}

/** Registers `schema` under `subject` and returns its id. */
export async function registerAvro(
  registry: string,
  subject: string,
  schema: string,
): Promise<number> {
  const base = /^https?:\/\//.test(registry) ? registry : `http://${registry}`;
  const response = await fetch(`${base}/subjects/${encodeURIComponent(subject)}/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
    body: JSON.stringify({ schema }),
  });
  const answer = (await response.json()) as { id?: number; message?: string };
  if (answer.id === undefined) {
    throw new FloeError(
      'invalid',
      `the registry refused the schema of ${subject}: ${answer.message ?? response.status}`,
    );
  }
  return answer.id;
}
