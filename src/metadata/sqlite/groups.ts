// Consumer groups on SQLite. See metadata/groups.ts for the contract.
// Offsets hang on their partition by a foreign key, so deleting a topic deletes them in the same transaction.
import {
  decodeConsumerMember,
  decodeMembers,
  encodeConsumerMember,
  encodeMembers,
} from '../group-members.ts';
import type {
  GroupChange,
  GroupsMetadata,
  LoadedGroup,
  StoredConsumerGroup,
  StoredGroup,
  StoredOffset,
} from '../groups.ts';
import type { LeaseToken } from '../leases.ts';
import { shardOf } from '../shards.ts';
import type { Database, Migration } from './database.ts';
import { assertLeases, type LeaseEpochs } from './lease-epochs.ts';

/** After the topics' migrations: offsets refer to partitions. */
export const groupsMigrations: readonly Migration[] = [
  {
    name: 'groups-1',
    sql: `
      CREATE TABLE groups (
        group_key INTEGER PRIMARY KEY, group_id TEXT NOT NULL UNIQUE, protocol_type TEXT NOT NULL,
        generation INTEGER NOT NULL, protocol TEXT, leader_id TEXT, members TEXT NOT NULL,
        state_since_ms INTEGER NOT NULL) STRICT;
      CREATE TABLE group_offsets (
        group_key INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
        partition_id INTEGER NOT NULL REFERENCES partitions ON DELETE CASCADE,
        committed_offset INTEGER NOT NULL, leader_epoch INTEGER NOT NULL, metadata TEXT NOT NULL,
        commit_ms INTEGER NOT NULL, expire_ms INTEGER NOT NULL,
        PRIMARY KEY (group_key, partition_id)) STRICT, WITHOUT ROWID;
      CREATE INDEX group_offsets_partition ON group_offsets (partition_id);`,
  },
  {
    // Consumer groups (KIP-848): `generation` is their epoch, members have rows of their own, as they change singly.
    name: 'groups-2',
    sql: `
      ALTER TABLE groups ADD COLUMN kind TEXT NOT NULL DEFAULT 'classic';
      ALTER TABLE groups ADD COLUMN assignment_epoch INTEGER NOT NULL DEFAULT 0;
      CREATE TABLE group_members (
        group_key INTEGER NOT NULL REFERENCES groups ON DELETE CASCADE,
        member_id TEXT NOT NULL, member TEXT NOT NULL,
        PRIMARY KEY (group_key, member_id)) STRICT, WITHOUT ROWID;
      CREATE TABLE group_lease (only INTEGER PRIMARY KEY CHECK (only = 1), epoch INTEGER NOT NULL) STRICT;
      INSERT INTO group_lease VALUES (1, 0);`,
  },
];

interface GroupRecord {
  group_key: number;
  group_id: string;
  protocol_type: string;
  generation: number;
  protocol: string | null;
  leader_id: string | null;
  members: string;
  state_since_ms: number;
  kind: 'classic' | 'consumer';
  assignment_epoch: number;
}
interface OffsetRecord {
  group_key: number;
  partition_id: number;
  committed_offset: number;
  leader_epoch: number;
  metadata: string;
  commit_ms: number;
  expire_ms: number;
}
interface MemberRecord {
  group_key: number;
  member_id: string;
  member: string;
}

/** Offsets that open transactions hold for groups. */
export interface StagedOffsetsStore {
  /** Forgets those of a group; part of the present database transaction. */
  dropStaged(groupId: string): void;
}

export class SqliteGroups implements GroupsMetadata {
  readonly #db: Database;
  readonly #staged: StagedOffsetsStore;
  readonly #leases: LeaseEpochs;

  constructor(db: Database, staged: StagedOffsetsStore, leases: LeaseEpochs) {
    this.#db = db;
    this.#staged = staged;
    this.#leases = leases;
  }

  async load(shards?: readonly number[]): Promise<readonly LoadedGroup[]> {
    const wanted = shards === undefined ? undefined : new Set(shards);
    return this.#db.transaction(() => {
      const offsets = byGroup(
        this.#db
          .prepare('SELECT * FROM group_offsets ORDER BY group_key, partition_id')
          .all() as unknown as OffsetRecord[],
      );
      const members = byGroup(
        this.#db
          .prepare('SELECT * FROM group_members ORDER BY group_key, member_id')
          .all() as unknown as MemberRecord[],
      );
      const groups = this.#db
        .prepare('SELECT * FROM groups ORDER BY group_id')
        .all() as unknown as GroupRecord[];
      const mine = groups.filter(
        ({ group_id }) => wanted === undefined || wanted.has(shardOf(group_id)),
      );
      return mine.map((row) => ({
        group:
          row.kind === 'classic'
            ? toGroup(row)
            : toConsumerGroup(row, members.get(row.group_key) ?? []),
        offsets: (offsets.get(row.group_key) ?? []).map(toOffset),
      }));
    });
  }

  async offsets(groupIds: readonly string[]): Promise<readonly (readonly StoredOffset[])[]> {
    const select = this.#db.prepare(
      `SELECT o.* FROM group_offsets o JOIN groups USING (group_key)
       WHERE group_id = ? ORDER BY partition_id`,
    );
    return groupIds.map((groupId) =>
      (select.all(groupId) as unknown as OffsetRecord[]).map(toOffset),
    );
  }

  async write(
    changes: readonly GroupChange[],
    leases: readonly LeaseToken[],
  ): Promise<readonly number[]> {
    return this.#db.transaction(() => {
      assertLeases(this.#leases, leases);
      const left: number[] = [];
      for (const change of changes) this.#apply(change, left);
      return left;
    });
  }

  #apply(change: GroupChange, left: number[]): void {
    switch (change.kind) {
      case 'group':
        this.#writeGroup(change.group);
        break;
      case 'consumer-group':
        this.#writeConsumerGroup(change);
        break;
      case 'offsets':
        left.push(...writeGroupOffsets(this.#db, change.groupId, change.offsets));
        break;
      case 'offsets-gone':
        for (const partitionId of change.partitionIds) {
          this.#db
            .prepare(
              `DELETE FROM group_offsets WHERE partition_id = ?
               AND group_key = (SELECT group_key FROM groups WHERE group_id = ?)`,
            )
            .run(partitionId, change.groupId);
        }
        break;
      case 'group-gone':
        this.#db.prepare('DELETE FROM groups WHERE group_id = ?').run(change.groupId);
        if (change.withStaged) this.#staged.dropStaged(change.groupId);
        break;
    }
  }

  #writeGroup(group: StoredGroup): void {
    const key = this.#writeHeader({
      groupId: group.groupId,
      kind: 'classic',
      protocolType: group.protocolType,
      generation: group.generation,
      assignmentEpoch: 0,
      protocol: group.protocol,
      leaderId: group.leaderId,
      members: encodeMembers(group.members),
      stateSinceMs: group.stateSinceMs,
    });
    this.#db.prepare('DELETE FROM group_members WHERE group_key = ?').run(key);
  }

  #writeConsumerGroup({
    group,
    whole,
    gone,
  }: Extract<GroupChange, { kind: 'consumer-group' }>): void {
    const key = this.#writeHeader({
      groupId: group.groupId,
      kind: 'consumer',
      protocolType: 'consumer',
      generation: group.epoch,
      assignmentEpoch: group.assignmentEpoch,
      protocol: null,
      leaderId: null,
      members: '[]',
      stateSinceMs: group.stateSinceMs,
    });
    if (whole) this.#db.prepare('DELETE FROM group_members WHERE group_key = ?').run(key);
    const remove = this.#db.prepare(
      'DELETE FROM group_members WHERE group_key = ? AND member_id = ?',
    );
    for (const memberId of gone) remove.run(key, memberId);
    const upsert = this.#db.prepare(
      `INSERT INTO group_members VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET member = excluded.member`,
    );
    for (const member of group.members)
      upsert.run(key, member.memberId, encodeConsumerMember(member));
  }

  #writeHeader(row: Header): number {
    const { group_key: key } = this.#db
      .prepare(
        `INSERT INTO groups (group_id, kind, protocol_type, generation, assignment_epoch, protocol, leader_id,
           members, state_since_ms)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (group_id) DO UPDATE SET
           kind = excluded.kind, protocol_type = excluded.protocol_type, generation = excluded.generation,
           assignment_epoch = excluded.assignment_epoch, protocol = excluded.protocol,
           leader_id = excluded.leader_id, members = excluded.members, state_since_ms = excluded.state_since_ms
         RETURNING group_key`,
      )
      .get(
        row.groupId,
        row.kind,
        row.protocolType,
        row.generation,
        row.assignmentEpoch,
        row.protocol,
        row.leaderId,
        row.members,
        row.stateSinceMs,
      ) as { group_key: number };
    return key;
  }
}

interface Header {
  readonly groupId: string;
  readonly kind: GroupRecord['kind'];
  readonly protocolType: string;
  readonly generation: number;
  readonly assignmentEpoch: number;
  readonly protocol: string | null;
  readonly leaderId: string | null;
  readonly members: string;
  readonly stateSinceMs: number;
}

/**
 * Writes committed positions, for whoever is in a transaction of its own: EndTxn applies staged offsets so.
 * @returns partition ids that were left out because their topic is deleted.
 */
export function writeGroupOffsets(
  db: Database,
  groupId: string,
  offsets: readonly StoredOffset[],
): readonly number[] {
  db.prepare(
    `INSERT INTO groups (group_id, protocol_type, generation, protocol, leader_id, members, state_since_ms)
     VALUES (?, '', 0, NULL, NULL, '[]', ?) ON CONFLICT DO NOTHING`,
  ).run(groupId, offsets[0]?.commitMs ?? 0);
  const key = db.prepare('SELECT group_key FROM groups WHERE group_id = ?').get(groupId)![
    'group_key'
  ]!;
  const insert = db.prepare(
    `INSERT INTO group_offsets
     SELECT ?1, partition_id, ?3, ?4, ?5, ?6, ?7 FROM partitions WHERE partition_id = ?2
     ON CONFLICT DO UPDATE SET committed_offset = excluded.committed_offset,
       leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, commit_ms = excluded.commit_ms,
       expire_ms = excluded.expire_ms`,
  );
  const left: number[] = [];
  for (const row of offsets) {
    const { changes } = insert.run(
      key,
      row.partitionId,
      row.offset,
      row.leaderEpoch,
      row.metadata,
      row.commitMs,
      row.expireMs,
    );
    if (changes === 0) left.push(row.partitionId);
  }
  return left;
}

function byGroup<Row extends { group_key: number }>(rows: readonly Row[]): Map<number, Row[]> {
  const groups = new Map<number, Row[]>();
  for (const row of rows) {
    const list = groups.get(row.group_key);
    if (list === undefined) groups.set(row.group_key, [row]);
    else list.push(row);
  }
  return groups;
}

const toOffset = (row: OffsetRecord): StoredOffset => ({
  partitionId: row.partition_id,
  offset: row.committed_offset,
  leaderEpoch: row.leader_epoch,
  metadata: row.metadata,
  commitMs: row.commit_ms,
  expireMs: row.expire_ms,
});

const toGroup = (row: GroupRecord): StoredGroup => ({
  kind: 'classic',
  groupId: row.group_id,
  protocolType: row.protocol_type,
  generation: row.generation,
  protocol: row.protocol,
  leaderId: row.leader_id,
  members: decodeMembers(row.members),
  stateSinceMs: row.state_since_ms,
});

const toConsumerGroup = (
  row: GroupRecord,
  members: readonly MemberRecord[],
): StoredConsumerGroup => ({
  kind: 'consumer',
  groupId: row.group_id,
  epoch: row.generation,
  assignmentEpoch: row.assignment_epoch,
  stateSinceMs: row.state_since_ms,
  members: members.map(({ member }) => decodeConsumerMember(member)),
});
