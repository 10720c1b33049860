// What an operator watches: panels of the Grafana dashboard and alarms for Prometheus, as data, made into
// docs/operations/grafana.json and docs/operations/alarms.yaml by tools/docs.ts. A test holds every metric named here
// against the sources. Not for: what a metric means (its help text, where it is counted).

interface Panel {
  readonly title: string;
  /** Grafana's unit ids. */
  readonly unit: 's' | 'Bps' | 'reqps' | 'ops' | 'short' | 'percentunit' | 'bytes' | 'currencyUSD';
  /** Legend → PromQL; `$node` is the dashboard's choice of nodes. */
  readonly series: Readonly<Record<string, string>>;
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const rate = (metric: string, by: string, filter = '') =>
  `sum by (${by}) (rate(${metric}{instance=~"$node"${filter}}[$__rate_interval]))`;
const quantile = (q: number, metric: string, by = 'le') =>
  `histogram_quantile(${q}, sum by (${by}) (rate(${metric}_bucket{instance=~"$node"}[$__rate_interval])))`;
const gauge = (metric: string, how = 'sum') => `${how}(${metric}{instance=~"$node"})`;

export const ROWS: readonly Row[] = [
  {
    title: 'Clients',
    panels: [
      {
        title: 'Bytes in and out',
        unit: 'Bps',
        series: {
          in: rate('floe_broker_received_bytes_total', 'job'),
          out: rate('floe_broker_sent_bytes_total', 'job'),
        },
      },
      {
        title: 'Requests',
        unit: 'reqps',
        series: { '{{api}}': rate('floe_broker_requests_total', 'api') },
      },
      {
        title: 'Slowest 1 % of requests',
        unit: 's',
        series: { '{{api}}': quantile(0.99, 'floe_broker_request_seconds', 'le, api') },
      },
      {
        title: 'Errors answered',
        unit: 'ops',
        series: { '{{error}}': rate('floe_broker_errors_total', 'error') },
      },
      {
        title: 'Connections',
        unit: 'short',
        series: {
          open: gauge('floe_broker_connections'),
          'long polls': gauge('floe_broker_fetch_waiting'),
        },
      },
      {
        title: 'Held back by quotas',
        unit: 'ops',
        series: { requests: rate('floe_broker_throttled_total', 'job') },
      },
      {
        title: 'Produce that waited: log congested, or share used up',
        unit: 'ops',
        series: { '{{reason}}': rate('floe_broker_produce_waits_total', 'reason') },
      },
      {
        title: 'Produce in flight of the largest user',
        unit: 'bytes',
        series: { '{{instance}}': 'floe_broker_produce_largest_user_bytes{instance=~"$node"}' },
      },
      {
        title: 'Memory',
        unit: 'bytes',
        series: { '{{instance}}': 'floe_process_resident_bytes{instance=~"$node"}' },
      },
      {
        title: 'Processor, 1: one core',
        unit: 'short',
        series: {
          '{{instance}}': 'rate(floe_process_cpu_seconds{instance=~"$node"}[$__rate_interval])',
        },
      },
    ],
  },
  {
    title: 'Log',
    panels: [
      {
        title: 'From flush to commit',
        unit: 's',
        series: {
          p50: quantile(0.5, 'floe_log_flush_seconds'),
          p99: quantile(0.99, 'floe_log_flush_seconds'),
        },
      },
      {
        title: 'Bytes flushed',
        unit: 'Bps',
        series: { flushed: rate('floe_log_flush_bytes_total', 'job') },
      },
      {
        title: 'Rewritten in the background',
        unit: 'Bps',
        series: {
          'stream objects': rate('floe_log_compacted_bytes_total', 'job'),
          'compaction by key': rate('floe_log_cleaner_written_bytes_total', 'job'),
          'in vain': rate('floe_log_compaction_lost_bytes_total', 'job'),
        },
      },
      {
        title: 'Trouble',
        unit: 'ops',
        series: {
          'batches that waited for memory': rate('floe_log_backlog_batches_total', 'job'),
          'PUTs tried twice': rate('floe_log_put_hedges_total', 'job'),
          'damaged reads': rate('floe_log_damaged_reads_total', 'job'),
          'failed background jobs': rate('floe_log_maintenance_failures_total', 'job'),
        },
      },
      {
        title: 'Held',
        unit: 'bytes',
        series: {
          log: gauge('floe_log_bytes', 'max'),
          '{{topic}}': 'topk(5, max by (topic) (floe_log_topic_bytes))',
          metadata: gauge('floe_metadata_bytes', 'max'),
        },
      },
      {
        title: 'Deletion overdue',
        unit: 's',
        series: { overdue: gauge('floe_log_deletion_overdue_seconds', 'max') },
      },
      {
        title: 'Behind open transactions',
        unit: 'short',
        series: { records: gauge('floe_log_stable_lag_records', 'max') },
      },
      {
        title: 'Left alone for now because of damage',
        unit: 'short',
        series: {
          objects: gauge('floe_log_compaction_damaged_objects'),
          'partitions compacted by key': gauge('floe_log_cleaner_uncleanable_partitions'),
        },
      },
    ],
  },
  {
    title: 'Object store',
    panels: [
      {
        title: 'Requests',
        unit: 'reqps',
        series: {
          '{{purpose}} {{operation}}': rate('floe_objects_requests_total', 'purpose, operation'),
        },
      },
      {
        title: 'Slowest 1 %',
        unit: 's',
        series: {
          '{{operation}}': quantile(0.99, 'floe_objects_request_seconds', 'le, operation'),
        },
      },
      {
        title: 'Bytes',
        unit: 'Bps',
        series: {
          '{{purpose}} {{operation}}': rate('floe_objects_bytes_total', 'purpose, operation'),
        },
      },
      {
        title: 'Dollars a day for requests',
        unit: 'currencyUSD',
        series: { '{{purpose}}': `86400 * ${rate('floe_objects_dollars_total', 'purpose')}` },
      },
    ],
  },
  {
    title: 'Cluster',
    panels: [
      {
        title: 'Nodes alive, as each node sees it',
        unit: 'short',
        series: { '{{instance}}': 'floe_cluster_nodes_alive{instance=~"$node"}' },
      },
      {
        title: 'Leases held',
        unit: 'short',
        series: { '{{instance}}': 'floe_cluster_leases_held{instance=~"$node"}' },
      },
      {
        title: 'Following of other brokers',
        unit: 'ops',
        series: {
          asked: rate('floe_log_follow_total', 'job'),
          failed: rate('floe_log_follow_failures_total', 'job'),
        },
      },
      {
        title: 'Membership, 1: a member, and others that give hints',
        unit: 'short',
        series: {
          '{{instance}}': 'floe_cluster_member{instance=~"$node"}',
          'others of {{instance}}': 'floe_cluster_hint_peers{instance=~"$node"}',
        },
      },
      {
        title: 'Trouble between nodes',
        unit: 'ops',
        series: {
          'heartbeats failed': rate('floe_cluster_heartbeats_failed_total', 'job'),
          'joined again': rate('floe_cluster_rejoins_total', 'job'),
          'hints refused': rate('floe_cluster_hints_refused_total', 'job'),
        },
      },
      {
        title: 'Clients sent to other brokers',
        unit: 'ops',
        series: {
          'because brokers came': rate('floe_broker_sent_on_total', 'job'),
          'because the broker drains': rate('floe_broker_sent_away_total', 'job'),
        },
      },
      {
        title: 'Compaction that waits for another node, 1: all the time',
        unit: 'short',
        series: { '{{instance}}': rate('floe_log_compaction_turn_seconds_total', 'instance') },
      },
      {
        title: 'Groups and transactions',
        unit: 'short',
        series: {
          groups: gauge('floe_groups'),
          'open transactions': gauge('floe_transactions_open'),
        },
      },
      {
        title: 'Oldest open transaction',
        unit: 's',
        series: { age: gauge('floe_transaction_oldest_seconds', 'max') },
      },
    ],
  },
  {
    title: 'Tables',
    panels: [
      {
        title: 'Lag of the slowest',
        unit: 's',
        series: { lag: gauge('floe_table_lag_seconds', 'max') },
      },
      { title: 'Rows', unit: 'ops', series: { rows: rate('floe_table_rows_total', 'job') } },
      {
        title: 'In trouble',
        unit: 'short',
        series: { suspended: gauge('floe_table_suspended'), running: gauge('floe_table_running') },
      },
      {
        title: 'Records that are no rows',
        unit: 'ops',
        series: {
          'dead letters': rate('floe_table_dead_letters_total', 'job'),
          skipped: rate('floe_table_skipped_total', 'job'),
          'lost to retention': rate('floe_table_lost_offsets_total', 'job'),
        },
      },
      {
        title: 'Commit, slowest 1 %',
        unit: 's',
        series: { p99: quantile(0.99, 'floe_table_commit_seconds') },
      },
      {
        title: 'Rewritten by compaction',
        unit: 'Bps',
        series: { bytes: rate('floe_table_rewrite_bytes_total', 'job') },
      },
    ],
  },
];

interface Alarm {
  readonly name: string;
  /** PromQL: alarms while it yields anything. */
  readonly when: string;
  readonly for: string;
  readonly severity: 'page' | 'ticket';
  /** What it means, and what to do first. */
  readonly text: string;
}

export const ALARMS: readonly Alarm[] = [
  {
    name: 'FloeFlushSlow',
    when: 'histogram_quantile(0.99, sum by (le, instance) (rate(floe_log_flush_seconds_bucket[5m]))) > 5',
    for: '5m',
    severity: 'page',
    text: 'Producers wait seconds for an ack. Look at the object store and PostgreSQL: floe doctor names the slow one.',
  },
  {
    name: 'FloeDamagedRead',
    when: 'increase(floe_log_damaged_reads_total[15m]) > 0',
    for: '0m',
    severity: 'page',
    text: 'Stored bytes did not match their checksum. The log names object and partition; restore the object from a version or a backup.',
  },
  {
    name: 'FloeRecordsLostToRetention',
    when: 'increase(floe_table_lost_offsets_total[15m]) > 0',
    for: '0m',
    severity: 'page',
    text: 'Retention took records that a table had not committed yet: raise table.topic.retention.hold.bytes or cure the table.',
  },
  {
    name: 'FloeTableSuspended',
    when: 'max(floe_table_suspended) > 0',
    for: '5m',
    severity: 'ticket',
    text: 'A table has stopped. floe tables list says which and why; it goes on by itself once that is cured.',
  },
  {
    name: 'FloeTableLag',
    when: 'max(floe_table_lag_seconds) > 300',
    for: '10m',
    severity: 'ticket',
    text: 'Rows are more than five minutes old when they are committed. Look at floe tables status, the catalog, and CPU of nodes with role tables.',
  },
  {
    name: 'FloeNodesDisagree',
    when: 'max(floe_cluster_nodes_alive) != min(floe_cluster_nodes_alive)',
    for: '1m',
    severity: 'page',
    text: 'Some node does not see the others: its way to PostgreSQL is cut. floe cluster status on each side shows which.',
  },
  {
    name: 'FloeFollowingFails',
    when: 'rate(floe_log_follow_failures_total[5m]) > 0.1',
    for: '5m',
    severity: 'page',
    text: 'A broker can not read what others commit; its consumers lag. PostgreSQL is away or overloaded.',
  },
  {
    name: 'FloeOldTransaction',
    when: 'max(floe_transaction_oldest_seconds) > 3600',
    for: '5m',
    severity: 'ticket',
    text: 'A transaction is open for an hour: read_committed consumers and tables wait behind it. kafka-transactions.sh find-hanging names it.',
  },
  {
    name: 'FloeBackgroundWorkFails',
    when: 'rate(floe_log_maintenance_failures_total[30m]) > 0.01',
    for: '30m',
    severity: 'ticket',
    text: 'Retention, collection or compaction of the log keeps failing: storage grows. The log says why.',
  },
  {
    name: 'FloeDeletionOverdue',
    when: 'max(floe_log_deletion_overdue_seconds) > 3600',
    for: '30m',
    severity: 'ticket',
    text: 'Nothing is deleted from the object store. A restore waits to be confirmed (floe doctor says so), or the store refuses deletes: the log says why.',
  },
  {
    name: 'FloeUncleanable',
    when: 'max(floe_log_cleaner_uncleanable_partitions) > 0',
    for: '30m',
    severity: 'ticket',
    text: 'A compacted partition can not be compacted, tried ever more seldom, every half hour in the end. The log says which and why.',
  },
  {
    name: 'FloeDamagedObject',
    when: 'max(floe_log_compaction_damaged_objects) > 0',
    for: '1h',
    severity: 'ticket',
    text: 'Compaction can not read a log object, and not for once only. The log names it; restore it from a version or a backup.',
  },
  {
    name: 'FloeQuarantineStands',
    when: 'sum(floe_table_quarantined_partitions) > 0',
    for: '1h',
    severity: 'ticket',
    text: 'Partitions of a table are quarantined, and their records wait: floe tables list names them. Cure them and take them off floe.quarantined.partitions.',
  },
];

const COLUMNS = 24;
const WIDTH = 8;
const HEIGHT = 7;

/** docs/operations/grafana.json: importable as it is, with a choice of data source and nodes. */
export function dashboard(): string {
  const panels: unknown[] = [];
  let y = 0;
  for (const row of ROWS) {
    panels.push({
      type: 'row',
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: COLUMNS, x: 0, y },
    });
    y += 1;
    for (const [n, panel] of row.panels.entries()) {
      const place = { x: (n * WIDTH) % COLUMNS, y: y + Math.floor((n * WIDTH) / COLUMNS) * HEIGHT };
      panels.push(panelJson(panel, place));
    }
    y += Math.ceil((row.panels.length * WIDTH) / COLUMNS) * HEIGHT;
  }
  const templating = {
    list: [
      { name: 'source', label: 'Data source', type: 'datasource', query: 'prometheus' },
      {
        name: 'node',
        label: 'Node',
        type: 'query',
        datasource: { type: 'prometheus', uid: '$source' },
        query: 'label_values(floe_broker_connections, instance)',
        refresh: 2,
        includeAll: true,
        multi: true,
        current: { text: 'All', value: '$__all' },
      },
    ],
  };
  const time = { from: 'now-3h', to: 'now' };
  const page = { title: 'Floe', uid: 'floe', schemaVersion: 39, refresh: '30s', time, templating };
  return `${JSON.stringify({ ...page, tags: ['floe'], panels: panels.map((panel, n) => ({ id: n + 1, ...(panel as object) })) }, null, 2)}\n`;
}

function panelJson({ title, unit, series }: Panel, place: { x: number; y: number }) {
  return {
    type: 'timeseries',
    title,
    datasource: { type: 'prometheus', uid: '$source' },
    gridPos: { h: HEIGHT, w: WIDTH, ...place },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
    targets: Object.entries(series).map(([legendFormat, expr], n) => ({
      refId: String.fromCharCode(65 + n),
      expr,
      legendFormat,
    })),
  };
}

/** docs/operations/alarms.yaml: a rule file for Prometheus. */
export function alarms(): string {
  const rules = ALARMS.map(
    ({ name, when, for: duration, severity, text }) =>
      `      - alert: ${name}
        expr: ${JSON.stringify(when)}
        for: ${duration}
        labels: { severity: ${severity} }
        annotations:
          summary: ${JSON.stringify(text)}
`,
  );
  return `groups:\n  - name: floe\n    rules:\n${rules.join('')}`;
}
