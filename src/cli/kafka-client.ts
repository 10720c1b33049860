// An ordinary Kafka client (kafkajs) for the operator commands, with readable errors.
import kafkajs, { type Admin, type Kafka, type KafkaConfig, type SASLOptions } from 'kafkajs';
import { FloeError } from '../base/error.ts';
import { clientAuth } from './client-auth.ts';

export const KAFKA_SERVER = '127.0.0.1:9092';

export function kafkaClient(server: string): Kafka {
  return new kafkajs.Kafka({
    clientId: 'floe-cli',
    brokers: [server],
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 3_000,
    ...security(),
    retry: { retries: 2, initialRetryTime: 100 },
  });
}

/** TLS and login as the command was told. */
function security(): Pick<KafkaConfig, 'ssl' | 'sasl'> {
  const { tls, login } = clientAuth();
  if (login === undefined) return { ssl: tls };
  const { user: username, password } = login;
  const mechanism = login.mechanism.toLowerCase() as 'plain' | 'scram-sha-256' | 'scram-sha-512';
  return { ssl: tls, sasl: { mechanism, username, password } as SASLOptions };
}

/** Runs `work`, translating the client's errors into one sentence that names the server. */
export async function withKafka<T>(server: string, work: (kafka: Kafka) => Promise<T>): Promise<T> {
  try {
    return await work(kafkaClient(server));
  } catch (caught) {
    throw readable(caught, server);
  }
}

/** {@link withKafka} with a connected admin client. */
export function withAdmin<T>(server: string, work: (admin: Admin) => Promise<T>): Promise<T> {
  return withKafka(server, async (kafka) => {
    const admin = kafka.admin();
    await admin.connect();
    try {
      return await work(admin);
    } finally {
      await admin.disconnect();
    }
  });
}

function readable(caught: unknown, server: string): FloeError {
  if (!(caught instanceof kafkajs.KafkaJSError)) return FloeError.from(caught);
  const root = rootCause(caught);
  if (/certificate/i.test(root.message)) {
    const why = `${server}: ${root.message} (name its authority with --ca)`;
    return new FloeError('unauthorized', why, { cause: caught });
  }
  if (/ECONNREFUSED|Connection (error|timeout)|ENOTFOUND/.test(root.message)) {
    return new FloeError(
      'unavailable',
      `nothing answers at ${server}: is Floe running there? (--server HOST:PORT)`,
    );
  }
  return new FloeError('invalid', detail(root), { cause: caught });
}

/** kafkajs wraps the broker's answer up to three deep; the innermost one says most. */
function rootCause(error: Error): Error {
  const inner =
    (error as { cause?: unknown }).cause ?? (error as { originalError?: unknown }).originalError;
  const [first] = (error as { errors?: Error[] }).errors ?? [];
  if (first instanceof Error) return rootCause(first);
  return inner instanceof Error ? rootCause(inner) : error;
}

function detail(error: Error): string {
  const { topic, groupId } = error as { topic?: string; groupId?: string };
  const about = topic ?? groupId;
  return about === undefined ? error.message : `${about}: ${error.message}`;
}
