// What the metadata store says of all tables, as a node of a cluster knows it that coordinates few of them: names and
// states for status and queries, committed positions for retention. Read whole every few seconds; positions only while
// somebody asks for them. Old by as much, and that is safe: a position only rises, and an unknown one holds everything.
// Not for: tables that this node coordinates (their coordinator knows better).
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { TableLanesMetadata } from '../metadata/table-lanes.ts';
import type { TableRecord, TablesMetadata } from '../metadata/tables.ts';

export interface TableRecordsDeps {
  readonly tables: TablesMetadata;
  readonly words: TableLanesMetadata;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Between two readings. */
const REFRESH_MS = 2_000;
/** Between two readings of positions: there is one per partition. */
const POSITIONS_MS = 10_000;
/** Positions are read for this long after somebody asked for one. */
const ASKED_MS = 120_000;

export class TableRecords implements Component {
  readonly #deps: TableRecordsDeps;
  #records: ReadonlyMap<string, TableRecord> = new Map();
  /** Committed ends by topic id and partition index. */
  #committed: ReadonlyMap<string, ReadonlyMap<number, number>> = new Map();
  /** Monotonic. */
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #positionsAtMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #reading: Promise<void>;
  #stopped = false;

  constructor(deps: TableRecordsDeps) {
    this.#deps = deps;
    this.#reading = this.#read();
  }

  /** Undefined for a topic that has no table, or none that was known at the last reading. */
  get(topicId: string): TableRecord | undefined {
    return this.#records.get(topicId);
  }

  all(): Iterable<TableRecord> {
    return this.#records.values();
  }

  /** Undefined while it isn't known. */
  committedEnd(topicId: string, partition: number): number | undefined {
    this.#askedAtMs = this.#deps.clock.monotonic();
    return this.#committed.get(topicId)?.get(partition);
  }

  /** Reads now. @throws FloeError as the metadata store does. */
  async refresh(): Promise<void> {
    const { tables, words, clock } = this.#deps;
    const records = await tables.list();
    this.#records = new Map(records.map((record) => [record.topicId, record]));
    const now = clock.monotonic();
    if (now - this.#askedAtMs > ASKED_MS) {
      this.#committed = new Map();
      return;
    }
    if (this.#committed.size > 0 && now - this.#positionsAtMs < POSITIONS_MS) return;
    this.#positionsAtMs = now;
    const found = await words.positions(records.map(({ topicId }) => topicId));
    this.#committed = new Map(
      found.map(({ topicId, positions }) => [
        topicId,
        new Map(positions.map(({ partition, committedEnd }) => [partition, committedEnd])),
      ]),
    );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#reading;
  }

  async #read(): Promise<void> {
    try {
      await this.refresh();
    } catch (caught) {
      // What was known stays: it is only older.
      this.#deps.logger.debug({ error: FloeError.from(caught).message }, 'tables not read');
    }
    if (this.#stopped) return;
    this.#timer = this.#deps.clock.setTimer(REFRESH_MS, () => {
      this.#reading = this.#read();
    });
  }
}
