// Settings of the cluster: how soon a silent node counts as gone, how long a lease lasts, where hints arrive.
// None of them matters to a node alone.
import { int, long, type Settings, text, type Values } from '../base/settings.ts';

export const clusterSettings = {
  'cluster.heartbeat.ms': long({
    default: 1_000,
    min: 50,
    doc: 'How often a node says that it lives, and looks at who else does.',
  }),
  'cluster.alive.ms': long({
    default: 5_000,
    min: 250,
    doc: 'A node silent for longer gets no more work and is not named to clients; half as long where others see that its process is gone. At least 3 heartbeats. All nodes should have the same.',
  }),
  'cluster.lease.ms': long({
    default: 4_000,
    min: 250,
    doc: 'How long a right that only one node may have (coordinating groups, committing a table) lasts unless renewed: after a crash nobody has it for that long at most.',
  }),
  'cluster.drain.ms': long({
    default: 10_000,
    min: 0,
    doc: 'How long a node that was asked to stop waits for clients to go to others.',
  }),
  'cluster.forget.ms': long({
    default: 86_400_000,
    min: 60_000,
    doc: 'How long `floe cluster status` shows a node that is gone.',
  }),
  'cluster.hints.listen': text({
    default: '',
    pattern: /^$|^.+:\d{1,5}$/,
    wanted: 'HOST:PORT (port 0: a free one), or empty',
    doc: 'Where this node hears from others that something was committed. Empty: the host of the Kafka listener, a free port. Other nodes must reach it at the advertised host.',
  }),
  'cluster.hints.advertised': text({
    default: '',
    pattern: /^$|^.+:\d{1,5}$/,
    wanted: 'HOST:PORT, or empty',
    doc: 'Where other nodes reach `cluster.hints.listen`, when that differs from where it is bound (port mappings).',
  }),
  'cluster.http.advertised': text({
    default: '',
    pattern: /^$|^.+:\d{1,5}$/,
    wanted: 'HOST:PORT, or empty',
    doc: 'Where other nodes of the zone reach this one by HTTP, when that differs from where `--http` is bound (port mappings).',
  }),
  'cluster.hints.max.peers': int({
    default: 1_000,
    min: 1,
    doc: 'Most connections of other nodes at a time; further ones are closed and counted.',
  }),
} as const satisfies Settings;

export type ClusterSettings = Values<typeof clusterSettings>;

/** Of a duration that the store grants, what a holder keeps in hand for clocks that differ in speed. */
export const MARGIN = 0.1;
