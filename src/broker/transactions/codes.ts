// Error codes of transactions as clients of old versions know them.
import { ErrorCode } from '../../protocol/errors.ts';

/** PRODUCER_FENCED came late (KIP-360): clients that don't know it are told INVALID_PRODUCER_EPOCH. */
export function fencedCode(errorCode: number, isKnown: boolean): number {
  return errorCode === ErrorCode.PRODUCER_FENCED && !isKnown
    ? ErrorCode.INVALID_PRODUCER_EPOCH
    : errorCode;
}
