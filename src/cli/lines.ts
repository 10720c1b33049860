// Lines of a file or of standard input, with a limit on their length.
import { createReadStream } from 'node:fs';
import { FloeError } from '../base/error.ts';

/** Longest line, bytes; more than any broker takes as one record by default. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Each line without its end; a last line without newline counts, an empty last one doesn't. `-` is stdin. */
export async function* readLines(path: string): AsyncGenerator<Buffer> {
  const input = path === '-' ? process.stdin : createReadStream(path, { highWaterMark: 1 << 20 });
  let rest: Buffer = Buffer.alloc(0);
  let number = 1;
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      let data = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10)) {
        yield data.subarray(0, end);
        data = data.subarray(end + 1);
        number += 1;
      }
      if (data.length > MAX_LINE_BYTES) {
        throw new FloeError(
          'exhausted',
          `line ${number} of ${path} is longer than ${MAX_LINE_BYTES} bytes`,
        );
      }
      rest = data;
    }
  } catch (caught) {
    throw FloeError.from(caught, `reading ${path}`);
  }
  if (rest.length > 0) yield rest;
}
