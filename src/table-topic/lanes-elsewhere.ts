// A table's lanes on other nodes, as its coordinator sees them: told what to stage before a commit, waited for a while,
// never needed for a commit to be right. A node that is slow or dead costs its partitions a commit interval.
// Not for: what those lanes do (lane-host.ts), what they ask for (coordinator.ts).
import type { Clock } from '../base/clock.ts';
import type { Topic } from '../metadata/topics.ts';
import type { Log } from '../storage/log/log.ts';
import { readPartitions } from './lane-set.ts';
import type { TablePlacement } from './placement.ts';
import type { TableProgress } from './progress.ts';
import type { TableSettings } from './settings/index.ts';
import type { TableSession } from './table-session.ts';
import { tableVersion } from './table-version.ts';
import type { Offsets } from './watermark.ts';

export interface LanesElsewhereDeps {
  readonly placement: TablePlacement;
  readonly log: Log;
  readonly clock: Clock;
  readonly settings: TableSettings;
}

export interface LanesElsewhereTable {
  readonly topic: Topic;
  readonly session: TableSession;
  readonly progress: TableProgress;
}

export class LanesElsewhere {
  readonly #deps: LanesElsewhereDeps;
  readonly #table: LanesElsewhereTable;

  constructor(deps: LanesElsewhereDeps, table: LanesElsewhereTable) {
    this.#deps = deps;
    this.#table = table;
  }

  /** Records of other nodes' partitions wait to be committed. */
  behind(): boolean {
    const { topic, progress } = this.#table;
    return this.#partitions().some((partition) => {
      const marks = this.#deps.log.watermarks(topic.partitions[partition]!);
      return (
        marks !== undefined && (progress.committedEnd(partition) ?? 0) < marks.lastStableOffset
      );
    });
  }

  /** Orders `targets` to be staged and waits until they are: not for long, unless `patient`. */
  async stage(
    targets: Offsets,
    { patient, goesOn }: { readonly patient: boolean; readonly goesOn: () => boolean },
  ): Promise<void> {
    const { clock, settings, placement } = this.#deps;
    const { topic, session, progress } = this.#table;
    const others = new Map(this.#partitions().map((at) => [at, targets.get(at) ?? 0]));
    if (placement.words === undefined || !progress.isShortOf(others)) return;
    // They may have staged by themselves.
    await this.#look(others);
    if (!progress.isShortOf(others)) return;
    const short = [...others].filter((one) => progress.isShortOf(new Map([one])));
    await placement.words.order(topic.topicId, session.epoch, {
      version: tableVersion(session.binding!),
      targets: short.map(([partition, offset]) => ({ partition, offset })),
    });
    const until = clock.monotonic() + settings['table.lanes.wait.ms'];
    while (progress.isShortOf(others) && goesOn() && (patient || clock.monotonic() < until)) {
      await clock.sleep(settings['table.lanes.poll.ms']);
      await this.#look(others);
    }
  }

  async recount(): Promise<void> {
    if (this.#deps.placement.words === undefined || this.#partitions().length === 0) return;
    await this.#look(new Map());
  }

  /** Takes over what others staged, and how much waits. */
  async #look(others: Offsets): Promise<void> {
    const { progress, topic } = this.#table;
    const words = this.#deps.placement.words!;
    const [heads, positions] = await Promise.all([
      words.heads([topic.topicId]),
      words.positions([topic.topicId]),
    ]);
    for (const { partition, stagedEnd } of positions[0]?.positions ?? []) {
      // Own lanes know better what they have just staged.
      if (others.has(partition)) progress.setStagedEnd(partition, stagedEnd);
    }
    progress.stagedBytes = heads[0]?.stagedBytes ?? 0;
  }

  #partitions(): readonly number[] {
    const { topic } = this.#table;
    return readPartitions(topic, this.#deps.placement.lanesElsewhere(topic));
  }
}
