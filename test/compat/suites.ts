// The foreign suites as data: which script, which variant, and the settings their authors assume of a test broker.
// Not for: running them (run.ts), nor what may fail (allow.txt).

export interface Suite {
  /** Its script is `<folder>/run.sh`. */
  readonly folder: string;
  /** The JSON file its script leaves in the results folder. */
  readonly result: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings of the node beyond {@link SETTINGS}. */
  readonly settings?: Readonly<Record<string, string>>;
  /** It talks to one address only: something stands before several brokers (one-address.ts). */
  readonly oneAddress?: boolean;
}

/** What every suite assumes: several partitions by default, short group timings. */
export const SETTINGS: Readonly<Record<string, string>> = {
  'num.partitions': '4',
  'auto.create.topics.enable': 'true',
  'group.initial.rebalance.delay.ms': '0',
  'group.min.session.timeout.ms': '1000',
  'group.consumer.heartbeat.interval.ms': '500',
  'group.consumer.min.heartbeat.interval.ms': '500',
  'group.consumer.min.session.timeout.ms': '1000',
  'message.max.bytes': '1048588',
  'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
  'allow.everyone.if.no.acl.found': 'true',
};

/**
 * Of brokers over a bucket, besides: suites that wait for each batch before they send the next would take hours at four
 * flushes a second, which is what requests to a real bucket are worth.
 */
export const BUCKET_SETTINGS: Readonly<Record<string, string>> = {
  'log.flush.rate': '200',
  'log.flush.age.ms': '20',
  'log.flush.idle.ms': '2',
  // What is compacted by key lies in stream objects, which fill for a minute else.
  'log.compact.gather.ms': '1000',
};

export const SUITES: Readonly<Record<string, Suite>> = {
  protocol: { folder: 'protocol', result: 'protocol.json', oneAddress: true },
  clients: { folder: 'clients', result: 'clients.json' },
  // Its transaction test assumes that a topic created on first use has one partition.
  'node-rdkafka': {
    folder: 'clients',
    result: 'clients.json',
    settings: { 'num.partitions': '1' },
  },
  // 0118 needs both of its consumers in the first generation, whichever connects first.
  librdkafka: {
    folder: 'librdkafka',
    result: 'librdkafka.json',
    env: { JOBS: '3' },
    settings: { 'group.initial.rebalance.delay.ms': '200' },
  },
  'librdkafka-consumer': {
    folder: 'librdkafka',
    result: 'librdkafka-consumer.json',
    env: { JOBS: '3', GROUP_PROTOCOL: 'consumer' },
  },
  'librdkafka-noautocreate': {
    folder: 'librdkafka',
    result: 'librdkafka-noautocreate.json',
    env: { SCENARIO: 'noautocreate' },
    settings: { 'auto.create.topics.enable': 'false' },
  },
  'franz-go': { folder: 'franz-go', result: 'franz-go.json' },
  'kafka-tools': { folder: 'kafka-tools', result: 'kafka-tools.json', env: { QUICK: '1' } },
};

/** A run by its name on the command line: `suite[:test,test]`. */
export const RUNS: Readonly<Record<'quick' | 'usual' | 'all', readonly string[]>> = {
  quick: [
    'protocol',
    'clients:kafkajs,platformatic,kcat,confluent-kafka,confluent-kafka-javascript',
  ],
  usual: [
    'protocol',
    'clients:kafkajs,platformatic,kcat,confluent-kafka,confluent-kafka-javascript',
    'node-rdkafka:node-rdkafka',
    'librdkafka',
  ],
  all: [
    'protocol',
    'clients:kafkajs,platformatic,kcat,confluent-kafka,confluent-kafka-javascript,kafka-python,aiokafka,sarama,kafka-go,chdb',
    'node-rdkafka:node-rdkafka',
    'librdkafka',
    'librdkafka-consumer',
    'librdkafka-noautocreate',
    'franz-go',
    'kafka-tools',
  ],
};
