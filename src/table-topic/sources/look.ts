// A look at records for the schemas they name, before there is a table to decode them for.
import type { RecordCursor } from '../../protocol/record-cursor.ts';
import type { JobConfig } from '../job.ts';
import type { Side } from './source.ts';
import {
  HeaderMarks,
  LATEST_KEY,
  readMessageIndexes,
  SchemaMark,
  type SourceKey,
  sourceKey,
} from './wire.ts';

/** Source keys asked for at once; further ones are found when the job comes again. */
export const MAX_NEEDED = 256;

/** Messages noted per schema: of values that only look like Protobuf every one would differ. */
const MAX_MESSAGES = 16;

export class SchemaLook {
  readonly values = new Set<SourceKey>();
  readonly keys = new Set<SourceKey>();
  readonly #named: readonly Side[];
  readonly #marks = new HeaderMarks();
  readonly #mark = new SchemaMark();
  readonly #messages = new Map<string, number>();

  constructor(config: JobConfig) {
    const value = config['table.topic.convert.value.type'];
    const key = config['table.topic.convert.key.type'];
    if (value === 'by_latest_schema') this.values.add(LATEST_KEY);
    if (key === 'by_latest_schema') this.keys.add(LATEST_KEY);
    const named: Side[] = [];
    if (value === 'by_schema_id') named.push('value');
    if (key === 'by_schema_id') named.push('key');
    this.#named = named;
  }

  /** Whether records say anything. */
  get looks(): boolean {
    return this.#named.length > 0;
  }

  get size(): number {
    return this.values.size + this.keys.size;
  }

  /** Notes what the record at the cursor names. */
  at(cursor: RecordCursor): void {
    if (!this.looks) return;
    this.#marks.scan(cursor);
    for (const side of this.#named) this.#side(cursor, side);
  }

  #side({ bytes, valueStart, valueLength, keyStart, keyLength }: RecordCursor, side: Side): void {
    const own = side === 'value' ? [valueStart, valueLength] : [keyStart, keyLength];
    const inHeader = this.#marks.startOf(side) >= 0;
    const start = inHeader ? this.#marks.startOf(side) : own[0]!;
    const length = inHeader ? this.#marks.lengthOf(side) : own[1]!;
    if (own[1]! < 0 || !this.#mark.read(bytes, start, start + length)) return;
    const message = readMessageIndexes(bytes, this.#mark.end, start + length)?.message ?? '';
    const key = sourceKey(this.#mark.schema, message);
    const keys = side === 'value' ? this.values : this.keys;
    const noted = `${side} ${this.#mark.schema}`;
    const count = this.#messages.get(noted) ?? 0;
    if (keys.has(key) || count >= MAX_MESSAGES) return;
    this.#messages.set(noted, count + 1);
    keys.add(key);
  }
}
