// FloeErrors as Kafka error codes, in this one place. An indefinite failure answers a retriable code (L9).
import type { ErrorCode as FloeCode, FloeError } from '../base/error.ts';
import { ErrorCode } from '../protocol/errors.ts';

const CODES: Readonly<Record<FloeCode, number>> = {
  invalid: ErrorCode.INVALID_REQUEST,
  'not-found': ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
  conflict: ErrorCode.INVALID_REQUEST,
  unavailable: ErrorCode.KAFKA_STORAGE_ERROR,
  timeout: ErrorCode.REQUEST_TIMED_OUT,
  exhausted: ErrorCode.KAFKA_STORAGE_ERROR,
  corrupt: ErrorCode.KAFKA_STORAGE_ERROR,
  unauthorized: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
  unsupported: ErrorCode.INVALID_REQUEST,
  cancelled: ErrorCode.REQUEST_TIMED_OUT,
  internal: ErrorCode.KAFKA_STORAGE_ERROR,
};

/** The Kafka error code of a failure, unless the handler knows a better one. */
export function kafkaCodeOf(error: FloeError): number {
  return CODES[error.code];
}
