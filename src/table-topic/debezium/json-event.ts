// Finds the parts of a Debezium event in JSON: positions, no values. With Connect's `{schema, payload}` around it or
// without, members in any order.
import { RowFailure } from '../../formats/arrow/row-failure.ts';
import { CLOSE_BRACE, type JsonCursor, OPEN_BRACE, QUOTE } from '../../formats/json/cursor.ts';
import { FieldTable } from '../../formats/json/field-table.ts';

/** Members that tell what an event is; all others are passed over. */
const NAMES = [
  'schema',
  'payload',
  'before',
  'after',
  'source',
  'op',
  'ts_ms',
  'ts_us',
  'status',
  'ddl',
  'tableChanges',
  'message',
] as const;

export type EventMember = (typeof NAMES)[number];

/** Number of `payload`, the last of the wrapper's members. */
const PAYLOAD = 1;

const table = new FieldTable(new Map(NAMES.map((name) => [name, name])));

/** Where a member's value stands; the last of duplicates. */
export interface Span {
  start: number;
  end: number;
}

/** The members of one object; kept and overwritten. */
export class EventMembers {
  readonly #spans = new Map<EventMember, Span>(NAMES.map((name) => [name, { start: -1, end: -1 }]));
  /** Members found, known or not. */
  count = 0;
  /** Nothing but Connect's `schema` and `payload`: the event is inside. */
  wrapped = false;

  /** The span of a member that is there and not null. */
  get(name: EventMember): Span | undefined {
    const span = this.#spans.get(name)!;
    return span.start < 0 ? undefined : span;
  }

  /**
   * Reads the object at the cursor. `skip` takes a value and says whether it holds anything.
   * @throws RowFailure when it is no object.
   */
  read(cursor: JsonCursor, skip: (name: EventMember) => boolean): void {
    for (const span of this.#spans.values()) span.start = -1;
    this.count = 0;
    this.wrapped = false;
    if (cursor.peek() !== OPEN_BRACE) RowFailure.raise('no Debezium event: not an object');
    cursor.pos++;
    if (cursor.peek() === CLOSE_BRACE) {
      cursor.pos++;
      return;
    }
    let expected = 0;
    let wrapper = true;
    do {
      if (cursor.peek() !== QUOTE) cursor.fail('a key expected');
      const index = table.take(cursor, expected);
      this.count++;
      if (index < 0) {
        wrapper = false;
        cursor.skipValue();
        continue;
      }
      expected = index + 1;
      if (index > PAYLOAD) wrapper = false;
      this.#note(cursor, table.entries[index]!, skip);
    } while (cursor.more(CLOSE_BRACE));
    this.wrapped = wrapper;
  }

  #note(cursor: JsonCursor, name: EventMember, skip: (name: EventMember) => boolean): void {
    const isNull = cursor.peek() === 0x6e;
    const span = this.#spans.get(name)!;
    const start = cursor.pos;
    skip(name);
    span.start = isNull ? -1 : start;
    span.end = cursor.pos;
  }
}

/** What Debezium sends beside changes, by the members it has; undefined for what isn't Debezium's. */
export function otherEvent(members: EventMembers): string | undefined {
  if (members.get('message') !== undefined) return 'a message of the database’s log';
  if (members.get('ddl') !== undefined || members.get('tableChanges') !== undefined) {
    return 'a schema change';
  }
  if (members.get('ts_ms') === undefined) return undefined;
  if (members.get('status') !== undefined) return 'transaction metadata';
  return members.count === 1 ? 'a heartbeat' : undefined;
}
