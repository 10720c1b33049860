// JSON Schema → text: compact JSON, members in the order they came, or sorted when normalised.
import { formatJson, isObject, type Json } from '../json.ts';
import type { ParsedJsonSchema } from './parse.ts';

/** The canonical text. */
export function jsonSchemaText({ json }: ParsedJsonSchema, normalize: boolean): string {
  return formatJson(normalize ? sorted(json) : json);
}

function sorted(json: Json): Json {
  if (Array.isArray(json)) return (json as readonly Json[]).map(sorted);
  if (!isObject(json)) return json;
  const entries = Object.entries(json).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, value]) => [key, sorted(value)]));
}
