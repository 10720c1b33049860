// A result as bytes, by media type: one JSON document, JSON lines, CSV, or an Arrow IPC stream.
import type { DuckDBDataChunk } from '@duckdb/node-api';
import { FloeError } from '../../base/error.ts';
import { arrowStream } from '../arrow.ts';
import { csvLine } from '../csv.ts';
import type { QueryResult } from '../service.ts';
import { type JsonValue, toJson } from '../values.ts';

export interface ResultWriter {
  readonly mediaType: string;
  /** Sent as one document. */
  readonly whole: boolean;
  write(
    result: QueryResult,
    limits: { readonly maxRows: number },
  ): AsyncIterable<string | Uint8Array>;
}

const rowsOf = (chunk: DuckDBDataChunk): JsonValue[][] =>
  chunk.getRows().map((row) => row.map(toJson));

/** Whole before the first byte is sent, so that an error on the way is still an error. */
async function* json(result: QueryResult, { maxRows }: { readonly maxRows: number }) {
  const parts: string[] = [];
  let rows = 0;
  for await (const chunk of result.chunks()) {
    rows += chunk.rowCount;
    if (rows > maxRows) {
      throw new FloeError(
        'exhausted',
        `the result has more than ${maxRows} rows (sql.max.result.rows): add LIMIT, or ask for application/x-ndjson, text/csv or Arrow`,
      );
    }
    for (const row of rowsOf(chunk)) parts.push(JSON.stringify(row));
  }
  yield `{"columns":${JSON.stringify(result.columns)},"rows":[`;
  for (let from = 0; from < parts.length; from += 1000)
    yield (from === 0 ? '' : ',') + parts.slice(from, from + 1000).join(',');
  yield ']}';
}

async function* ndjson(result: QueryResult) {
  const names = uniqueNames(result.columns.map((column) => column.name));
  for await (const chunk of result.chunks()) {
    let text = '';
    for (const row of rowsOf(chunk)) {
      const object = Object.fromEntries(row.map((value, index) => [names[index]!, value]));
      text += `${JSON.stringify(object)}\n`;
    }
    yield text;
  }
}

/** Object keys must differ: the second `a` becomes `a_1`. */
export function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>();
  return names.map((name) => {
    let unique = name;
    for (let n = 1; used.has(unique); n += 1) unique = `${name}_${n}`;
    used.add(unique);
    return unique;
  });
}

async function* csv(result: QueryResult) {
  yield csvLine(result.columns.map((column) => column.name));
  for await (const chunk of result.chunks()) {
    let text = '';
    for (const row of rowsOf(chunk)) text += csvLine(row);
    yield text;
  }
}

export const writers: readonly ResultWriter[] = [
  { mediaType: 'application/json', whole: true, write: json },
  { mediaType: 'application/x-ndjson', whole: false, write: ndjson },
  { mediaType: 'application/ndjson', whole: false, write: ndjson },
  { mediaType: 'application/jsonl', whole: false, write: ndjson },
  { mediaType: 'text/csv', whole: false, write: csv },
  { mediaType: 'application/vnd.apache.arrow.stream', whole: false, write: arrowStream },
];

/** The writer that an Accept header asks for; JSON without one. Undefined when none fits. */
export function chooseWriter(accept: string | undefined): ResultWriter | undefined {
  if (accept === undefined || accept.trim() === '') return writers[0];
  const wanted = accept
    .split(',')
    .map((part) => {
      const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      const quality = parameters.find((parameter) => parameter.startsWith('q='));
      return { type, quality: quality === undefined ? 1 : Number(quality.slice(2)) };
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality);
  for (const { type } of wanted) {
    const found = writers.find(
      ({ mediaType }) =>
        mediaType === type ||
        type === '*/*' ||
        (type.endsWith('/*') && mediaType.startsWith(type.slice(0, -1))),
    );
    if (found !== undefined) return found;
  }
  return undefined;
}
