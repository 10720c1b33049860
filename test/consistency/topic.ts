// What the processes of the consistency workload agree on.
export const TOPIC = 'consistency';
export const PARTITIONS = 4;
export const GROUP_PREFIX = 'consistency-';
