// The security of a node: opened from settings, certificates looked at again by time and by signal.
// Not for: what it decides (broker/auth/).
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import type { Prng } from '../base/prng.ts';
import {
  httpListener,
  type ListenerSpec,
  listenersOf,
  openSecurity,
  type Security,
  type SecuritySettings,
  type SplitSettings,
} from '../broker/auth/index.ts';
import type { SecurityMetadata } from '../metadata/security.ts';
import type { Address } from './address.ts';

export interface NodeSecurityOptions {
  readonly settings: SecuritySettings;
  readonly byListener: SplitSettings['byListener'];
  /** Where PLAINTEXT listens when `listeners` is empty. */
  readonly kafka: Address;
  readonly metadata: SecurityMetadata;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly logger: Logger;
}

export interface NodeSecurity extends Component {
  readonly security: Security;
  readonly listeners: readonly ListenerSpec[];
  /** Looks at certificate files now. A file that can't be used is logged, and the old one stays. */
  reload(): void;
}

export async function startSecurity(options: NodeSecurityOptions): Promise<NodeSecurity> {
  const { settings, byListener, kafka, clock, logger } = options;
  const listeners = listenersOf({ settings, byListener, fallback: kafka });
  const http = httpListener(options, listeners);
  const security = await openSecurity({ ...options, listeners: [...listeners, http] });
  const everyMs = settings['ssl.reload.interval.ms'];
  const hasTls = [...security.listeners.values()].some(({ tls }) => tls !== undefined);
  let timer: Timer | undefined;
  const again = () => {
    if (everyMs > 0 && hasTls) timer = clock.setTimer(everyMs, tick);
  };
  const tick = () => {
    reloadCertificates(security, logger);
    again();
  };
  again();
  return {
    security,
    listeners,
    reload: () => reloadCertificates(security, logger),
    async stop() {
      timer?.cancel();
    },
  };
}

function reloadCertificates({ listeners }: Security, logger: Logger): void {
  for (const [listener, { tls }] of listeners) {
    try {
      if (tls?.reload()) logger.info({ listener }, 'certificate replaced');
    } catch (caught) {
      const { message } = FloeError.from(caught);
      logger.error({ listener, error: message }, 'certificate not replaced: the old one stays');
    }
  }
}
