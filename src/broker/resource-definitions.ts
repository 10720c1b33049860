// What configs a consumer group and a client metrics subscription can have: types, bounds, and where a value that isn't
// set comes from. Not for: acting on them (groups/, telemetry/), keeping them (resource-configs.ts).
import { FloeError } from '../base/error.ts';
import { int, list, type Settings } from '../base/settings.ts';
import type { ResourceKind } from '../metadata/resource-configs.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { CONFIG_SOURCE } from './broker-config.ts';
import { parseMatch } from './telemetry/match.ts';

export interface ResourceDefinition {
  readonly settings: Settings;
  /** `ConfigSource` of values that are set. */
  readonly source: number;
  /** The broker setting that a config takes its default from. */
  readonly synonyms: Readonly<Record<string, string>>;
  /** Code of an unknown name or a value of the wrong type: Kafka's differ. */
  readonly faultCode: number;
  /** Why there can be no such resource, or undefined. */
  nameFault(name: string): string | undefined;
  /**
   * Checks what would be set, values being of their types already; `setting` reads the broker's settings as text.
   * @throws FloeError `invalid`, with a Kafka `errorCode` in its details where that is another than `faultCode`.
   */
  validate(
    config: Readonly<Record<string, string>>,
    setting: (name: string) => string | undefined,
  ): void;
}

const group: ResourceDefinition = {
  settings: {
    'consumer.session.timeout.ms': int({
      default: 45_000,
      min: 1,
      doc: 'How long a member of a consumer group may be silent, within the bounds of group.consumer.*.session.timeout.ms.',
    }),
    'consumer.heartbeat.interval.ms': int({
      default: 5_000,
      min: 1,
      doc: 'How often a member is to be heard of, within the bounds of group.consumer.*.heartbeat.interval.ms.',
    }),
  },
  source: CONFIG_SOURCE.group,
  synonyms: {
    'consumer.session.timeout.ms': 'group.consumer.session.timeout.ms',
    'consumer.heartbeat.interval.ms': 'group.consumer.heartbeat.interval.ms',
  },
  faultCode: ErrorCode.INVALID_CONFIG,
  nameFault: (name) =>
    name === '' ? 'a group has a name: there are no default configs' : undefined,
  validate(config, setting) {
    within(config, setting, 'session.timeout.ms');
    within(config, setting, 'heartbeat.interval.ms');
    const sessionMs = inForce(config, setting, 'session.timeout.ms');
    const heartbeatMs = inForce(config, setting, 'heartbeat.interval.ms');
    if (heartbeatMs < sessionMs) return;
    throw new FloeError(
      'invalid',
      `consumer.heartbeat.interval.ms (${heartbeatMs}) must be below consumer.session.timeout.ms (${sessionMs})`,
    );
  },
};

type Setting = (name: string) => string | undefined;

function inForce(config: Readonly<Record<string, string>>, setting: Setting, what: string): number {
  return Number(config[`consumer.${what}`] ?? setting(`group.consumer.${what}`) ?? Number.NaN);
}

/** A group's value keeps to the broker's bounds, where the broker has them. */
function within(config: Readonly<Record<string, string>>, setting: Setting, what: string): void {
  const value = config[`consumer.${what}`];
  if (value === undefined) return;
  for (const [bound, below] of [
    ['min', (limit: number) => Number(value) < limit],
    ['max', (limit: number) => Number(value) > limit],
  ] as const) {
    const name = `group.consumer.${bound}.${what}`;
    const limit = setting(name);
    if (limit !== undefined && below(Number(limit))) {
      throw new FloeError('invalid', `consumer.${what} is ${value}, but ${name} is ${limit}`);
    }
  }
}

const clientMetrics: ResourceDefinition = {
  settings: {
    'interval.ms': int({
      default: 300_000,
      min: 100,
      max: 3_600_000,
      doc: 'How often the clients push.',
    }),
    match: list({
      default: [] as readonly string[],
      doc: 'Which clients: name=pattern, all of which must match; none: all clients. Names: client_id, client_instance_id, client_software_name, client_software_version, client_source_address, client_source_port.',
    }),
    metrics: list({
      default: [] as readonly string[],
      doc: 'Prefixes of metrics to push, * for all; none: nothing is asked for.',
    }),
  },
  source: CONFIG_SOURCE.clientMetrics,
  synonyms: {},
  faultCode: ErrorCode.INVALID_REQUEST,
  nameFault: (name) => (name === '' ? 'a client metrics subscription has a name' : undefined),
  validate(config) {
    const { match } = config;
    if (match === undefined) return;
    try {
      parseMatch(match);
    } catch (caught) {
      const { message } = FloeError.from(caught);
      throw new FloeError('invalid', message, {
        details: { errorCode: ErrorCode.INVALID_CONFIG },
      });
    }
  },
};

export const RESOURCE_DEFINITIONS: Readonly<Record<ResourceKind, ResourceDefinition>> = {
  group,
  'client-metrics': clientMetrics,
};
