// Producer ids for idempotence (KIP-98): handed out once, each with epoch 0, never again.
// Ids ascend with time, so "is this id older than producer.id.expiration.ms" needs one row per minute, not per id.
// Not for: sequences per partition (they are part of the log's state) and transactional ids.

export interface ProducerIdentity {
  readonly producerId: number;
  readonly producerEpoch: number;
}

export interface ProducersMetadata {
  /** A fresh identity for a producer without a transactional id. */
  initProducerId(nowMs: number): Promise<ProducerIdentity>;
  /**
   * Forgets sequences of producers idle since before `idleSinceMs`, at most `limit` of them, and ages of ids.
   * @returns how many were forgotten.
   */
  expire(idleSinceMs: number, limit: number): Promise<number>;
}
