// JSON whose numbers keep the digits they were written with, so that a default of 2^63−1 survives the registry.
// Not for: hot paths; a schema is parsed once.

/** A number kept as its source text because a double can't hold it or would print it otherwise. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Json = null | boolean | number | string | JsonNumber | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Levels of nesting that are read; a deeper text would overflow the stack of whoever walks it. */
const MAX_DEPTH = 500;

type Reviver = (
  this: unknown,
  key: string,
  value: unknown,
  context?: { source?: string },
) => unknown;

/**
 * Parses JSON in which comments (`//` and C style) are white space: Avro's Java parser takes them, so schemas have them.
 * @throws SyntaxError on anything else, or on more than {@link MAX_DEPTH} levels.
 */
export function parseJson(source: string): Json {
  const text = withoutComments(source);
  const keepDigits: Reviver = (_key, value, context) =>
    typeof value === 'number' && context?.source !== undefined && String(value) !== context.source
      ? new JsonNumber(context.source)
      : value;
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown) as Json;
}

/** Compact JSON; the inverse of {@link parseJson} up to white space and escapes. */
export function formatJson(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(formatJson).join(',')}]`;
  if (isObject(value)) {
    const entries = Object.entries(value).map(
      ([key, item]) => `${JSON.stringify(key)}:${formatJson(item)}`,
    );
    return `{${entries.join(',')}}`;
  }
  return JSON.stringify(value);
}

export function isObject(value: Json | undefined): value is JsonObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof JsonNumber)
  );
}

/** The number, whatever its spelling; undefined for everything else. */
export function toNumber(value: Json | undefined): number | undefined {
  if (typeof value === 'number') return value;
  return value instanceof JsonNumber ? Number(value.text) : undefined;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|[[{\]}]/g;

/** Blanks comments and, since it looks at every bracket anyway, checks the depth. */
function withoutComments(text: string): string {
  let depth = 0;
  return text.replaceAll(TOKEN, (token) => {
    if (token.startsWith('/')) return ' ';
    if (token === '[' || token === '{') depth += 1;
    else if (token === ']' || token === '}') depth -= 1;
    if (depth > MAX_DEPTH) throw new SyntaxError(`nested deeper than ${MAX_DEPTH} levels`);
    return token;
  });
}
