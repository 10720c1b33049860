// A Kafka error code in a reply as the error that an operator reads.
import { FloeError } from '../base/error.ts';
import { kafkaError } from '../protocol/index.ts';

/** Throws the broker's error, its own message first, unless the code is 0. */
export function throwKafkaError(
  subject: string,
  errorCode: number,
  errorMessage?: string | null,
): void {
  if (errorCode === 0) return;
  const { name, description } = kafkaError(errorCode);
  throw new FloeError('invalid', `${subject}: ${errorMessage ?? description} (${name})`);
}
