// Consumer groups on SQLite. See metadata/groups.ts for the contract.
// Offsets hang on their partition by a foreign key, so deleting a topic deletes them in the same transaction.
import type {
  GroupChange,
  GroupsMetadata,
  StoredGroup,
  StoredMember,
  StoredOffset,
} from '../groups.ts';
import type { Database, Migration } from './database.ts';

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

export class SqliteGroups implements GroupsMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async load() {
    return this.#db.transaction(() => {
      const offsets = new Map<number, StoredOffset[]>();
      const rows = this.#db
        .prepare('SELECT * FROM group_offsets ORDER BY group_key, partition_id')
        .all() as unknown as OffsetRecord[];
      for (const row of rows) {
        const list = offsets.get(row.group_key);
        if (list === undefined) offsets.set(row.group_key, [toOffset(row)]);
        else list.push(toOffset(row));
      }
      const groups = this.#db
        .prepare('SELECT * FROM groups ORDER BY group_id')
        .all() as unknown as GroupRecord[];
      return groups.map((row) => ({
        group: toGroup(row),
        offsets: offsets.get(row.group_key) ?? [],
      }));
    });
  }

  async write(changes: readonly GroupChange[]): Promise<readonly number[]> {
    return this.#db.transaction(() => {
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
      case 'offsets':
        this.#writeOffsets(change.groupId, change.offsets, left);
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
        break;
    }
  }

  #writeGroup(group: StoredGroup): void {
    this.#db
      .prepare(
        `INSERT INTO groups (group_id, protocol_type, generation, protocol, leader_id, members, state_since_ms)
         VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (group_id) DO UPDATE SET
           protocol_type = excluded.protocol_type, generation = excluded.generation, protocol = excluded.protocol,
           leader_id = excluded.leader_id, members = excluded.members, state_since_ms = excluded.state_since_ms`,
      )
      .run(
        group.groupId,
        group.protocolType,
        group.generation,
        group.protocol,
        group.leaderId,
        encodeMembers(group.members),
        group.stateSinceMs,
      );
  }

  #writeOffsets(groupId: string, offsets: readonly StoredOffset[], left: number[]): void {
    this.#db
      .prepare(
        `INSERT INTO groups (group_id, protocol_type, generation, protocol, leader_id, members, state_since_ms)
         VALUES (?, '', 0, NULL, NULL, '[]', ?) ON CONFLICT DO NOTHING`,
      )
      .run(groupId, offsets[0]?.commitMs ?? 0);
    const key = this.#db.prepare('SELECT group_key FROM groups WHERE group_id = ?').get(groupId)![
      'group_key'
    ]!;
    const insert = this.#db.prepare(
      `INSERT INTO group_offsets
       SELECT ?1, partition_id, ?3, ?4, ?5, ?6, ?7 FROM partitions WHERE partition_id = ?2
       ON CONFLICT DO UPDATE SET committed_offset = excluded.committed_offset,
         leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, commit_ms = excluded.commit_ms,
         expire_ms = excluded.expire_ms`,
    );
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
  }
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
  groupId: row.group_id,
  protocolType: row.protocol_type,
  generation: row.generation,
  protocol: row.protocol,
  leaderId: row.leader_id,
  members: decodeMembers(row.members),
  stateSinceMs: row.state_since_ms,
});

interface MemberJson extends Omit<StoredMember, 'protocols' | 'assignment'> {
  readonly protocols: readonly { readonly name: string; readonly metadata: string }[];
  readonly assignment: string;
}

/** JSON with the bytes as base64: written once per rebalance, so its size and speed don't matter. */
function encodeMembers(members: readonly StoredMember[]): string {
  const rows = members.map(
    (member): MemberJson => ({
      ...member,
      protocols: member.protocols.map(({ name, metadata }) => ({
        name,
        metadata: base64(metadata),
      })),
      assignment: base64(member.assignment),
    }),
  );
  return JSON.stringify(rows);
}

function decodeMembers(text: string): StoredMember[] {
  return (JSON.parse(text) as MemberJson[]).map((member) => ({
    ...member,
    protocols: member.protocols.map(({ name, metadata }) => ({ name, metadata: bytes(metadata) })),
    assignment: bytes(member.assignment),
  }));
}

const base64 = (from: Uint8Array) =>
  Buffer.from(from.buffer, from.byteOffset, from.byteLength).toString('base64');
const bytes = (text: string) => new Uint8Array(Buffer.from(text, 'base64'));
