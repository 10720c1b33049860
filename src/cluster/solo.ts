// One node alone: it is the whole cluster, holds every lease at epoch 1, and asks no store about it. For the embedded
// mode, where the lock of the data directory keeps others away, and for tests of what needs a `Cluster` and `Leases`.
import { assert } from '../base/assert.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Cluster, ClusterNode, Leases, WantedLease } from './cluster.ts';
import { LEVELS } from './levels.ts';

/** The cluster of `self` alone. */
export function soloCluster(self: ClusterNode): Cluster {
  const nodes = [self];
  return {
    self,
    nodes: () => nodes,
    chosen: (_key, role) => (self.roles.includes(role) ? self : undefined),
    level: () => LEVELS.max,
    onChange: () => () => {},
  };
}

export interface SoloLeasesOptions {
  readonly self: Pick<ClusterNode, 'nodeId' | 'roles'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const SOLO_EPOCH = 1;

/** After `gained` threw: as long as the lease keeper of a cluster stays away from such a lease. */
export const AFTER_FAULT_MS = 1_000;

/** All that is wanted is held from then on, where the node has the role. */
export function soloLeases({ self, clock, logger }: SoloLeasesOptions): Leases {
  const wanted = new Map<string, SoloLease>();
  const heldToken = (name: string) => (wanted.get(name)?.held === true ? tokenOf(name) : undefined);
  return {
    held: heldToken,
    holder: (name) => (heldToken(name) === undefined ? undefined : self.nodeId),
    want(lease) {
      assert(!wanted.has(lease.name), `lease ${lease.name} is wanted once`);
      if (!self.roles.includes(lease.role)) return async () => {};
      const solo = new SoloLease(lease, clock, logger);
      wanted.set(lease.name, solo);
      return () => {
        if (wanted.get(lease.name) === solo) wanted.delete(lease.name);
        return solo.stop();
      };
    },
  };
}

const tokenOf = (name: string) => ({ name, epoch: SOLO_EPOCH });

class SoloLease {
  held = false;
  readonly #lease: WantedLease;
  readonly #clock: Clock;
  readonly #logger: Logger;
  #running: Promise<void>;
  #timer: Timer | undefined;
  #stopping: Promise<void> | undefined;

  constructor(lease: WantedLease, clock: Clock, logger: Logger) {
    this.#lease = lease;
    this.#clock = clock;
    this.#logger = logger;
    this.#running = this.#begin();
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#running;
    if (this.held) await this.#end();
  }

  async #begin(): Promise<void> {
    this.held = true;
    try {
      await this.#lease.gained(tokenOf(this.#lease.name));
    } catch (caught) {
      this.#report(caught, 'the work of a lease did not begin');
      await this.#end();
      if (this.#stopping !== undefined) return;
      this.#timer = this.#clock.setTimer(AFTER_FAULT_MS, () => {
        this.#running = this.#begin();
      });
    }
  }

  async #end(): Promise<void> {
    this.held = false;
    try {
      await this.#lease.lost();
    } catch (caught) {
      this.#report(caught, 'the work of a lease did not end well');
    }
  }

  #report(caught: unknown, what: string): void {
    const { code, message } = FloeError.from(caught);
    this.#logger.error({ lease: this.#lease.name, code, error: message }, what);
  }
}
