// Shards of what coordinators look after: groups and transactional ids, as Kafka spreads them over the partitions of
// its internal topics. A shard has one coordinator at a time, by lease (`groups/<n>`, `transactions/<n>`).

/** Fixed for the life of a cluster: Kafka's `offsets.topic.num.partitions`. */
export const COORDINATOR_SHARDS = 50;

/** The shard of a group or transactional id: Java's `String.hashCode`, as Kafka has it. */
export function shardOf(key: string): number {
  let hash = 0;
  for (let n = 0; n < key.length; n += 1) hash = (Math.imul(hash, 31) + key.charCodeAt(n)) | 0;
  return (hash & 0x7fff_ffff) % COORDINATOR_SHARDS;
}
