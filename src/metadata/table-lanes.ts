// What nodes say to one another about a table whose partitions are spread over them: the coordinator orders what is to be
// staged before its next commit, lanes elsewhere follow the table's head and ask for what only the coordinator may do.
// All of it is a help and none of it the truth: stages chain by compare-and-set (tables.ts), so a word that comes late,
// twice or never costs time and no row. Not used by a node that is alone.
import { FloeError } from '../base/error.ts';
import type { TablePosition } from './tables.ts';

/** What the coordinator wants staged before it commits. */
export interface StageOrder {
  /** Rises with each order; 0: the present coordinator gave none yet. */
  readonly number: number;
  /** What the table is like, as text: when it is another one, lanes load the table anew. */
  readonly version: string;
  /** Next offset to stage at least, of partitions that were short of it. */
  readonly targets: readonly { readonly partition: number; readonly offset: number }[];
}

/** A table as lanes on other nodes than its coordinator's follow it. */
export interface TableHead {
  readonly topicId: string;
  readonly tableUuid: string;
  readonly generation: number;
  readonly epoch: number;
  readonly paused: boolean;
  /** As last reported (tables.ts, TableRecord). */
  readonly state: string;
  /** Bytes of the stages that wait to be committed. */
  readonly stagedBytes: number;
  readonly order: StageOrder;
  /** Asks of this epoch that aren't answered yet, by id. */
  readonly asks: readonly string[];
}

/** Something that only the coordinator may do, wanted by a lane. */
export interface TableAsk {
  readonly askId: string;
  readonly topicId: string;
  /** As table-topic/lane-asks.ts writes it. */
  readonly payload: string;
}

/** Positions of one topic's partitions, by index. */
export interface TopicPositions {
  readonly topicId: string;
  readonly positions: readonly TablePosition[];
}

/** Asks that one table may have open: a lane has one at a time. */
export const MAX_ASKS = 1_000;

export interface TableLanesMetadata {
  /** Of those that have a table record. */
  heads(topicIds: readonly string[]): Promise<readonly TableHead[]>;
  /** Of those that have a table record; one without any position has none in it. */
  positions(topicIds: readonly string[]): Promise<readonly TopicPositions[]>;
  /** Takes the place of the order before. @returns its number. @throws FloeError `conflict` (epoch), `not-found`. */
  order(topicId: string, epoch: number, order: Omit<StageOrder, 'number'>): Promise<number>;
  /**
   * Keeps the ask until it is answered or the epoch is over. The same one twice is one.
   * @throws FloeError `conflict` (epoch), `not-found`, `exhausted` past {@link MAX_ASKS}.
   */
  ask(epoch: number, ask: TableAsk): Promise<void>;
  /** Open asks of the tables' present epochs, oldest first; at most `limit`. */
  asks(topicIds: readonly string[], limit: number): Promise<readonly TableAsk[]>;
  /** They were dealt with. @throws FloeError `conflict` (epoch), `not-found`. */
  answer(topicId: string, epoch: number, askIds: readonly string[]): Promise<void>;
}

/** What a table's head tells while its coordinator has ordered nothing. */
export const NO_ORDER: StageOrder = { number: 0, version: '', targets: [] };

/** @returns the error of an ask too many. */
export const tooManyAsks = (topicId: string): FloeError =>
  new FloeError(
    'exhausted',
    `topic ${topicId} has ${MAX_ASKS} open asks of lanes: its coordinator answers none`,
  );
