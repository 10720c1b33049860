// Consumer groups on PostgreSQL. See metadata/groups.ts for the contract.
// A write locks its leases first, then groups, then partitions and offsets in the order of their keys. All statements of
// a write are sent at once; offsets of many groups in one. Offsets hang on their partition by a foreign key.

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
import { clientText, storedText } from '../text.ts';
import type { Database, Transaction } from './database.ts';
import { assertLeases } from './leases.ts';
import type { Migration } from './migrations.ts';

/** After the topics' migrations: offsets refer to partitions. */
export const groupsMigrations: readonly Migration[] = [
  {
    name: 'groups-1',
    sql: `
      CREATE TABLE groups (
        group_key int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, group_id text COLLATE "C" NOT NULL UNIQUE,
        shard int4 NOT NULL, kind text NOT NULL, protocol_type text NOT NULL, generation int8 NOT NULL,
        assignment_epoch int8 NOT NULL, protocol text, leader_id text, members text NOT NULL,
        state_since_ms int8 NOT NULL) WITH (fillfactor = 80);
      CREATE INDEX groups_by_shard ON groups (shard);
      CREATE TABLE group_members (
        group_key int8 REFERENCES groups ON DELETE CASCADE, member_id text COLLATE "C", member text NOT NULL,
        PRIMARY KEY (group_key, member_id)) WITH (fillfactor = 80);
      CREATE TABLE group_offsets (
        group_key int8 REFERENCES groups ON DELETE CASCADE,
        partition_id int8 REFERENCES partitions ON DELETE CASCADE,
        committed_offset int8 NOT NULL, leader_epoch int4 NOT NULL, metadata text NOT NULL,
        commit_ms int8 NOT NULL, expire_ms int8 NOT NULL,
        PRIMARY KEY (group_key, partition_id)) WITH (fillfactor = 70);
      CREATE INDEX group_offsets_by_partition ON group_offsets (partition_id);`,
  },
];

interface GroupRow {
  group_key: number;
  group_id: string;
  kind: 'classic' | 'consumer';
  protocol_type: string;
  generation: number;
  assignment_epoch: number;
  protocol: string | null;
  leader_id: string | null;
  members: string;
  state_since_ms: number;
}
interface OffsetRow {
  group_key: number;
  partition_id: number;
  committed_offset: number;
  leader_epoch: number;
  metadata: string;
  commit_ms: number;
  expire_ms: number;
}
interface MemberRow {
  group_key: number;
  member: string;
}

/** Offsets that open transactions hold for groups. */
export interface StagedOffsetsStore {
  /** Forgets those of a group; the first locks of the database transaction but leases. */
  dropStaged(tx: Transaction, groupId: string): Promise<void>;
}

export class PostgresGroups implements GroupsMetadata {
  readonly #db: Database;
  readonly #staged: StagedOffsetsStore;

  constructor(db: Database, staged: StagedOffsetsStore) {
    this.#db = db;
    this.#staged = staged;
  }

  async load(shards?: readonly number[]): Promise<readonly LoadedGroup[]> {
    const wanted = [shards === undefined ? null : [...shards]];
    const of =
      'JOIN groups g USING (group_key) WHERE $1::int4[] IS NULL OR g.shard = ANY ($1::int4[])';
    const [groups, members, offsets] = await this.#db.snapshot('read', (tx) =>
      Promise.all([
        tx.rows<GroupRow>(
          `SELECT * FROM groups WHERE $1::int4[] IS NULL OR shard = ANY ($1::int4[]) ORDER BY group_id`,
          wanted,
        ),
        tx.rows<MemberRow>(
          `SELECT m.group_key, m.member FROM group_members m ${of} ORDER BY m.group_key, m.member_id`,
          wanted,
        ),
        tx.rows<OffsetRow>(
          `SELECT o.* FROM group_offsets o ${of} ORDER BY o.group_key, o.partition_id`,
          wanted,
        ),
      ]),
    );
    const membersOf = byGroup(members);
    const offsetsOf = byGroup(offsets);
    return groups.map((row) => ({
      group:
        row.kind === 'classic'
          ? toGroup(row)
          : toConsumerGroup(row, membersOf.get(row.group_key) ?? []),
      offsets: (offsetsOf.get(row.group_key) ?? []).map(toOffset),
    }));
  }

  async offsets(groupIds: readonly string[]): Promise<readonly (readonly StoredOffset[])[]> {
    const rows = await this.#db.on('read').rows<OffsetRow & { group_id: string }>(
      `SELECT g.group_id, o.* FROM groups g JOIN group_offsets o USING (group_key)
       WHERE g.group_id = ANY ($1::text[]) ORDER BY o.partition_id`,
      [groupIds.map(storedText)],
    );
    const found = new Map<string, StoredOffset[]>();
    for (const row of rows) {
      const groupId = clientText(row.group_id);
      const list = found.get(groupId) ?? [];
      list.push(toOffset(row));
      found.set(groupId, list);
    }
    return groupIds.map((groupId) => found.get(groupId) ?? []);
  }

  async write(
    changes: readonly GroupChange[],
    leases: readonly LeaseToken[],
  ): Promise<readonly number[]> {
    return this.#db.pipelined('write', async (tx) => {
      await assertLeases(tx, leases);
      for (const change of changes) {
        if (change.kind === 'group-gone' && change.withStaged)
          await this.#staged.dropStaged(tx, change.groupId);
      }
      return async () => {
        const left = await Promise.all(steps(changes).map((step) => apply(tx, step)));
        return left.flat();
      };
    });
  }
}

/** Sends its statements before it awaits any. @returns partitions that are gone. */
function apply(tx: Transaction, step: Step): Promise<readonly number[]> {
  switch (step.kind) {
    case 'group':
      return nothingLeft(writeGroup(tx, step.group));
    case 'consumer-group':
      return nothingLeft(writeConsumerGroup(tx, step));
    case 'offsets':
      return writeOffsets(tx, step.of);
    case 'offsets-gone':
      return nothingLeft([
        tx.run(
          `DELETE FROM group_offsets WHERE partition_id = ANY ($2::int8[])
           AND group_key = (SELECT group_key FROM groups WHERE group_id = $1)`,
          [storedText(step.groupId), [...step.partitionIds]],
        ),
      ]);
    case 'group-gone':
      return nothingLeft([
        tx.run('DELETE FROM groups WHERE group_id = $1', [storedText(step.groupId)]),
      ]);
  }
}

interface GroupOffsets {
  readonly groupId: string;
  readonly offsets: readonly StoredOffset[];
}

/** A change, or the offsets of changes that follow one another. */
type Step =
  | Exclude<GroupChange, { kind: 'offsets' }>
  | { readonly kind: 'offsets'; readonly of: GroupOffsets[] };

function steps(changes: readonly GroupChange[]): Step[] {
  const found: Step[] = [];
  for (const change of changes) {
    if (change.kind !== 'offsets') {
      found.push(change);
      continue;
    }
    const last = found.at(-1);
    if (last?.kind === 'offsets') last.of.push(change);
    else found.push({ kind: 'offsets', of: [change] });
  }
  return found;
}

async function nothingLeft(statements: readonly unknown[]): Promise<readonly number[]> {
  await Promise.all(statements);
  return [];
}

const OF_GROUP = 'group_key = (SELECT group_key FROM groups WHERE group_id = $1)';
const NO_MEMBERS = `DELETE FROM group_members WHERE ${OF_GROUP}`;

function writeGroup(tx: Transaction, group: StoredGroup): Promise<unknown>[] {
  const header = writeHeader(tx, {
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
  return [header, tx.run(NO_MEMBERS, [storedText(group.groupId)])];
}

function writeConsumerGroup(
  tx: Transaction,
  { group, whole, gone }: Extract<GroupChange, { kind: 'consumer-group' }>,
): Promise<unknown>[] {
  const key = storedText(group.groupId);
  const header = writeHeader(tx, {
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
  const leaving = whole
    ? tx.run(NO_MEMBERS, [key])
    : tx.run(`${NO_MEMBERS} AND member_id = ANY ($2::text[])`, [key, gone.map(storedText)]);
  const members = new Map(group.members.map((member) => [member.memberId, member]));
  const staying = tx.run(
    `INSERT INTO group_members SELECT g.group_key, m.member_id, m.member
     FROM groups g, unnest($2::text[], $3::text[]) AS m(member_id, member) WHERE g.group_id = $1
     ON CONFLICT (group_key, member_id) DO UPDATE SET member = excluded.member`,
    [key, [...members.keys()].map(storedText), [...members.values()].map(encodeConsumerMember)],
  );
  return [header, leaving, staying];
}

interface Header {
  readonly groupId: string;
  readonly kind: GroupRow['kind'];
  readonly protocolType: string;
  readonly generation: number;
  readonly assignmentEpoch: number;
  readonly protocol: string | null;
  readonly leaderId: string | null;
  readonly members: string;
  readonly stateSinceMs: number;
}

function writeHeader(tx: Transaction, row: Header): Promise<number> {
  return tx.run(
    `INSERT INTO groups (group_id, shard, kind, protocol_type, generation, assignment_epoch, protocol,
       leader_id, members, state_since_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (group_id) DO UPDATE SET
       kind = excluded.kind, protocol_type = excluded.protocol_type, generation = excluded.generation,
       assignment_epoch = excluded.assignment_epoch, protocol = excluded.protocol,
       leader_id = excluded.leader_id, members = excluded.members, state_since_ms = excluded.state_since_ms`,
    [
      storedText(row.groupId),
      shardOf(row.groupId),
      row.kind,
      storedText(row.protocolType),
      row.generation,
      row.assignmentEpoch,
      row.protocol === null ? null : storedText(row.protocol),
      row.leaderId === null ? null : storedText(row.leaderId),
      row.members,
      row.stateSinceMs,
    ],
  );
}

/**
 * Writes committed positions, for whoever is in a transaction of its own: EndTxn applies staged offsets so.
 * @returns partition ids that were left out because their topic is deleted.
 */
export function writeGroupOffsets(
  tx: Transaction,
  groupId: string,
  offsets: readonly StoredOffset[],
): Promise<readonly number[]> {
  return writeOffsets(tx, [{ groupId, offsets }]);
}

/** The partition's row is locked, so that a topic's deletion comes before or after, never between. */
const PUT_OFFSETS = `
  INSERT INTO group_offsets AS o
  SELECT g.group_key, p.partition_id, i.committed_offset, i.leader_epoch, i.metadata, i.commit_ms, i.expire_ms
  FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int4[], $5::text[], $6::int8[], $7::int8[])
    AS i(group_id, partition_id, committed_offset, leader_epoch, metadata, commit_ms, expire_ms)
  JOIN groups g USING (group_id) JOIN partitions p USING (partition_id)
  ORDER BY p.partition_id, g.group_key FOR KEY SHARE OF p
  ON CONFLICT (group_key, partition_id) DO UPDATE SET committed_offset = excluded.committed_offset,
    leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, commit_ms = excluded.commit_ms,
    expire_ms = excluded.expire_ms
  RETURNING partition_id`;

async function writeOffsets(
  tx: Transaction,
  of: readonly GroupOffsets[],
): Promise<readonly number[]> {
  const last = new Map<string, readonly [string, StoredOffset]>();
  const since = new Map<string, number>();
  for (const { groupId, offsets } of of) {
    const stored = storedText(groupId);
    if (!since.has(stored)) since.set(stored, offsets[0]?.commitMs ?? 0);
    for (const one of offsets) last.set(`${one.partitionId} ${stored}`, [stored, one]);
  }
  const rows = [...last.values()];
  const groups = [...since.keys()].sort();
  const made = tx.run(
    `INSERT INTO groups (group_id, shard, kind, protocol_type, generation, assignment_epoch, members, state_since_ms)
     SELECT i.group_id, i.shard, 'classic', '', 0, 0, '[]', i.since
     FROM unnest($1::text[], $2::int4[], $3::int8[]) AS i(group_id, shard, since) ON CONFLICT DO NOTHING`,
    [
      groups,
      groups.map((group) => shardOf(clientText(group))),
      groups.map((group) => since.get(group)!),
    ],
  );
  const put = tx.rows<{ partition_id: number }>(PUT_OFFSETS, [
    rows.map(([group]) => group),
    rows.map(([, one]) => one.partitionId),
    rows.map(([, one]) => one.offset),
    rows.map(([, one]) => one.leaderEpoch),
    rows.map(([, one]) => storedText(one.metadata)),
    rows.map(([, one]) => one.commitMs),
    rows.map(([, one]) => one.expireMs),
  ]);
  const [, landed] = await Promise.all([made, put]);
  const there = new Set(landed.map((row) => row.partition_id));
  const given = of.flatMap(({ offsets }) => offsets.map(({ partitionId }) => partitionId));
  return given.filter((partitionId) => !there.has(partitionId));
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

const toOffset = (row: OffsetRow): StoredOffset => ({
  partitionId: row.partition_id,
  offset: row.committed_offset,
  leaderEpoch: row.leader_epoch,
  metadata: clientText(row.metadata),
  commitMs: row.commit_ms,
  expireMs: row.expire_ms,
});

const toGroup = (row: GroupRow): StoredGroup => ({
  kind: 'classic',
  groupId: clientText(row.group_id),
  protocolType: clientText(row.protocol_type),
  generation: row.generation,
  protocol: row.protocol === null ? null : clientText(row.protocol),
  leaderId: row.leader_id === null ? null : clientText(row.leader_id),
  members: decodeMembers(row.members),
  stateSinceMs: row.state_since_ms,
});

const toConsumerGroup = (row: GroupRow, members: readonly MemberRow[]): StoredConsumerGroup => ({
  kind: 'consumer',
  groupId: clientText(row.group_id),
  epoch: row.generation,
  assignmentEpoch: row.assignment_epoch,
  stateSinceMs: row.state_since_ms,
  members: members.map(({ member }) => decodeConsumerMember(member)),
});
