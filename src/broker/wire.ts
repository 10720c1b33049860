// A socket as a connection sees it. server.ts makes it from node:net and node:tls, tests from arrays.

export interface Wire {
  readonly remoteAddress: string;
  readonly remotePort?: number;
  /**
   * Sends `pieces` in order; at most one write is under way. `done` is called once, when the kernel has the
   * last byte or, with false, when the socket is gone: the pieces are not touched afterwards.
   */
  write(pieces: readonly Uint8Array[], done: (sent: boolean) => void): void;
  /** Stops reading. What was read already may still be delivered. */
  pause(): void;
  resume(): void;
  /** Closes after everything written is out. */
  end(): void;
  /** Closes now. */
  destroy(): void;
}
