// Table topics: what each table is, how far its topic is staged and committed, and the stages between the two.
// A *stage* is what one worker job made of one or more partitions: exact offset ranges, files, dead letters.
// Stages chain: each starts at its partitions' staged ends, entered by compare-and-set (rule T1).
// The table itself is the truth about what is committed; the committed positions here are a copy of it.
// Files are opaque text here (table-topic/stage.ts reads and writes it).

/** Where a table stands; table-topic/SPEC.md has the transitions. Only what must survive a restart is stored. */
export interface TableRecord {
  readonly topicId: string;
  readonly topicName: string;
  readonly namespace: readonly string[];
  readonly table: string;
  /** Empty until the table exists. */
  readonly tableUuid: string;
  /** Raised by replace, recreate and rewind: ranges staged under an older one are void. */
  readonly generation: number;
  /** Raised by every claim; one coordinator holds the newest (rule T6). */
  readonly epoch: number;
  readonly paused: boolean;
  /** Last reported state and its reason, for people. */
  readonly state: string;
  readonly reason: string;
}

/** How far one partition is: next offset to stage and next offset to commit. */
export interface TablePosition {
  readonly partition: number;
  readonly stagedEnd: number;
  readonly committedEnd: number;
}

/** A gap inside a staged range: offsets that hold no record for the table, and why. */
export interface RangeGap {
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly reason: 'retention' | 'aborted' | 'absent';
}

/** Offsets `start` to `end` (exclusive) of one partition, by partition index. */
export interface StagedRange {
  readonly partition: number;
  readonly start: number;
  readonly end: number;
  /** First offset whose dead letters are in this stage; below it they are committed already. */
  readonly deadLettersFrom: number;
  readonly gaps: readonly RangeGap[];
}

/** Where a dead letter is kept: a table committed by its own watermark, or a topic appended to with the stage. */
export type LetterPlace = 'table' | 'topic';

/** Offsets of one partition whose records became dead letters, ascending. */
export interface StagedLetters {
  readonly partition: number;
  readonly offsets: readonly number[];
}

/** The dead letters that are known of one partition: not tried again, and never kept a second time. */
export interface OpenLetters {
  readonly partition: number;
  readonly count: number;
  /** After the last one. */
  readonly end: number;
}

/**
 * Dead letters that were turned into rows by a commit under this id, whose outcome may not be known yet. Noted before
 * the commit is sent, so that its letters are never tried again once it has landed.
 */
export interface Replay {
  readonly commitId: string;
  /** `main`'s snapshot (decimal text, empty for none) that the newest request under this id asserted. */
  readonly parent: string;
  readonly letters: readonly StagedLetters[];
}

export interface StageRequest {
  /** Chosen by the job; staging it again, or the same ranges again, is one stage. */
  readonly stageId: string;
  readonly topicId: string;
  readonly epoch: number;
  readonly generation: number;
  readonly tableUuid: string;
  readonly schemaId: number;
  readonly specId: number;
  readonly configEpoch: number;
  readonly ranges: readonly StagedRange[];
  /** Rows, dead letters, skipped records, for the counters. */
  readonly rows: number;
  readonly deadLetters: number;
  readonly skipped: number;
  /** Bytes of the files. */
  readonly bytes: number;
  /** Beginnings of the names of its files: their intents end when the stage enters. */
  readonly filePrefixes: readonly string[];
  /** The files, as table-topic/stage.ts writes them. */
  readonly payload: string;
  readonly nowMs: number;
  /** Dead letters that are new with this stage: one that is known already refuses it. */
  readonly letters?: { readonly place: LetterPlace; readonly of: readonly StagedLetters[] };
}

export interface Stage extends Omit<StageRequest, 'epoch' | 'letters'> {
  /** Ascending in the order of staging. */
  readonly sequence: number;
  /** A commit holding it was sent at least once: its files may only go by proof (rule T5). */
  readonly attempted: boolean;
}

/**
 * `staged`; `duplicate` when this stage, or one of the same ranges, is there already (the newcomer's files are left
 * to the sweep); `refused` when its ranges don't start at the staged ends, its generation or epoch is over, its files
 * are being swept, or one of its dead letters is known: read again from `positions`.
 */
export type StageOutcome =
  | { readonly kind: 'staged'; readonly sequence: number }
  | { readonly kind: 'duplicate'; readonly stageId: string }
  | { readonly kind: 'refused'; readonly positions: readonly TablePosition[] };

/** Names of files about to be written: all objects under `prefix` (rule M2). */
export interface Intent {
  readonly prefix: string;
  readonly topicId: string;
  /** 0: old enough whenever it is found (its topic is gone). */
  readonly createdMs: number;
  /** The table that the files were written for: the topic and the word about its table may be gone before them. */
  readonly namespace: readonly string[];
  readonly table: string;
  /**
   * `main`'s snapshot (decimal text, empty for none; after `dlq:` that of the dead-letter table) that the newest commit
   * request naming these files asserted: while it may still arrive they stay (rule T5). Null: no request named them.
   */
  readonly parent: string | null;
}

export interface TableCounters {
  /** Rows, dead letters and skipped records since the table began, counted when they are staged. */
  readonly rows: number;
  readonly deadLetters: number;
  readonly skipped: number;
  /** Offsets lost to retention before they were staged. */
  readonly lostOffsets: number;
  readonly files: number;
  readonly commits: number;
  /** 0 before the first commit. */
  readonly lastCommitMs: number;
  /** Decimal text of the snapshot id; empty before the first commit. */
  readonly lastSnapshotId: string;
}

export interface CommittedRequest {
  readonly topicId: string;
  readonly epoch: number;
  /** Stages that the table holds: they leave. */
  readonly sequences: readonly number[];
  /** Next offset to commit, by partition, as the table says. */
  readonly positions: readonly { readonly partition: number; readonly committedEnd: number }[];
  /** Set when a commit was made, unset when it was only found out. */
  readonly commit?: { readonly files: number; readonly nowMs: number; readonly snapshotId: string };
}

export interface TablesMetadata {
  list(): Promise<readonly TableRecord[]>;
  get(topicId: string): Promise<TableRecord | undefined>;
  /** Creates the record when missing, raises its epoch and returns it: the caller is coordinator now. */
  claim(
    request: Pick<TableRecord, 'topicId' | 'topicName' | 'namespace' | 'table'>,
  ): Promise<TableRecord>;
  /** Changes the record. @throws FloeError `conflict` when `epoch` isn't the newest; `not-found`. */
  update(
    topicId: string,
    epoch: number,
    changes: Partial<
      Pick<TableRecord, 'namespace' | 'table' | 'tableUuid' | 'paused' | 'state' | 'reason'>
    >,
  ): Promise<TableRecord>;
  /** Paused is an operator's word: any process may set it. @throws FloeError `not-found`. */
  setPaused(topicId: string, paused: boolean): Promise<void>;
  /** Positions by partition; missing partitions have none yet. */
  positions(topicId: string): Promise<readonly TablePosition[]>;
  /** Sets positions of partitions that have none; others keep theirs. */
  initPositions(
    topicId: string,
    positions: readonly { readonly partition: number; readonly offset: number }[],
  ): Promise<void>;
  stage(request: StageRequest): Promise<StageOutcome>;
  /** In order of staging; at most `limit`. */
  stages(topicId: string, limit: number): Promise<readonly Stage[]>;
  /** Notes that a commit holding these stages is about to be sent. @throws FloeError `conflict` (epoch). */
  markAttempted(
    topicId: string,
    epoch: number,
    attempt: {
      readonly sequences: readonly number[];
      /** As in {@link Intent}. */
      readonly parent: string;
    },
  ): Promise<void>;
  markCommitted(request: CommittedRequest): Promise<void>;
  /**
   * Drops all stages, raises the generation and puts both positions of the named partitions there.
   * File prefixes of the stages become intents again, so that their files are swept.
   */
  rewind(
    topicId: string,
    epoch: number,
    request: {
      readonly positions: readonly { readonly partition: number; readonly offset: number }[];
      readonly nowMs: number;
      /** How far the table of dead letters is: what it lacks was dropped with the stages. Missing partitions: 0. */
      readonly lettersCommitted?: ReadonlyMap<number, number>;
    },
  ): Promise<TableRecord>;
  /** Known dead letters of a topic, by partition; partitions without any are left out. */
  openLetters(topicId: string): Promise<readonly OpenLetters[]>;
  /** Those of `[from, to)` in one partition, ascending; at most `limit`. */
  letters(
    topicId: string,
    range: { readonly partition: number; readonly from: number; readonly to: number },
    limit: number,
  ): Promise<readonly number[]>;
  /** Forgets those below the offset: the log has no such record any more. @returns how many there were. */
  pruneLetters(topicId: string, partition: number, belowOffset: number): Promise<number>;
  /** Again for each further request under its id. @throws FloeError `conflict` (epoch). */
  beginReplay(topicId: string, epoch: number, replay: Replay): Promise<void>;
  /** Those without outcome. */
  replays(topicId: string): Promise<readonly Replay[]>;
  /** Landed: its letters are rows and no letters any more. Else they stay. @throws FloeError `conflict` (epoch). */
  endReplay(
    topicId: string,
    epoch: number,
    outcome: { readonly commitId: string; readonly landed: boolean },
  ): Promise<void>;
  counters(topicId: string): Promise<TableCounters>;
  /**
   * One that is there keeps its age, unless that was 0, and takes the newer parent, if any. `instead`: an intent that
   * goes in the same transaction.
   * @throws FloeError `conflict`, and none is kept: one of them is being swept, or `instead` is or was.
   */
  addIntents(intents: readonly Intent[], instead?: string): Promise<void>;
  /** Oldest first, then by prefix, created before `beforeMs`; those that follow `after` in this order. */
  intents(
    beforeMs: number,
    limit: number,
    after?: Pick<Intent, 'createdMs' | 'prefix'>,
  ): Promise<readonly Intent[]>;
  /**
   * Takes intents for sweeping: a stage or a request that names one of them is refused from now on, so whoever is second
   * loses. One that was named by a further request since (another parent) is left alone.
   * @returns prefixes of those that were still there.
   */
  claimIntents(intents: readonly Pick<Intent, 'prefix' | 'parent'>[]): Promise<readonly string[]>;
  dropIntents(prefixes: readonly string[]): Promise<void>;
}
